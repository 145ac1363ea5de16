//! What leaders write to: a server that admits no token lower than one it has seen.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use fencelock::fence::HighWaterMark;
use fencelock::spi::{FencingToken, Runtime};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::poll;

#[derive(Clone)]
pub(crate) struct Resource {
    runtime: Arc<dyn Runtime>,
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    mark: HighWaterMark,
    /// Who wrote with each token.
    reigns: Mutex<BTreeMap<FencingToken, String>>,
    refused: Mutex<Vec<(FencingToken, String)>>,
}

impl State {
    /// Whether the write is admitted.
    fn write(&self, name: &str, token: FencingToken) -> bool {
        let mut reigns = self.reigns.lock().unwrap();
        let whose = reigns.entry(token).or_insert_with(|| name.to_owned());
        let admitted = whose == name && self.mark.admit(token).is_ok();
        if !admitted {
            self.refused.lock().unwrap().push((token, name.to_owned()));
        }
        admitted
    }

    /// Reads a name, and then tokens, and answers each.
    async fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut name = String::new();
        stream.read_line(&mut name).await?;
        let mut line = String::new();
        while stream.read_line(&mut line).await? > 0 {
            let token = line.trim_end().parse();
            let admitted = self.write(name.trim_end(), token.map_err(io::Error::other)?);
            let answer = if admitted { "admitted\n" } else { "stale\n" };
            stream.write_all(answer.as_bytes()).await?;
            line.clear();
        }
        Ok(())
    }
}

impl Resource {
    pub(crate) async fn open(runtime: &Arc<dyn Runtime>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let resource = Self {
            runtime: Arc::clone(runtime),
            address: listener.local_addr().unwrap(),
            state: Arc::default(),
        };
        let own = resource.clone();
        runtime.spawn(Box::pin(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&own.state);
                own.runtime.spawn(Box::pin(async move {
                    // It ends when its writer is killed.
                    drop(state.serve(stream).await);
                }));
            }
        }));
        resource
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The first reign after `last` in which somebody wrote, and who.
    pub(crate) async fn reign_after(&self, last: Option<FencingToken>) -> (FencingToken, String) {
        let newer = || {
            let reigns = self.reigns();
            reigns.into_iter().find(|(token, _)| Some(*token) > last)
        };
        poll(&self.runtime, || newer().is_some()).await;
        newer().unwrap()
    }

    pub(crate) fn reigns(&self) -> Vec<(FencingToken, String)> {
        let reigns = self.state.reigns.lock().unwrap();
        reigns.clone().into_iter().collect()
    }

    pub(crate) fn refused(&self) -> Vec<(FencingToken, String)> {
        self.state.refused.lock().unwrap().clone()
    }
}

/// The resource as one of those who write to it has it.
pub(crate) struct Writer {
    stream: BufReader<TcpStream>,
}

impl Writer {
    pub(crate) async fn connect(address: SocketAddr, name: &str) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(format!("{name}\n").as_bytes())
            .await
            .unwrap();
        Self {
            stream: BufReader::new(stream),
        }
    }

    /// Writes, and waits for the answer, whichever it is; an error once the resource is gone.
    pub(crate) async fn write(&mut self, token: FencingToken) -> io::Result<()> {
        let line = format!("{token}\n");
        self.stream.write_all(line.as_bytes()).await?;
        let answered = self.stream.read_line(&mut String::new()).await?;
        match answered {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
