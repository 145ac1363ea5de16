//! A candidate: this test once more, in a process of its own that can be killed.

use std::collections::BTreeMap;
use std::env;
use std::io;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fencelock::Client;
use fencelock::spi::{Payload, Runtime, TokioRuntime};

use crate::KEY;
use crate::resource::Writer;

const NAME: &str = "FENCELOCK_CANDIDATE";
const STORE: &str = "FENCELOCK_CANDIDATE_STORE";
const RESOURCE: &str = "FENCELOCK_CANDIDATE_RESOURCE";

/// Processes that stand; none of them outlives this.
pub(crate) struct Candidates {
    test: String,
    store: String,
    resource: SocketAddr,
    alive: BTreeMap<String, Child>,
    started: usize,
}

impl Candidates {
    pub(crate) fn new(test: &str, store: &str, resource: SocketAddr) -> Self {
        Self {
            test: test.to_owned(),
            store: store.to_owned(),
            resource,
            alive: BTreeMap::new(),
            started: 0,
        }
    }

    pub(crate) fn start(&mut self) {
        let name = format!("candidate {}", self.started);
        let process = Command::new(env::current_exe().unwrap())
            .args(["--nocapture", "--exact", &self.test])
            .env(NAME, &name)
            .env(STORE, &self.store)
            .env(RESOURCE, self.resource.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        self.alive.insert(name, process.unwrap());
        self.started += 1;
    }

    pub(crate) fn kill(&mut self, name: &str) {
        let mut process = self.alive.remove(name).unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

impl Drop for Candidates {
    fn drop(&mut self) {
        for process in self.alive.values_mut() {
            // One that has ended by itself cannot be killed.
            drop(process.kill());
            drop(process.wait());
        }
    }
}

/// Whether this process is a candidate.
pub(crate) fn is_one() -> bool {
    env::var_os(NAME).is_some()
}

/// Leads whenever it can, and writes to the resource while it does; ends with the resource.
pub(crate) async fn stand() {
    let name = env::var(NAME).unwrap();
    let address = env::var(RESOURCE).unwrap().parse().unwrap();
    let store = format!(
        "{}&owner={}",
        env::var(STORE).unwrap(),
        name.replace(' ', "-")
    );
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    let mut writer = Writer::connect(address, &name).await;
    let election = Client::connect(&store)
        .await
        .unwrap()
        .election(KEY)
        .unwrap();
    loop {
        let payload = Payload::new(name.clone()).unwrap();
        let Ok(leadership) = election.campaign(payload).await else {
            continue;
        };
        let work = async {
            while let Ok(token) = leadership.check() {
                writer.write(token).await?;
                runtime.sleep(Duration::from_millis(10)).await;
            }
            io::Result::Ok(())
        };
        if let Ok(Err(_resource_is_gone)) = leadership.run(work).await {
            return;
        }
    }
}
