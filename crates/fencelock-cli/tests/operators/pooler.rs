//! Something before a server that treats startup options as PgBouncer does.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Its address; it lives as long as the test.
pub(crate) fn refusing_options() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            // The client may leave whenever it likes.
            drop(client.and_then(refuse));
        }
    });
    address.to_string()
}

fn refuse(mut client: TcpStream) -> std::io::Result<()> {
    let mut length = [0; 4];
    client.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap();
    client.read_exact(&mut vec![0; length - 4])?;
    let fields = b"SERROR\0VERROR\0C08P01\0Munsupported startup parameter: options\0\0";
    let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
    client.write_all(&[b"E", &length[..], fields].concat())
}
