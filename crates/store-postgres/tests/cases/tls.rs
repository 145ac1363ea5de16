//! Certificates: with those that fit all works, and those that do not are told as what they are.

use std::error::Error as _;
use std::path::Path;

use lock_spi::{Effect, ErrorKind, LockStore};
use store_postgres::PostgresLockStore;
use test_servers::{Authority, Issued, Postgres};

use super::support::take;
use crate::stage::{DATABASE, Node, client, config, key, runtime, server, with_schema};

const HERE: &[&str] = &["127.0.0.1"];

struct Setup {
    authority: Authority,
    server: Postgres,
}

impl Setup {
    async fn showing(own: impl Fn(&Authority) -> Issued) -> Self {
        let authority = Authority::new().unwrap();
        let own = own(&authority);
        let server = with_schema(Postgres::builder().tls(&own).start().unwrap()).await;
        Self { authority, server }
    }

    async fn with_good_certificates() -> Self {
        Self::showing(|authority| authority.issue(HERE).unwrap()).await
    }

    fn url(&self, authority: &Path) -> String {
        format!(
            "postgres://postgres@{}/{DATABASE}?sslmode=verify-full&sslrootcert={}",
            self.server.address(),
            authority.display()
        )
    }

    fn good_url(&self) -> String {
        self.url(self.authority.certificate())
    }
}

/// What the operator reads: the error and its causes.
async fn refused(url: &str) -> (ErrorKind, String) {
    let store = PostgresLockStore::connect(client(url), runtime(), config()).await;
    let error = store.map(drop).unwrap_err();
    assert_eq!(error.effect(), Effect::None, "{error:?}");
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let words: Vec<_> = causes.map(ToString::to_string).collect();
    (error.kind(), format!("{error}: {}", words.join(": ")))
}

/// Notifications too, which have a connection of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_work_over_certificates_that_fit() {
    let setup = Setup::with_good_certificates().await;
    let node = Node::at(&setup.good_url()).await;
    let other = Node::at(&setup.good_url()).await;
    let grant = take(&node, &key("k")).await;
    assert!(node.renew(&[&grant]).await.unwrap().is_some());
    let wait = other.store.await_release(other.enqueue(&grant.key).await);
    let release = async { node.release(&grant).await.unwrap() };
    let (woken, released) = tokio::join!(wait, release);
    woken.unwrap();
    assert!(released);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_that_do_not_fit_are_denied_and_the_reason_is_named() {
    let good = Setup::with_good_certificates().await;
    let stranger = Authority::new().unwrap();
    let elsewhere = Setup::showing(|authority| authority.issue(&["elsewhere"]).unwrap()).await;
    let late = Setup::showing(|authority| authority.issue_expired(HERE).unwrap()).await;
    for (url, words) in [
        (good.url(stranger.certificate()), "UnknownIssuer"),
        (elsewhere.good_url(), "not valid for name"),
        (late.good_url(), "expired"),
    ] {
        let (kind, told) = refused(&url).await;
        assert_eq!(kind, ErrorKind::Denied, "{url}: {told}");
        assert!(told.contains(words), "{url}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_and_plain_text_do_not_meet() {
    let setup = Setup::with_good_certificates().await;
    let plain = server().await;
    let tls = setup
        .good_url()
        .replace(&setup.server.address(), &plain.address());
    let unencrypted = format!(
        "postgres://postgres@{}/{DATABASE}?sslmode=disable",
        setup.server.address()
    );
    for (url, words) in [(tls, "TLS"), (unencrypted, "no encryption")] {
        let (kind, told) = refused(&url).await;
        assert_eq!(kind, ErrorKind::Denied, "{url}: {told}");
        assert!(told.contains(words), "{url}: {told}");
    }
}
