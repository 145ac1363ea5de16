use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::clock;
use crate::etcd::disk::Stall;
use crate::etcd::member::Member;
use crate::etcd::network::Network;
use crate::etcd::programs::Programs;

mod auth;
mod builder;
mod disk;
mod health;
mod member;
mod network;
mod programs;
mod snapshot;
mod tls;

pub use builder::EtcdBuilder;
pub use snapshot::{RestoredAs, Snapshot};

/// How long a cluster may take to settle on one leader.
const LEADER_LIMIT: Duration = Duration::from_secs(30);

/// etcd on the loopback address: one server, or a cluster. Heartbeats come every 50 ms and elections
/// after 500 ms, so that a leader is replaced within a second or two and a lease can be as short as
/// one second.
///
/// The server is the one that `ETCD_BIN` names, else the one in `PATH`, else that of the
/// distribution's packages, which `apt-get` fetches and which are unpacked below the target folder.
///
/// Dropped, the servers are killed and their folders deleted. The same happens when the process ends
/// in any other way.
///
/// # Examples
///
/// ```
/// let mut etcd = test_servers::Etcd::start()?;
/// assert_eq!(etcd.endpoints().len(), 1);
/// etcd.kill(0)?; // as when power fails
/// etcd.restart(0)?; // on the same port, with the same data
/// # anyhow::Ok(())
/// ```
#[derive(Debug)]
pub struct Etcd {
    programs: Programs,
    /// By member; they end before the servers do.
    stalls: BTreeMap<usize, Stall>,
    members: Vec<Member>,
    /// Between the members, if it can be cut.
    network: Option<Network>,
    /// What lets `etcdctl` in.
    ctl_options: Vec<String>,
}

impl Etcd {
    /// Starts one server and waits until it serves.
    ///
    /// # Errors
    ///
    /// When there is no etcd, or it does not serve within half a minute.
    pub fn start() -> Result<Self> {
        Self::builder().start()
    }

    /// Starts a cluster of so many members and waits until each of them serves.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn cluster(size: usize) -> Result<Self> {
        Self::builder().members(size).start()
    }

    /// For a server or a cluster that differs from the usual.
    pub fn builder() -> EtcdBuilder {
        EtcdBuilder::default()
    }

    const fn new(programs: Programs, members: Vec<Member>, network: Option<Network>) -> Self {
        Self {
            programs,
            stalls: BTreeMap::new(),
            members,
            network,
            ctl_options: Vec::new(),
        }
    }

    /// Where each member is reached, as `127.0.0.1:2379`.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(Member::endpoint).collect()
    }

    /// The number of a member's process.
    ///
    /// # Errors
    ///
    /// When the member is down.
    ///
    /// # Panics
    ///
    /// When there is no such member.
    pub fn process(&self, member: usize) -> Result<u32> {
        let pid = self.members[member].server.pid();
        let pid = pid.context("the member is down")?;
        Ok(pid.as_raw_nonzero().get().unsigned_abs())
    }

    /// Kills a member as a power failure does: at once. Its data stay.
    ///
    /// # Errors
    ///
    /// When it was killed before.
    ///
    /// # Panics
    ///
    /// When there is no such member; so do the other methods that name one.
    pub fn kill(&mut self, member: usize) -> Result<()> {
        self.members[member].server.kill()?;
        self.stalls.remove(&member);
        Ok(())
    }

    /// Starts a member that was killed, on its former port and data, and waits until it serves, if
    /// it can: without a majority of the cluster none does.
    ///
    /// # Errors
    ///
    /// When the member is up, or does not serve within half a minute though a majority is up.
    pub fn restart(&mut self, member: usize) -> Result<()> {
        self.members[member].server.start()?;
        let up = self.members.iter().filter(|member| member.server.is_up());
        if up.count() * 2 > self.members.len() {
            self.members[member].await_ready()?;
        }
        Ok(())
    }

    /// Waits until each member that is up serves, with the consent of a majority: after a member was
    /// killed, until there is a leader again.
    ///
    /// # Errors
    ///
    /// When one has ended by itself, or does not serve within half a minute.
    pub fn await_ready(&self) -> Result<()> {
        let mut up = self.members.iter().filter(|member| member.server.is_up());
        up.try_for_each(Member::await_ready)
    }

    /// The member that leads, once exactly one of those that are up takes itself for the leader. One
    /// that is paused does not say so.
    ///
    /// # Errors
    ///
    /// When that is not so within half a minute.
    pub fn leader(&self) -> Result<usize> {
        let leader = clock::poll(LEADER_LIMIT, || {
            let mut leaders = (0..self.members.len()).filter(|&member| self.leads(member));
            let leader = leaders.next()?;
            leaders.next().is_none().then_some(leader)
        });
        leader.context("the members do not settle on one leader")
    }

    /// Whether this member takes itself for the leader, as one does for a while that was cut off.
    #[must_use]
    pub fn leads(&self, member: usize) -> bool {
        self.members[member].leads()
    }

    /// Stops a member's process as `SIGSTOP` does, and waits until it stands still: connections stay
    /// open, nothing answers, and its clock runs on.
    ///
    /// # Errors
    ///
    /// When the member is down, or does not stop.
    pub fn pause(&self, member: usize) -> Result<()> {
        self.members[member].server.pause()
    }

    /// Lets a paused member go on.
    ///
    /// # Errors
    ///
    /// When the member is down.
    pub fn resume(&self, member: usize) -> Result<()> {
        self.members[member].server.resume()
    }

    /// Loses all that the one member sends to the other, until [`heal`](Self::heal). Connections
    /// stay open, and what the other sends arrives.
    ///
    /// # Errors
    ///
    /// When the cluster was not started with its [peers behind
    /// proxies](EtcdBuilder::peers_behind_proxies).
    pub fn cut(&self, from: usize, to: usize) -> Result<()> {
        self.network()?.cut(from, to);
        Ok(())
    }

    /// Loses all between this member and the others, both ways. Clients still reach it.
    ///
    /// # Errors
    ///
    /// As [`cut`](Self::cut).
    pub fn isolate(&self, member: usize) -> Result<()> {
        let others = (0..self.members.len()).filter(|&other| other != member);
        for other in others {
            self.cut(member, other)?;
            self.cut(other, member)?;
        }
        Ok(())
    }

    /// Lets every member reach every other again.
    ///
    /// # Errors
    ///
    /// As [`cut`](Self::cut).
    pub fn heal(&self) -> Result<()> {
        self.network()?.heal();
        Ok(())
    }

    fn network(&self) -> Result<&Network> {
        let network = self.network.as_ref();
        network.context("only peers behind proxies can be cut off from each other")
    }

    /// Holds up each write of the member to its log, from the next one on, until
    /// [`free_disk`](Self::free_disk). All else in the member goes on: heartbeats of a leader cease
    /// only once it has something to write.
    ///
    /// # Errors
    ///
    /// When the member is down, its disk is stalled already, or the system lets no process trace
    /// another.
    pub fn stall_disk(&mut self, member: usize) -> Result<()> {
        ensure!(!self.stalls.contains_key(&member), "its disk is stalled");
        let server = &self.members[member].server;
        let pid = server.pid().context("the member is down")?;
        let stall = Stall::begin(pid, server.folder())?;
        self.stalls.insert(member, stall);
        Ok(())
    }

    /// Lets a stalled disk write again.
    ///
    /// # Errors
    ///
    /// When it is not stalled.
    pub fn free_disk(&mut self, member: usize) -> Result<()> {
        let stall = self.stalls.remove(&member);
        stall.map(drop).context("its disk is not stalled")
    }

    /// Runs `etcdctl` against all members and answers with what it prints.
    ///
    /// # Errors
    ///
    /// When it is not found or fails; then with what it complains about.
    pub fn ctl(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new(&self.programs.client)
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", &self.endpoints().join(",")])
            .args(&self.ctl_options)
            .args(arguments)
            .output()
            .context("etcdctl does not start")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "etcdctl: {}", complaint.trim());
        Ok(String::from_utf8(output.stdout)?)
    }
}
