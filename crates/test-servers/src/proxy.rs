use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::acceptor::Acceptor;

mod control;
mod faults;
mod link;
mod pattern;
mod trap;

pub(crate) use control::Control;
pub(crate) use link::run as pass_on;
pub use trap::{Cut, Trap};

/// A way through the proxy.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Direction {
    /// From the client to the server: requests.
    ToServer,
    /// From the server to the client: answers.
    ToClient,
}

/// A TCP proxy on the loopback address that passes everything on until it is told to fail.
///
/// A fault holds for open connections and for new ones, from the next bytes that the proxy reads;
/// what it read before goes on its way. The proxy runs on a thread of its own, so that tests with any
/// runtime or none can use it. Dropped, it resets its connections.
///
/// # Examples
///
/// ```
/// use std::io::{Read, Write};
/// use std::net::{TcpListener, TcpStream};
/// use test_servers::{Cut, Proxy};
///
/// let server = TcpListener::bind("127.0.0.1:0")?;
/// let proxy = Proxy::to(&server.local_addr()?.to_string())?;
/// let trap = proxy.arm("PUT green", Cut::BeforeRequest);
///
/// let mut client = TcpStream::connect(proxy.endpoint())?;
/// client.write_all(b"PUT green\n")?;
/// assert!(client.read(&mut [0]).is_err()); // reset, and the server never saw the request
/// assert!(trap.has_sprung());
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Proxy {
    control: Arc<Control>,
    acceptor: Acceptor,
}

impl Proxy {
    /// Listens on a free port of the loopback address for connections to this server, as
    /// `127.0.0.1:2379`. The server need not be up.
    ///
    /// # Errors
    ///
    /// When `server` is no address, or there is no port to listen on.
    pub fn to(server: &str) -> io::Result<Self> {
        let server = server.parse().map_err(io::Error::other)?;
        let control = Arc::new(Control::new(server));
        let shared = Arc::clone(&control);
        let acceptor = Acceptor::start(move |client| pass_on(client, Arc::clone(&shared)))?;
        Ok(Self { control, acceptor })
    }

    /// Where clients connect to, as `127.0.0.1:2379`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.acceptor.address().to_string()
    }

    /// Holds up everything that goes this way for so long; zero is not at all. The order stays.
    pub fn delay(&self, direction: Direction, delay: Duration) {
        self.control.delay(direction, delay);
    }

    /// Makes a black hole of this way: connections stay open, and what is sent disappears.
    pub fn swallow(&self, direction: Direction) {
        self.control.swallow(direction);
    }

    /// Makes every open connection one that died unnoticed: it stays open, and answers on it
    /// disappear. New ones work.
    pub fn mute(&self) {
        self.control.mute();
    }

    /// Resets every open connection, on both sides. New ones are welcome.
    pub fn reset(&self) {
        self.control.reset();
    }

    /// Cuts the connection of the next request that has these bytes in it. Requests that came before
    /// do not count. The trap springs once; several can be armed.
    ///
    /// # Panics
    ///
    /// When the pattern is empty or longer than a kilobyte.
    pub fn arm(&self, pattern: impl Into<Vec<u8>>, cut: Cut) -> Trap {
        self.control.arm(pattern.into(), cut)
    }

    /// Ends delays and black holes and disarms the traps. Connections that have lost bytes are
    /// reset, as what would follow makes no sense without them.
    pub fn heal(&self) {
        self.control.heal();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.control.stop();
    }
}

#[cfg(test)]
mod tests;
