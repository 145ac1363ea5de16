//! A server that cannot be reached: every operation ends in time, by an error, and none has an
//! outcome.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use lock_spi::{
    AttemptId, Effect, Error, ErrorKind, Grant, InsertOutcome, KeyPrefix, LockStore,
    OpenSessionRequest, PageRequest, Queue, RecoverRequest, RecoveryId, Result, RevokeRequest,
    RevokeTarget, SessionId, WaitRequest,
};
use store_etcd::{EtcdClient, EtcdConfig, EtcdLockStore};
use test_servers::{Direction, Etcd, Proxy};

use crate::common::{granted, key, queued};
use crate::live::ways::{config, connect, runtime};
use crate::stage::Stage;

/// Far more than any operation may take, for a machine that is busy.
const IN_TIME: Duration = Duration::from_secs(15);

/// What an error may say of the effect of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tells {
    /// It only reads.
    Nothing,
    /// What it was to make sure of may be so or not, whatever became of its request.
    Maybe,
    /// Whether its request was sent.
    IfSent,
}

/// How the server cannot be reached.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// It died with calls under way.
    Broken,
    /// Nobody listens.
    Refused,
    /// It accepts, and never answers.
    Silent,
}

/// What each operation is tried on: they do not get into each other's way.
struct Cast {
    session: SessionId,
    kept: (Grant, AttemptId),
    released: Grant,
    revoking: RevokeRequest,
    tried: AttemptId,
    abandoned: AttemptId,
    waiting: WaitRequest,
    opening: OpenSessionRequest,
    closing: SessionId,
}

impl Cast {
    async fn enters(stage: &Stage) -> Self {
        let (session, closing) = (stage.session().await, stage.session().await);
        let revoked = stage.own(session, "revoked").await.0;
        stage.own(closing, "closing").await;
        stage.others("contended").await;
        let attempt = stage.node.attempt();
        let join = async || {
            (stage
                .node
                .insert(session, "contended", attempt, Queue::Join))
            .await
        };
        let place = Some(queued(stage.insist(join).await));
        Self {
            session,
            kept: stage.own(session, "kept").await,
            released: stage.own(session, "released").await.0,
            revoking: stage
                .node
                .revoke_request("revoked", RevokeTarget::Grant(revoked.token)),
            tried: stage.node.attempt(),
            abandoned: stage.node.attempt(),
            waiting: WaitRequest {
                key: key("contended"),
                session,
                attempt,
                place,
            },
            opening: stage.opening(),
            closing,
        }
    }

    /// Every operation of a lock store that asks its server, all at once.
    fn operations<'a>(&'a self, stage: &'a Stage) -> Vec<Operation<'a>> {
        let (node, store) = (&stage.node, &stage.node.store);
        let (admin, page) = (store.admin().unwrap(), PageRequest::default());
        let (grant, attempt) = &self.kept;
        vec![
            operation(
                "open_session",
                Tells::IfSent,
                store.open_session(self.opening.clone()),
            ),
            operation("keep_alive", Tells::Maybe, async {
                let attempts = [*attempt, self.waiting.attempt, self.tried];
                node.keep(self.session, &[grant, &self.released], &attempts)
                    .await
            }),
            operation(
                "close_session",
                Tells::Maybe,
                store.close_session(self.closing),
            ),
            operation("try_insert", Tells::IfSent, async {
                node.insert(self.session, "tried", self.tried, Queue::Join)
                    .await
            }),
            operation("try_insert of a waiter", Tells::Nothing, async {
                let attempt = self.waiting.attempt;
                node.insert(self.session, "contended", attempt, Queue::Join)
                    .await
            }),
            operation(
                "await_release",
                Tells::Nothing,
                store.await_release(self.waiting.clone()),
            ),
            operation(
                "extend",
                Tells::Maybe,
                store.extend(&grant.key, grant.token),
            ),
            operation("delete_if_owner", Tells::IfSent, async {
                store
                    .delete_if_owner(&self.released.key, self.released.token)
                    .await
            }),
            operation("abandon", Tells::Maybe, async {
                store
                    .abandon(&key("abandoned"), self.session, self.abandoned)
                    .await
            }),
            operation("read", Tells::Nothing, async {
                store.read(&key("kept")).await
            }),
            operation("list", Tells::Nothing, async {
                store
                    .list(&KeyPrefix::default(), PageRequest::default())
                    .await
            }),
            operation(
                "revoke",
                Tells::Nothing,
                store.revoke(self.revoking.clone()),
            ),
            operation("revocations", Tells::Nothing, async {
                store
                    .revocations(&key("revoked"), PageRequest::default())
                    .await
            }),
            operation("sessions", Tells::Nothing, admin.sessions(page)),
            operation("waiters", Tells::Nothing, async {
                admin.waiters(&key("contended")).await
            }),
            operation("diagnose", Tells::Nothing, admin.diagnose()),
            operation("migration", Tells::Nothing, admin.migration()),
            operation(
                "recover",
                Tells::Nothing,
                admin.recover(RecoverRequest {
                    id: RecoveryId::random(&*node.runtime),
                    above: None,
                    hold_off: Duration::ZERO,
                }),
            ),
        ]
    }

    /// All is as its caller was told, now that the server can be reached.
    async fn truth(&self, stage: &Stage, way: Way) {
        let store = &stage.node.store;
        let (grant, _) = &self.kept;
        let extended = stage.insist(async || store.extend(&grant.key, grant.token).await);
        assert_eq!(extended.await.map(|grant| grant.token), Some(grant.token));
        stage.stands(grant).await;
        let waiter = &self.waiting;
        let again = async || {
            (stage
                .node
                .insert(self.session, "contended", waiter.attempt, Queue::Join))
            .await
        };
        assert_eq!(
            queued(stage.insist(again).await).position,
            waiter.place.as_ref().unwrap().position
        );

        let opened = stage.insist(async || store.open_session(self.opening.clone()).await);
        assert_eq!(opened.await.session, self.opening.session);
        let try_again = async || {
            (stage
                .node
                .insert(self.session, "tried", self.tried, Queue::Join))
            .await
        };
        stage.stands(&granted(stage.insist(try_again).await)).await;
        let release =
            async || (store.delete_if_owner(&self.released.key, self.released.token)).await;
        let ended = stage.insist(release).await;
        assert!(ended || way != Way::Refused, "it was never sent");
        assert!(stage.stored.at("lock/released").await.is_none());
        let abandon = async || {
            store
                .abandon(&key("abandoned"), self.session, self.abandoned)
                .await
        };
        stage.insist(abandon).await;
        let over = async || {
            (stage
                .node
                .insert(self.session, "abandoned", self.abandoned, Queue::Join))
            .await
        };
        assert_eq!(stage.insist(over).await, InsertOutcome::Ended);
        let revoked = stage.insist(async || store.revoke(self.revoking.clone()).await);
        assert!(revoked.await.revoked);
        assert_eq!(stage.stored.below("revocation/").await.len(), 1);
        for session in [self.closing, self.opening.session, self.session] {
            stage.nothing_is_left_of(session).await;
        }
    }
}

struct Operation<'a> {
    name: &'static str,
    tells: Tells,
    call: BoxFuture<'a, Result<String>>,
}

fn operation<'a, T: Debug>(
    name: &'static str,
    tells: Tells,
    call: impl Future<Output = Result<T>> + Send + 'a,
) -> Operation<'a> {
    let call = call
        .map(|told| told.map(|outcome| format!("{outcome:?}")))
        .boxed();
    Operation { name, tells, call }
}

/// Makes every call, and looks at how each of them ends.
async fn all_end_by_errors(stage: &Stage, cast: &Cast, way: Way) {
    let calls = cast
        .operations(stage)
        .into_iter()
        .map(|operation| async move {
            let Operation { name, tells, call } = operation;
            let told = runtime().timeout(IN_TIME, call).await;
            let error = told.unwrap_or_else(|_| panic!("{name} does not end"));
            (name, tells, error.expect_err(name))
        });
    for (name, tells, error) in join_all(calls).await {
        assert_transient(name, &error);
        let effect = match (tells, way) {
            (Tells::Nothing, _) | (Tells::IfSent, Way::Refused) => Effect::None,
            (Tells::Maybe, _) | (Tells::IfSent, Way::Silent) => Effect::Unknown,
            (Tells::IfSent, Way::Broken) => continue,
        };
        assert_eq!(error.effect(), effect, "{name}: {error:?}");
    }
    // It asks nobody.
    assert_eq!(stage.node.store.reap_expired(9).await.unwrap(), 0);
}

fn assert_transient(what: &str, error: &Error) {
    let kinds = [ErrorKind::Unavailable, ErrorKind::NotLeader];
    assert!(kinds.contains(&error.kind()), "{what}: {error:?}");
}

/// B19: a server that dies in mid-use, and comes back within the ttl.
#[tokio::test]
async fn where_the_server_died_every_operation_is_an_error_and_nothing_is_lost() {
    let mut etcd = Etcd::start().unwrap();
    let stage = Stage::straight_at(&etcd).await;
    let cast = Cast::enters(&stage).await;
    etcd.kill(0).unwrap();
    all_end_by_errors(&stage, &cast, Way::Broken).await;
    etcd.restart(0).unwrap();
    cast.truth(&stage, Way::Broken).await;
}

/// A port on which nobody listens: what would have been sent provably was not.
#[tokio::test]
async fn where_nobody_listens_every_operation_is_an_error_and_nothing_was_done() {
    let mut etcd = Etcd::start().unwrap();
    let stage = Stage::straight_at(&etcd).await;
    let cast = Cast::enters(&stage).await;
    etcd.kill(0).unwrap();
    // The connections that stood may have broken under the first calls.
    for _ in 0..3 {
        let read = stage.node.store.read(&key("kept")).await;
        assert_transient("read", &read.unwrap_err());
        let (all, page) = (KeyPrefix::default(), PageRequest::default());
        let list = stage.node.store.list(&all, page);
        assert_transient("list", &list.await.unwrap_err());
    }
    all_end_by_errors(&stage, &cast, Way::Refused).await;
    etcd.restart(0).unwrap();
    cast.truth(&stage, Way::Refused).await;
}

/// B11: a server that takes everything in and never answers.
#[tokio::test]
async fn where_nobody_answers_every_operation_is_an_error_and_ends_in_time() {
    let etcd = Etcd::start().unwrap();
    let stage = Stage::at(&etcd).await;
    let cast = Cast::enters(&stage).await;
    stage.proxy.swallow(Direction::ToClient);
    all_end_by_errors(&stage, &cast, Way::Silent).await;
    stage.proxy.heal();
    cast.truth(&stage, Way::Silent).await;
}

/// The same for connecting, and for opening a namespace.
#[tokio::test]
async fn nobody_there_is_told_when_connecting() {
    let etcd = Etcd::start().unwrap();
    let proxy = Proxy::to(&etcd.endpoints()[0]).unwrap();
    let connected = connect(&proxy.endpoint()).await;
    proxy.swallow(Direction::ToClient);
    // Nothing listens on the port of discard.
    for endpoint in [proxy.endpoint(), "127.0.0.1:9".to_owned()] {
        let connecting = EtcdClient::connect(config(&endpoint), runtime());
        let told = runtime().timeout(IN_TIME, connecting).await;
        let error = told.expect("in time").unwrap_err();
        assert_transient(&endpoint, &error);
        assert_eq!(error.effect(), Effect::None);
    }
    let opening = EtcdLockStore::open(connected, runtime(), EtcdConfig::default());
    let told = runtime().timeout(IN_TIME, opening).await;
    assert_transient("open", &told.expect("in time").unwrap_err());
}
