use std::sync::Arc;
use std::time::Duration;

use etcd_kv::MetadataStore;
use lock_spi::{
    BoxFuture, Effect, Error, Grant, InsertOutcome, Instant, LockStore, Namespace,
    OpenSessionRequest, Owner, Queue, Result, Runtime, SessionId, Ttl,
};
use store_etcd::{EtcdClient, EtcdConfig, EtcdLockStore};
use test_servers::{Etcd, EtcdBuilder};

use crate::common::{Node, seconds};
use crate::live::stored::Stored;
use crate::live::until::until;
use crate::live::ways;

/// Of a session that is to outlive whatever happens to the cluster, however slow the machine is.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// How long nothing may come of what could still come.
const AFTERMATH: Duration = Duration::from_secs(1);

/// A cluster of three, and a namespace that nobody has used before.
pub(crate) struct Stage {
    pub(crate) etcd: Etcd,
    pub(crate) namespace: Namespace,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(Etcd::builder())
    }

    pub(crate) fn with(builder: EtcdBuilder) -> Self {
        Self {
            etcd: builder.members(3).start().expect("a cluster of etcd"),
            namespace: ways::fresh_namespace(),
        }
    }

    /// Who leads, and the two that follow.
    pub(crate) fn roles(&self) -> (usize, [usize; 2]) {
        let leader = self.etcd.leader().unwrap();
        (leader, others(leader))
    }

    /// A way to these members, which begins with the first of them.
    pub(crate) async fn client(&self, members: &[usize]) -> EtcdClient {
        let all = self.etcd.endpoints();
        let hosts: Vec<_> = members.iter().map(|&member| all[member].clone()).collect();
        client_at(&hosts).await
    }

    /// A store object of a new process that reaches these members.
    pub(crate) async fn node(&self, members: &[usize]) -> Node<EtcdClient> {
        self.node_on(self.client(members).await).await
    }

    pub(crate) async fn node_on<M: MetadataStore + Clone>(&self, kv: M) -> Node<M> {
        let runtime = ways::runtime();
        let config = EtcdConfig::new(self.namespace.clone());
        let store = EtcdLockStore::open(kv.clone(), Arc::clone(&runtime), config).await;
        Node {
            store: store.expect("the namespace can be opened"),
            kv,
            runtime,
        }
    }

    /// A look past the store through these members.
    pub(crate) async fn stored(&self, members: &[usize]) -> Stored {
        let hosts: Vec<_> = self.etcd.endpoints();
        let hosts: Vec<_> = members.iter().map(|&member| &*hosts[member]).collect();
        Stored {
            etcd: ways::connect(&hosts.join(",")).await,
            namespace: self.namespace.clone(),
        }
    }
}

/// A way to these hosts, which begins with the first of them.
pub(crate) async fn client_at(hosts: &[String]) -> EtcdClient {
    let config = ways::config(&hosts.join(",")).with_request_timeout(seconds(1));
    let in_order = Arc::new(InOrder(ways::runtime()));
    let client = EtcdClient::connect(config, in_order).await;
    client.expect("a member answers")
}

/// All but this one.
pub(crate) fn others(member: usize) -> [usize; 2] {
    [(member + 1) % 3, (member + 2) % 3]
}

/// Opens a session of this ttl.
pub(crate) async fn open<M: MetadataStore>(node: &Node<M>, ttl: Duration) -> SessionId {
    let request = OpenSessionRequest {
        session: SessionId::random(&*node.runtime),
        owner: Owner::new("worker").unwrap(),
        ttl: Ttl::new(ttl).unwrap(),
    };
    node.store.open_session(request).await.unwrap().session
}

/// Repeats a call until it has an outcome.
pub(crate) async fn insist<T>(what: &str, mut call: impl AsyncFnMut() -> Result<T>) -> T {
    until(what, async || match call().await {
        Ok(outcome) => Some(outcome),
        Err(error) => {
            assert_transient(&error);
            None
        }
    })
    .await
}

/// Tries for a key until there is an outcome: always the same attempt, so that a try without an answer
/// does not stand in the way of the next.
pub(crate) async fn insist_on<M: MetadataStore + Clone>(
    node: &Node<M>,
    session: SessionId,
    text: &str,
) -> InsertOutcome {
    let attempt = node.attempt();
    let insert = async || node.insert(session, text, attempt, Queue::Never).await;
    insist("an outcome", insert).await
}

/// Ends a grant. A try without an answer may have been the one that did.
pub(crate) async fn release<M: MetadataStore + Clone>(node: &Node<M>, grant: &Grant) {
    let mut unsettled = false;
    let ended = insist("a release", async || {
        let told = node.store.delete_if_owner(&grant.key, grant.token).await;
        unsettled |= told
            .as_ref()
            .is_err_and(|error| error.effect() == Effect::Unknown);
        told
    });
    assert!(ended.await || unsettled);
}

/// Somebody who cannot reach a majority says so, and nothing else.
#[track_caller]
pub(crate) fn assert_transient(error: &Error) {
    assert!(error.is_retryable(), "{error:?}");
}

/// Nothing stands below this name of the namespace, now and for a while.
pub(crate) async fn assert_stays_free(stored: &Stored, name: &str) {
    let runtime = ways::runtime();
    let end = runtime.now() + AFTERMATH;
    while runtime.now() < end {
        let found = stored.below(name).await;
        assert!(found.is_empty(), "{found:?}");
        runtime.sleep(Duration::from_millis(50)).await;
    }
}

/// Draws nothing but zeros.
#[derive(Debug)]
struct InOrder(Arc<dyn Runtime>);

impl Runtime for InOrder {
    fn now(&self) -> Instant {
        self.0.now()
    }

    fn wall_clock(&self) -> Duration {
        self.0.wall_clock()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        self.0.sleep_until(deadline)
    }

    fn spawn(&self, task: BoxFuture<()>) {
        self.0.spawn(task);
    }

    fn random(&self) -> u64 {
        0
    }
}
