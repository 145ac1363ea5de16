//! One connection through the network.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::messages::Requests;
use super::{Shared, Way};

const PIECE: usize = 64 * 1024;

/// What the two directions tell each other.
#[derive(Default)]
struct Torn {
    /// Answers do not arrive any more.
    mute: AtomicBool,
    /// Nothing that is sent arrives any more.
    deaf: AtomicBool,
}

impl Torn {
    fn is(&self) -> bool {
        self.mute.load(Ordering::SeqCst) || self.deaf.load(Ordering::SeqCst)
    }
}

/// Passes on what is sent, until both sides have closed, or until a connection that has lost bytes
/// is mended: then it is closed.
pub(super) async fn carry(client: TcpStream, server: SocketAddr, network: Arc<Shared>) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    drop((client.set_nodelay(true), server.set_nodelay(true)));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let torn = Torn::default();
    let (queue, queued) = mpsc::unbounded_channel();
    let ways = async {
        tokio::join!(
            biased;
            read_requests(from_client, queue, &torn, &network),
            pass_requests(queued, to_server, &torn, &network),
            pass_answers(from_server, to_client, &torn, &network),
        )
    };
    let ended = async {
        loop {
            let earlier = network.mended();
            network.mended_since(earlier).await;
            if torn.is() {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        () = ended => {}
        _ = ways => {}
    }
}

async fn read_requests(
    mut from: OwnedReadHalf,
    queue: UnboundedSender<Vec<u8>>,
    torn: &Torn,
    network: &Shared,
) {
    let mut requests = Requests::default();
    while let Some(piece) = read(&mut from).await {
        requests.push(&piece);
        while let Some(request) = requests.next() {
            if torn.deaf.load(Ordering::SeqCst) {
                continue;
            }
            match network.way_of(request.writes) {
                Way::Through => {}
                Way::ReplyLost => torn.mute.store(true, Ordering::SeqCst),
                Way::Lost => {
                    torn.deaf.store(true, Ordering::SeqCst);
                    continue;
                }
            }
            // Nobody takes it any more once the connection ends.
            drop(queue.send(request.bytes));
        }
    }
}

/// Whether or not the client is still there, what it has sent arrives.
async fn pass_requests(
    mut queued: UnboundedReceiver<Vec<u8>>,
    mut to: OwnedWriteHalf,
    torn: &Torn,
    network: &Shared,
) {
    while let Some(request) = queued.recv().await {
        network.released().await;
        if to.write_all(&request).await.is_err() {
            return;
        }
    }
    // Where requests were lost the server is not to know that the client has left.
    if torn.deaf.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    drop(to.shutdown().await);
}

async fn pass_answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    torn: &Torn,
    network: &Shared,
) {
    while let Some(piece) = read(&mut from).await {
        if network.is_partitioned() {
            torn.mute.store(true, Ordering::SeqCst);
        }
        if !torn.mute.load(Ordering::SeqCst) {
            // A client that has left misses nothing.
            drop(to.write_all(&piece).await);
        }
    }
    if !torn.is() {
        drop(to.shutdown().await);
        return;
    }
    std::future::pending::<()>().await;
}

/// The next bytes; `None` once the other side has closed.
async fn read(from: &mut OwnedReadHalf) -> Option<Vec<u8>> {
    let mut piece = Vec::with_capacity(PIECE);
    let read = from.read_buf(&mut piece).await.ok()?;
    (read > 0).then_some(piece)
}
