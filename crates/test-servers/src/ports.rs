//! Ports that are free now and stay so while a server restarts.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Result, bail};

/// Below the range from which systems take the ports of outgoing connections. In it, a client that
/// tries to reach a server that is down could be given the server's own port.
const FIRST: u16 = 12_000;
const COUNT: u16 = 20_000;

/// A free port of the loopback address. Processes begin at different places of the range; within one,
/// no port is given out twice before all others were.
///
/// # Errors
///
/// When every port of the range is taken.
pub(crate) fn free() -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    for _ in 0..COUNT {
        let begin = std::process::id().wrapping_mul(97) % u32::from(COUNT);
        let turn = NEXT.fetch_add(1, Ordering::Relaxed);
        let offset = (begin + u32::from(turn)) % u32::from(COUNT);
        let port = FIRST + u16::try_from(offset)?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port of {FIRST} and the {COUNT} after it is free")
}
