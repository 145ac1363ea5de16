//! Connections that are accepted on a thread of their own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread::JoinHandle;

use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::clock;

/// Listens on a free port of the loopback address. Dropped, it takes no more connections and waits
/// until those that it took are over; whoever serves them has been told to end.
#[derive(Debug)]
pub(crate) struct Acceptor {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    /// Has each connection served by what `serve` makes of it.
    pub(crate) fn start<S, F>(serve: S) -> io::Result<Self>
    where
        S: Fn(TcpStream) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let stop = watch::Sender::new(false);
        let stopped = stop.subscribe();
        let thread = clock::spawn(move || {
            // The listener works or nobody connects, which the test notices.
            drop(runtime.block_on(accept(listener, stopped, serve)));
        });
        Ok(Self {
            address,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        // A thread that panicked has said so.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

async fn accept<S, F>(
    listener: TcpListener,
    mut stopped: watch::Receiver<bool>,
    serve: S,
) -> io::Result<()>
where
    S: Fn(TcpStream) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut served = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            seen = stopped.wait_for(|stopped| *stopped) => {
                drop(seen);
                break;
            }
            accepted = listener.accept() => {
                served.spawn(serve(accepted?.0));
            }
            Some(ended) = served.join_next() => drop(ended),
        }
    }
    while served.join_next().await.is_some() {}
    Ok(())
}
