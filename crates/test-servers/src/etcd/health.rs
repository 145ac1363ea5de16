//! A member's own word on how it does, from a port of its own that is plain HTTP whatever the others
//! are.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(2);

/// Whether the member is up, knows a leader, and could read with its consent.
pub(super) fn is_good(port: u16) -> bool {
    ask(port, "/health").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

/// Whether the member takes itself for the leader.
pub(super) fn leads(port: u16) -> bool {
    let answer = ask(port, "/metrics").unwrap_or_default();
    answer.lines().any(|line| line == "etcd_server_is_leader 1")
}

fn ask(port: u16, path: &str) -> io::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut connection = TcpStream::connect_timeout(&address, LIMIT)?;
    connection.set_read_timeout(Some(LIMIT))?;
    write!(
        connection,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer)
}
