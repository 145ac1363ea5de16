use std::sync::LazyLock;
use std::time::Duration;

use futures_util::future::join_all;
use lock_spi::{
    AttemptId, Effect, ErrorKind, FencingToken, Grant, KeyPrefix, LockStore, OpenSessionRequest,
    Owner, PageRequest, Queue, Result, SessionId, SessionLease, Ttl,
};
use store_etcd::{EtcdClient, EtcdConfig, EtcdLockStore};
use test_servers::{Cut, Etcd, Proxy};

use crate::common::{Node, granted, key};
use crate::live::keys::assert_locks_end_by_themselves;
use crate::live::stored::Stored;
use crate::live::until::until;
use crate::live::ways::{connect, fresh_namespace, runtime};

/// For tests that do not harm it; each has a namespace of its own.
static SHARED: LazyLock<Etcd> = LazyLock::new(|| Etcd::start().expect("a server of etcd"));

/// Of every session here. Nothing is to expire by itself, however slow the machine is.
pub(crate) const TTL: Duration = Duration::from_secs(60);

/// Two store objects on one namespace, one of them on a way that fails.
pub(crate) struct Stage {
    pub(crate) proxy: Proxy,
    /// Behind the proxy.
    pub(crate) node: Node<EtcdClient>,
    /// Past it.
    pub(crate) other: Node<EtcdClient>,
    pub(crate) stored: Stored,
}

/// Plays a row of the table once for each kind of cut, side by side. Afterwards no lock stands that no
/// lease would end.
pub(crate) async fn for_each_cut(row: impl AsyncFn(&Stage, Cut)) {
    let cuts = [Cut::BeforeRequest, Cut::AfterRequest, Cut::SwallowAnswer];
    let rows = cuts.map(async |cut| {
        let stage = Stage::at(&SHARED).await;
        row(&stage, cut).await;
        assert_locks_end_by_themselves(&stage.other.kv, &stage.stored.namespace).await;
    });
    join_all(rows).await;
}

/// Whether the server gets the request.
pub(crate) fn arrives(cut: Cut) -> bool {
    cut != Cut::BeforeRequest
}

async fn node(endpoint: &str, config: EtcdConfig) -> Node<EtcdClient> {
    let (kv, runtime) = (connect(endpoint).await, runtime());
    let store = EtcdLockStore::open(kv.clone(), runtime.clone(), config).await;
    let store = store.expect("the namespace can be opened");
    Node { store, kv, runtime }
}

impl Stage {
    pub(crate) async fn at(etcd: &Etcd) -> Self {
        let proxy = Proxy::to(&etcd.endpoints()[0]).unwrap();
        let endpoint = proxy.endpoint();
        Self::by(etcd, proxy, &endpoint).await
    }

    /// With no proxy on the way.
    pub(crate) async fn straight_at(etcd: &Etcd) -> Self {
        let endpoint = &etcd.endpoints()[0];
        Self::by(etcd, Proxy::to(endpoint).unwrap(), endpoint).await
    }

    async fn by(etcd: &Etcd, proxy: Proxy, endpoint: &str) -> Self {
        let namespace = fresh_namespace();
        let config = EtcdConfig::new(namespace.clone());
        let other = node(&etcd.endpoints()[0], config.clone()).await;
        let etcd = other.kv.clone();
        Self {
            node: node(endpoint, config).await,
            other,
            stored: Stored { etcd, namespace },
            proxy,
        }
    }

    /// Makes a call whose request with these bytes is cut, and heals the way.
    pub(crate) async fn cut<T>(
        &self,
        (cut, bytes): (Cut, Vec<u8>),
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let trap = self.proxy.arm(bytes, cut);
        let told = call.await;
        assert!(trap.has_sprung(), "{cut:?}: no such request");
        self.heal().await;
        if let Err(error) = &told {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{cut:?}: {error:?}");
        }
        told
    }

    /// Heals the way, and has the connections made anew: what a test cuts next is to get as far as
    /// the proxy.
    async fn heal(&self) {
        self.proxy.heal();
        let (store, all, page) = (
            &self.node.store,
            KeyPrefix::default(),
            PageRequest::default(),
        );
        // One goes to any member, the other to one that knows a leader.
        self.insist(async || store.read(&key("k")).await).await;
        self.insist(async || store.list(&all, page.clone()).await)
            .await;
    }

    /// Repeats a call until it has an outcome.
    pub(crate) async fn insist<T>(&self, mut call: impl AsyncFnMut() -> Result<T>) -> T {
        until("an outcome", async || match call().await {
            Ok(outcome) => Some(outcome),
            Err(error) if error.kind() == ErrorKind::Unavailable => None,
            Err(error) => panic!("{error:?}"),
        })
        .await
    }

    /// The request to open a session.
    pub(crate) fn opening(&self) -> OpenSessionRequest {
        OpenSessionRequest {
            session: SessionId::random(&*self.node.runtime),
            owner: Owner::new("worker").unwrap(),
            ttl: Ttl::new(TTL).unwrap(),
        }
    }

    pub(crate) async fn session_of(&self, node: &Node<EtcdClient>) -> SessionId {
        let request = self.opening();
        let opened: SessionLease = self
            .insist(async || node.store.open_session(request.clone()).await)
            .await;
        opened.session
    }

    /// A session behind the proxy.
    pub(crate) async fn session(&self) -> SessionId {
        self.session_of(&self.node).await
    }

    /// A grant of the other store object.
    pub(crate) async fn others(&self, text: &str) -> Grant {
        let session = self.session_of(&self.other).await;
        let attempt = self.other.attempt();
        let insert = async || (self.other.insert(session, text, attempt, Queue::Never)).await;
        granted(self.insist(insert).await)
    }

    /// A grant behind the proxy, and its attempt.
    pub(crate) async fn own(&self, session: SessionId, text: &str) -> (Grant, AttemptId) {
        let attempt = self.node.attempt();
        let insert = async || self.node.insert(session, text, attempt, Queue::Never).await;
        (granted(self.insist(insert).await), attempt)
    }

    /// Ends a grant of the other store object.
    pub(crate) async fn others_ends(&self, grant: &Grant) {
        let release = async || (self.other.store.delete_if_owner(&grant.key, grant.token)).await;
        assert!(self.insist(release).await);
    }

    /// The names below `family`.
    pub(crate) async fn names(&self, family: &str) -> Vec<String> {
        let root = self.stored.key(family);
        let all = self.stored.below(family).await;
        let name = |kv: etcd_kv::KeyValue| {
            let name = String::from_utf8(kv.key.into()).unwrap();
            name[root.len()..].to_owned()
        };
        all.into_iter().map(name).collect()
    }

    /// The server has this grant and no other of its key, as it was made: written once, by its token.
    pub(crate) async fn stands(&self, grant: &Grant) {
        let name = format!("lock/{}", grant.key.as_str());
        let lock = self.stored.at(&name).await.expect("it stands");
        let counter = lock.mod_revision.cast_unsigned();
        assert_eq!(grant.token, FencingToken::new(counter).unwrap());
        assert_eq!((lock.create_revision, lock.version), (lock.mod_revision, 1));
        assert_eq!(lock.lease.unwrap().0, grant.session.as_i64());
    }

    /// Closes a session and finds nothing of it left.
    pub(crate) async fn nothing_is_left_of(&self, session: SessionId) {
        self.insist(async || self.node.store.close_session(session).await)
            .await;
        for family in ["session/", "epoch/"] {
            let of_it = self.names(&format!("{family}{session}")).await;
            assert!(of_it.is_empty(), "{family}: {of_it:?}");
        }
        for family in ["lock/", "wait/"] {
            let own = self.stored.below(family).await;
            let own = own
                .iter()
                .find(|kv| kv.lease.unwrap().0 == session.as_i64());
            assert_eq!(own, None);
        }
    }

    /// The next grant of a key is above this one.
    pub(crate) async fn next_is_above(&self, text: &str, token: FencingToken) {
        let next = self.others(text).await;
        assert!(next.token > token, "{next:?} after {token}");
        self.stands(&next).await;
        let old = async || self.node.store.delete_if_owner(&key(text), token).await;
        assert!(!self.insist(old).await, "the old token ends nobody");
        self.stands(&next).await;
    }
}

/// What was told with effect `None` did not happen.
pub(crate) fn assert_honest<T>(told: &Result<T>, happened: bool) {
    if let Err(error) = told {
        assert!(!happened || error.effect() == Effect::Unknown, "{error:?}");
    }
}
