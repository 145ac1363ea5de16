use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;

use crate::programs::Programs;
use crate::server::Server;
use crate::{clock, folder, ports};

mod health;

/// Generous: a busy machine starts three servers slowly. What has failed is noticed at once.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// How often it is tried on ports of its own: someone may take one between its choice and its use.
const STARTS: usize = 3;

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
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    client_port: u16,
    server: Server,
}

impl Etcd {
    /// Starts one server and waits until it serves.
    ///
    /// # Errors
    ///
    /// When there is no etcd, or it does not serve within half a minute.
    pub fn start() -> Result<Self> {
        Self::cluster(1)
    }

    /// Starts a cluster of so many members and waits until each of them serves.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn cluster(size: usize) -> Result<Self> {
        ensure!(size > 0, "a cluster has at least one member");
        let programs = Programs::find()?;
        for _ in 1..STARTS {
            if let Ok(etcd) = Self::try_cluster(&programs, size) {
                return Ok(etcd);
            }
        }
        Self::try_cluster(&programs, size)
    }

    fn try_cluster(programs: &Programs, size: usize) -> Result<Self> {
        let mut etcd = Self {
            programs: programs.clone(),
            members: members(programs, size)?,
        };
        for member in &mut etcd.members {
            member.server.start()?;
        }
        etcd.await_ready()?;
        Ok(etcd)
    }

    /// Where each member is reached, as `127.0.0.1:2379`.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(Member::endpoint).collect()
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
        self.members[member].server.kill()
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

    /// Stops a member's process as `SIGSTOP` does: connections stay open, nothing answers, and its
    /// clock runs on.
    ///
    /// # Errors
    ///
    /// When the member is down.
    pub fn pause(&self, member: usize) -> Result<()> {
        self.members[member].server.signal(Signal::STOP)
    }

    /// Lets a paused member go on.
    ///
    /// # Errors
    ///
    /// When the member is down.
    pub fn resume(&self, member: usize) -> Result<()> {
        self.members[member].server.signal(Signal::CONT)
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
            .args(arguments)
            .output()
            .context("etcdctl does not start")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "etcdctl: {}", complaint.trim());
        Ok(String::from_utf8(output.stdout)?)
    }
}

impl Member {
    fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.client_port)
    }

    /// Waits until the member answers that it can read with the consent of a majority.
    fn await_ready(&self) -> Result<()> {
        let server = &self.server;
        let settled = clock::poll(READY_LIMIT, || {
            let healthy = health::is_good(self.client_port);
            // Asked last: were the port another server's, ours would have ended by now.
            match (server.runs(), healthy) {
                (false, _) => Some(false),
                (true, true) => Some(true),
                (true, false) => None,
            }
        });
        let what = match settled {
            Some(true) => return Ok(()),
            Some(false) => "etcd has ended",
            None => "etcd does not become ready",
        };
        bail!("{what}; the last that it said:\n{}", server.last_of_log())
    }
}

/// The members of a new cluster, none of them started.
fn members(programs: &Programs, size: usize) -> Result<Vec<Member>> {
    let mut ports = Vec::new();
    for _ in 0..size {
        ports.push((ports::free()?, ports::free()?));
    }
    let peers: Vec<_> = (0..)
        .zip(&ports)
        .map(|(number, (_, peer_port))| format!("m{number}=http://127.0.0.1:{peer_port}"))
        .collect();
    let home = folder::private()?;
    let mut members = Vec::new();
    for (number, &(client_port, peer_port)) in (0..).zip(&ports) {
        let folder = home.join(format!("m{number}"));
        fs::create_dir(&folder)?;
        let mut arguments = arguments(&folder, number, client_port, peer_port);
        arguments.push(format!("--initial-cluster={}", peers.join(",")));
        arguments.push(format!("--initial-cluster-token={}", home.display()));
        if programs.can_leave_out_fsync {
            arguments.push("--unsafe-no-fsync".to_owned());
        }
        members.push(Member {
            client_port,
            server: Server::new(&folder, &programs.server, &arguments)?,
        });
    }
    Ok(members)
}

fn arguments(folder: &Path, number: usize, client_port: u16, peer_port: u16) -> Vec<String> {
    vec![
        format!("--name=m{number}"),
        format!("--data-dir={}", folder.join("data").display()),
        format!("--listen-client-urls=http://127.0.0.1:{client_port}"),
        format!("--advertise-client-urls=http://127.0.0.1:{client_port}"),
        format!("--listen-peer-urls=http://127.0.0.1:{peer_port}"),
        format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer_port}"),
        "--heartbeat-interval=50".to_owned(),
        "--election-timeout=500".to_owned(),
    ]
}
