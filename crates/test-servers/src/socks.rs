//! The part of SOCKS 5 (RFC 1928) by which a program names where it wants to be connected to.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;

/// Asks a client where it wants to go, and tells it that it is there.
///
/// # Errors
///
/// When the connection breaks, or the client wants anything but a connection to an IPv4 address.
pub(crate) async fn receive(client: &mut TcpStream) -> io::Result<SocketAddrV4> {
    let [version, methods] = read(client).await?;
    expect(version, VERSION)?;
    for _ in 0..methods {
        client.read_u8().await?;
    }
    client.write_all(&[VERSION, NO_AUTHENTICATION]).await?;

    let [version, command, _reserved, kind] = read(client).await?;
    expect(version, VERSION)?;
    expect(command, CONNECT)?;
    expect(kind, IPV4)?;
    let address = Ipv4Addr::from(read::<4>(client).await?);
    let port = client.read_u16().await?;
    // Granted; the address it is reached from is of no interest.
    let granted = [VERSION, 0, 0, IPV4, 0, 0, 0, 0, 0, 0];
    client.write_all(&granted).await?;
    Ok(SocketAddrV4::new(address, port))
}

async fn read<const COUNT: usize>(client: &mut TcpStream) -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn expect(found: u8, wanted: u8) -> io::Result<()> {
    if found == wanted {
        Ok(())
    } else {
        Err(io::Error::other(format!("{found} instead of {wanted}")))
    }
}
