use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::etcd::Etcd;
use crate::etcd::member::{Member, Ports};
use crate::etcd::network::Network;
use crate::etcd::programs::{self, Programs};
use crate::etcd::tls::Tls;
use crate::server::{Launch, Server};
use crate::{folder, ports};

/// How often it is tried on ports of its own: someone may take one between its choice and its use.
const STARTS: usize = 3;

/// What a cluster of etcd is to be like; one server, unless said otherwise.
///
/// # Examples
///
/// ```
/// use test_servers::Etcd;
///
/// let etcd = Etcd::builder()
///     .members(3)
///     .peers_behind_proxies()
///     .argument("--auto-compaction-retention=1")
///     .start()?;
/// let leader = etcd.leader()?;
/// etcd.isolate(leader)?; // the others elect a new one
/// etcd.heal()?;
/// # anyhow::Ok(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it starts"]
pub struct EtcdBuilder {
    members: usize,
    election_timeout: Duration,
    peers_behind_proxies: bool,
    stallable_disk: bool,
    fsync: bool,
    tls: Option<Tls>,
    arguments: Vec<String>,
    program: Option<PathBuf>,
}

impl Default for EtcdBuilder {
    fn default() -> Self {
        Self {
            members: 1,
            election_timeout: Duration::from_millis(500),
            peers_behind_proxies: false,
            stallable_disk: false,
            fsync: false,
            tls: None,
            arguments: Vec::new(),
            program: None,
        }
    }
}

impl EtcdBuilder {
    /// How many members the cluster has.
    pub fn members(mut self, count: usize) -> Self {
        self.members = count;
        self
    }

    /// After how long without a leader a new one is elected; half a second unless said otherwise.
    /// Heartbeats come ten times as often, and no lease is shorter than one and a half of it.
    pub fn election_timeout(mut self, timeout: Duration) -> Self {
        self.election_timeout = timeout;
        self
    }

    /// One more argument for every member, as `--quota-backend-bytes=16777216`.
    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Lets the members reach each other by links that can be cut: [`Etcd::cut`],
    /// [`Etcd::isolate`].
    pub fn peers_behind_proxies(mut self) -> Self {
        self.peers_behind_proxies = true;
        self
    }

    /// Lets the disk of each member stall on demand: [`Etcd::stall_disk`]. The members then wait for
    /// the disk, which slows them down.
    pub fn stallable_disk(mut self) -> Self {
        self.stallable_disk = true;
        self
    }

    /// Lets the members wait for the disk, as they do in production. Otherwise those that can leave
    /// it out do.
    pub fn fsync(mut self) -> Self {
        self.fsync = true;
        self
    }

    /// Another program than the usual one; its `etcdctl` stands beside it or in `PATH`.
    pub fn program(mut self, server: impl Into<PathBuf>) -> Self {
        self.program = Some(server.into());
        self
    }

    pub(super) fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Starts the cluster and waits until each of its members serves.
    ///
    /// # Errors
    ///
    /// When there is no etcd, or it does not serve within half a minute; or there is no `strace` to
    /// stall a disk by.
    pub fn start(&self) -> Result<Etcd> {
        ensure!(self.members > 0, "a cluster has at least one member");
        if self.stallable_disk {
            programs::strace()?;
        }
        let programs = match &self.program {
            Some(named) => Programs::of(named.clone())?,
            None => Programs::find()?,
        };
        for _ in 1..STARTS {
            if let Ok(etcd) = self.try_start(&programs) {
                return Ok(etcd);
            }
        }
        self.try_start(&programs)
    }

    fn try_start(&self, programs: &Programs) -> Result<Etcd> {
        let mut etcd = self.assemble(programs)?;
        for member in &mut etcd.members {
            member.server.start()?;
        }
        etcd.await_ready()?;
        Ok(etcd)
    }

    /// A new cluster of which no member is started.
    fn assemble(&self, programs: &Programs) -> Result<Etcd> {
        let ports: Vec<_> = (0..self.members).map(|_| choose()).collect::<Result<_>>()?;
        let network = if self.peers_behind_proxies {
            let peers: Vec<_> = ports.iter().map(|ports| ports.peer).collect();
            Some(Network::between(&peers)?)
        } else {
            None
        };
        let peers: Vec<_> = (0..self.members)
            .map(|number| match network {
                Some(_) => Network::address(number),
                None => format!("127.0.0.1:{}", ports[number].peer),
            })
            .collect();
        let home = folder::private()?;
        let mut members = Vec::new();
        for (number, &ports) in ports.iter().enumerate() {
            let folder = home.join(format!("m{number}"));
            fs::create_dir(&folder)?;
            let mut arguments = self.own_arguments(&folder, number, ports);
            arguments.extend(self.common_arguments(&home, &peers));
            arguments.push(format!(
                "--initial-advertise-peer-urls=http://{}",
                peers[number]
            ));
            if programs.can_leave_out_fsync && !self.stallable_disk && !self.fsync {
                arguments.push("--unsafe-no-fsync".to_owned());
            }
            let network = network.as_ref();
            let gate = network.map(|network| network.environment(number));
            let server = Server::new(&Launch {
                folder: &folder,
                user: None,
                program: &programs.server,
                arguments: &arguments,
                environment: gate.into_iter().chain(architecture()).collect(),
                foreign: "ETCD_",
            })?;
            members.push(Member { ports, server });
        }
        let mut etcd = Etcd::new(programs.clone(), members, network);
        etcd.ctl_options = self.tls.iter().flat_map(Tls::ctl_options).collect();
        Ok(etcd)
    }

    fn own_arguments(&self, folder: &Path, number: usize, ports: Ports) -> Vec<String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let clients = format!("{scheme}://127.0.0.1:{}", ports.client);
        vec![
            format!("--name=m{number}"),
            format!("--data-dir={}", folder.join("data").display()),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls=http://127.0.0.1:{}", ports.peer),
            format!("--listen-metrics-urls=http://127.0.0.1:{}", ports.metrics),
        ]
    }

    /// What is the same for all members.
    fn common_arguments(&self, home: &Path, peers: &[String]) -> Vec<String> {
        let cluster: Vec<_> = peers
            .iter()
            .enumerate()
            .map(|(number, peer)| format!("m{number}=http://{peer}"))
            .collect();
        let election = self.election_timeout.as_millis();
        let mut arguments = vec![
            format!("--initial-cluster={}", cluster.join(",")),
            format!("--initial-cluster-token={}", home.display()),
            format!("--heartbeat-interval={}", election / 10),
            format!("--election-timeout={election}"),
        ];
        arguments.extend(self.tls.iter().flat_map(Tls::arguments));
        arguments.extend(self.arguments.iter().cloned());
        arguments
    }
}

/// Without it, etcd before 3.5 refuses to start on this architecture.
fn architecture() -> Option<(String, String)> {
    let setting = ("ETCD_UNSUPPORTED_ARCH".to_owned(), "arm64".to_owned());
    cfg!(target_arch = "aarch64").then_some(setting)
}

fn choose() -> Result<Ports> {
    Ok(Ports {
        client: ports::free()?,
        peer: ports::free()?,
        metrics: ports::free()?,
    })
}
