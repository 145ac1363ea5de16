//! Whether a server takes connections, by its own word.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(2);
/// The first message of a client, of version 3.0 of the protocol, after its length.
const STARTUP: &[u8] = b"\0\x03\0\0user\0postgres\0database\0postgres\0\0";
const AUTHENTICATION: u8 = b'R';
const ERROR: u8 = b'E';
/// The code of a server that starts, recovers or shuts down, as it stands in an error.
const CANNOT_CONNECT_NOW: &[u8] = b"C57P03\0";

/// Whether the server admits clients. That it wants a password, or has no room, is a word of one that
/// does.
pub(super) fn is_serving(port: u16) -> bool {
    let answer = ask(port).unwrap_or_default();
    match answer.first() {
        Some(&AUTHENTICATION) => true,
        Some(&ERROR) => !contains(&answer, CANNOT_CONNECT_NOW),
        Some(_) | None => false,
    }
}

/// What the server says to somebody who comes and goes. The end of it is also the end of the process
/// that said it.
fn ask(port: u16) -> io::Result<Vec<u8>> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut connection = TcpStream::connect_timeout(&address, LIMIT)?;
    connection.set_read_timeout(Some(LIMIT))?;
    let length = u32::try_from(STARTUP.len() + size_of::<u32>()).map_err(io::Error::other)?;
    connection.write_all(&[&length.to_be_bytes(), STARTUP].concat())?;
    connection.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer)?;
    Ok(answer)
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|window| window == wanted)
}
