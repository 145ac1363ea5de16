use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::clock;
use crate::proxy::faults::Faults;

mod faults;
mod link;
mod pattern;
mod trap;

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
    address: SocketAddr,
    control: Arc<Control>,
    thread: Option<JoinHandle<()>>,
}

/// What the proxy and its connections share.
#[derive(Debug)]
struct Control {
    server: SocketAddr,
    faults: Faults,
    orders: watch::Sender<Order>,
}

/// What the open connections are told; each says it is followed by those that then exist.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// Nothing has been ordered yet.
    GoOn,
    /// Connections that have lost bytes are reset.
    Heal,
    /// All connections are reset.
    Reset,
    /// All connections are reset, and there will be no more.
    Stop,
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
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let control = Arc::new(Control {
            server,
            faults: Faults::default(),
            orders: watch::Sender::new(Order::GoOn),
        });
        let shared = Arc::clone(&control);
        let thread = clock::spawn(move || {
            // The listener works or nobody connects, which the test notices.
            drop(runtime.block_on(serve(listener, shared)));
        });
        Ok(Self {
            address,
            control,
            thread: Some(thread),
        })
    }

    /// Where clients connect to, as `127.0.0.1:2379`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.address.to_string()
    }

    /// Holds up everything that goes this way for so long; zero is not at all. The order stays.
    pub fn delay(&self, direction: Direction, delay: Duration) {
        self.control.faults.delay(direction, delay);
    }

    /// Makes a black hole of this way: connections stay open, and what is sent disappears.
    pub fn swallow(&self, direction: Direction) {
        self.control.faults.swallow(direction);
    }

    /// Resets every open connection, on both sides. New ones are welcome.
    pub fn reset(&self) {
        self.control.orders.send_replace(Order::Reset);
    }

    /// Cuts the connection of the next request that has these bytes in it. Requests that came before
    /// do not count. The trap springs once; several can be armed.
    ///
    /// # Panics
    ///
    /// When the pattern is empty or longer than a kilobyte.
    pub fn arm(&self, pattern: impl Into<Vec<u8>>, cut: Cut) -> Trap {
        self.control.faults.arm(pattern.into(), cut)
    }

    /// Ends delays and black holes and disarms the traps. Connections that have lost bytes are
    /// reset, as what would follow makes no sense without them.
    pub fn heal(&self) {
        self.control.faults.clear();
        self.control.orders.send_replace(Order::Heal);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.control.orders.send_replace(Order::Stop);
        // A thread that panicked has said so.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

async fn serve(listener: TcpListener, control: Arc<Control>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut orders = control.orders.subscribe();
    let mut links = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            order = orders.wait_for(|order| matches!(order, Order::Stop)) => {
                drop(order);
                break;
            }
            accepted = listener.accept() => {
                links.spawn(link::run(accepted?.0, Arc::clone(&control)));
            }
            Some(ended) = links.join_next() => drop(ended),
        }
    }
    while links.join_next().await.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests;
