//! A member's own word on whether it serves.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(2);
const REQUEST: &[u8] = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Whether the member at this port is up, knows a leader, and could read with its consent.
pub(super) fn is_good(port: u16) -> bool {
    ask(port).is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

fn ask(port: u16) -> io::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut connection = TcpStream::connect_timeout(&address, LIMIT)?;
    connection.set_read_timeout(Some(LIMIT))?;
    connection.write_all(REQUEST)?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer)
}
