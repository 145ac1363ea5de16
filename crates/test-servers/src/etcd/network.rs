//! The network between the members of a cluster, of which single links can be cut.
//!
//! All members have to agree on one address for each of them, so that an address cannot tell who
//! connects. Therefore each member reaches the others through a SOCKS gate of its own. The addresses
//! are such as no machine has: what does not pass the gates reaches nobody.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;

use crate::acceptor::Acceptor;
use crate::proxy::{Control, Direction, pass_on};
use crate::{clock, socks};

/// The port that every member claims to have.
const PORT: u16 = 2380;
/// How long a program may take to say where it wants to go.
const LIMIT: Duration = Duration::from_secs(5);

/// A link for each member and each other that it connects to.
#[derive(Debug)]
pub(super) struct Network {
    gates: Vec<Acceptor>,
    /// By who connects, then by whom it connects to.
    links: Vec<Vec<Arc<Control>>>,
}

impl Network {
    /// Between members that listen on these ports.
    pub(super) fn between(ports: &[u16]) -> io::Result<Self> {
        let mut network = Self {
            gates: Vec::new(),
            links: Vec::new(),
        };
        for _ in ports {
            let links: Vec<_> = ports.iter().map(|&port| link_to(port)).collect();
            network.links.push(links.clone());
            let gate = Acceptor::start(move |client| pass(client, links.clone()))?;
            network.gates.push(gate);
        }
        Ok(network)
    }

    /// Where this member claims to be.
    pub(super) fn address(member: usize) -> String {
        let host = u8::try_from(member + 1).unwrap_or(u8::MAX);
        // Of the block that is kept free for documents (RFC 5737).
        SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, host), PORT).to_string()
    }

    /// What makes a member take its gate.
    pub(super) fn environment(&self, member: usize) -> (String, String) {
        let gate = self.gates[member].address();
        ("HTTP_PROXY".to_owned(), format!("socks5://{gate}"))
    }

    /// Loses all that the one member sends to the other, whoever of them opened the connection.
    pub(super) fn cut(&self, from: usize, to: usize) {
        self.links[from][to].swallow(Direction::ToServer);
        self.links[to][from].swallow(Direction::ToClient);
    }

    /// Makes every link good.
    pub(super) fn heal(&self) {
        self.each(Control::heal);
    }

    fn each(&self, action: impl Fn(&Control)) {
        self.links.iter().flatten().for_each(|link| action(link));
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.each(Control::stop);
    }
}

fn link_to(port: u16) -> Arc<Control> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Arc::new(Control::new(address))
}

/// Serves one connection through a gate.
async fn pass(mut client: TcpStream, links: Vec<Arc<Control>>) {
    let destination = tokio::select! {
        biased;
        received = socks::receive(&mut client) => received,
        () = clock::sleep_until(clock::now() + LIMIT) => Err(io::ErrorKind::TimedOut.into()),
    };
    let Ok(destination) = destination else {
        return; // which tells the member enough
    };
    let destination = destination.to_string();
    let mut known = links.into_iter().enumerate();
    if let Some((_, link)) = known.find(|(member, _)| Network::address(*member) == destination) {
        pass_on(client, link).await;
    }
}
