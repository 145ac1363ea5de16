//! What several cases need.

use std::net::SocketAddr;

use lock_spi::{Grant, InsertOutcome, LockKey, Queue};
use test_servers::Postgres;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::stage::{Node, attempt, insist, runtime, url_of};

/// Takes a key that is free, however long the store has to look for a server.
pub(crate) async fn take(node: &Node, key: &LockKey) -> Grant {
    let attempt = attempt();
    match insist(async || node.insert(key, attempt, Queue::Never).await).await {
        InsertOutcome::Granted(grant) => grant,
        other => panic!("{other:?}"),
    }
}

/// Takes a key so often and answers with the last grant, which is held.
pub(crate) async fn take_often(node: &Node, key: &LockKey, times: usize) -> Grant {
    let mut last = take(node, key).await;
    for _ in 1..times {
        assert!(node.release(&last).await.unwrap());
        last = take(node, key).await;
    }
    last
}

/// A way to a server that can be made to lead to another one, as an address that moves.
pub(crate) struct Way {
    end: watch::Sender<SocketAddr>,
    address: SocketAddr,
}

impl Way {
    pub(crate) async fn to(server: &Postgres) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let end = watch::Sender::new(address_of(server));
        let mut moves = end.subscribe();
        runtime().spawn(Box::pin(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = *moves.borrow_and_update();
                runtime().spawn(Box::pin(carry(client, server, moves.clone())));
            }
        }));
        Self { end, address }
    }

    pub(crate) fn url(&self) -> String {
        url_of(&[self.address.to_string()])
    }

    /// Ends all connections in order; new ones are made to this server.
    pub(crate) fn lead_to(&self, server: &Postgres) {
        self.end.send_replace(address_of(server));
    }
}

fn address_of(server: &Postgres) -> SocketAddr {
    server.address().parse().unwrap()
}

async fn carry(mut client: TcpStream, server: SocketAddr, mut moves: watch::Receiver<SocketAddr>) {
    let Ok(mut server) = TcpStream::connect(server).await else {
        return;
    };
    tokio::select! {
        biased;
        // Where it is the test that has ended, so does this.
        _ = moves.changed() => {}
        _ = copy_bidirectional(&mut client, &mut server) => {}
    }
}
