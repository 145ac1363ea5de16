//! One connection through the proxy.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{Notify, watch};

use crate::clock;
use crate::proxy::control::{Control, Order};
use crate::proxy::pattern::Window;
use crate::proxy::{Cut, Direction};

/// How long the rest of a request may take to follow the piece that sprang a trap.
const REST_OF_REQUEST: Duration = Duration::from_millis(50);
const PIECE: usize = 64 * 1024;

/// What the two ways of a connection tell each other.
#[derive(Debug, Default)]
struct Link {
    /// Answers disappear from now on.
    mute: AtomicBool,
    /// Bytes were lost: the two sides no longer speak of the same stream.
    torn: AtomicBool,
    /// A trap demands that both sides are reset.
    cut: Notify,
    /// A trap demands that the client is reset once the request is through.
    forwarded: Notify,
}

/// A piece, and when it may go on.
type Piece = (Instant, Vec<u8>);

/// How a connection ends.
enum End {
    /// As its two sides want it, or as one of them broke off.
    Closed,
    /// Both sides are reset.
    Reset,
    /// The client is reset; the server is left in the belief that it is still there.
    ClientReset,
}

/// Passes on what is sent, until both sides have closed or a fault ends it.
pub(crate) async fn run(mut client: TcpStream, control: Arc<Control>) {
    let mut orders = control.orders();
    if matches!(*orders.borrow_and_update(), Order::Stop) {
        reset(client);
        return;
    }
    let Ok(mut server) = TcpStream::connect(control.server()).await else {
        reset(client);
        return;
    };
    // Small requests are not to wait for each other; no test is about that.
    drop(client.set_nodelay(true));
    drop(server.set_nodelay(true));
    let link = Link::default();
    match relay(&mut client, &mut server, &link, &control, &mut orders).await {
        End::Closed => {}
        End::Reset => {
            reset(client);
            reset(server);
        }
        End::ClientReset => {
            reset(client);
            tokio::select! {
                biased;
                () = reset_ordered(&mut orders) => reset(server),
                () = ignore(&mut server) => {}
            }
        }
    }
}

async fn relay(
    client: &mut TcpStream,
    server: &mut TcpStream,
    link: &Link,
    control: &Control,
    orders: &mut watch::Receiver<Order>,
) -> End {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let (requests, queued_requests) = mpsc::unbounded_channel();
    let (answers, queued_answers) = mpsc::unbounded_channel();
    let ways = async {
        tokio::try_join!(
            biased;
            read_requests(from_client, requests, link, control),
            read_answers(from_server, answers, link, control),
            write(queued_requests, to_server),
            write(queued_answers, to_client),
        )
    };
    let forwarded = async {
        link.forwarded.notified().await;
        clock::sleep_until(clock::now() + REST_OF_REQUEST).await;
    };
    tokio::select! {
        biased;
        () = ordered(orders, link) => End::Reset,
        () = link.cut.notified() => End::Reset,
        () = forwarded => End::ClientReset,
        ended = ways => {
            drop(ended);
            End::Closed
        }
    }
}

async fn read_requests(
    mut from: ReadHalf<'_>,
    queue: UnboundedSender<Piece>,
    link: &Link,
    control: &Control,
) -> io::Result<()> {
    let mut window = Window::default();
    while let Some(piece) = read(&mut from).await? {
        window.push(&piece);
        match control.spring(&window) {
            Some(Cut::BeforeRequest) => {
                link.cut.notify_one();
                return std::future::pending().await;
            }
            Some(Cut::AfterRequest) => {
                link.mute.store(true, Ordering::SeqCst);
                link.forwarded.notify_one();
            }
            Some(Cut::SwallowAnswer) => link.mute.store(true, Ordering::SeqCst),
            None => {}
        }
        forward(piece, Direction::ToServer, &queue, link, control);
    }
    Ok(())
}

async fn read_answers(
    mut from: ReadHalf<'_>,
    queue: UnboundedSender<Piece>,
    link: &Link,
    control: &Control,
) -> io::Result<()> {
    while let Some(piece) = read(&mut from).await? {
        if link.mute.load(Ordering::SeqCst) {
            link.torn.store(true, Ordering::SeqCst);
        } else {
            forward(piece, Direction::ToClient, &queue, link, control);
        }
    }
    Ok(())
}

/// The next bytes; `None` once the other side has closed.
async fn read(from: &mut ReadHalf<'_>) -> io::Result<Option<Vec<u8>>> {
    let mut piece = Vec::with_capacity(PIECE);
    let read = from.read_buf(&mut piece).await?;
    Ok((read > 0).then_some(piece))
}

fn forward(
    piece: Vec<u8>,
    direction: Direction,
    queue: &UnboundedSender<Piece>,
    link: &Link,
    control: &Control,
) {
    let way = control.way(direction);
    if way.swallows {
        link.torn.store(true, Ordering::SeqCst);
    } else {
        // Nobody receives any more once the connection ends.
        drop(queue.send((clock::now() + way.delay, piece)));
    }
}

async fn write(mut queue: UnboundedReceiver<Piece>, mut to: WriteHalf<'_>) -> io::Result<()> {
    while let Some((due, piece)) = queue.recv().await {
        clock::sleep_until(due).await;
        to.write_all(&piece).await?;
    }
    to.shutdown().await
}

/// Waits until this connection is to be reset from the outside.
async fn ordered(orders: &mut watch::Receiver<Order>, link: &Link) {
    while orders.changed().await.is_ok() {
        match *orders.borrow_and_update() {
            Order::GoOn => {}
            Order::Mute => link.mute.store(true, Ordering::SeqCst),
            Order::Heal => {
                if link.torn.load(Ordering::SeqCst) || link.mute.load(Ordering::SeqCst) {
                    return;
                }
            }
            Order::Reset | Order::Stop => return,
        }
    }
}

/// The same once the client has been reset: there is nothing to heal any more.
async fn reset_ordered(orders: &mut watch::Receiver<Order>) {
    while orders.changed().await.is_ok() {
        if matches!(*orders.borrow_and_update(), Order::Reset | Order::Stop) {
            return;
        }
    }
}

/// Reads until the other side has closed.
async fn ignore(stream: &mut TcpStream) {
    let (mut from, _to) = stream.split();
    while let Ok(Some(_)) = read(&mut from).await {}
}

/// Closes so that the other side sees a reset and not an end.
fn reset(stream: TcpStream) {
    // Should it fail, the stream still closes.
    drop(stream.set_zero_linger());
    drop(stream);
}
