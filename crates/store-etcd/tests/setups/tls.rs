//! Certificates: with those that fit all works, and those that do not are told as what they are.

use std::error::Error as _;
use std::path::Path;

use lock_spi::{Effect, ErrorKind, LockStore};
use test_servers::{Authority, Etcd, Issued};

use super::node::{assert_locks_end_by_themselves, connect, node_on};

const HERE: &[&str] = &["127.0.0.1"];

struct Setup {
    authority: Authority,
    client: Issued,
    server: Etcd,
}

fn setup(own: impl Fn(&Authority) -> Issued) -> Setup {
    let authority = Authority::new().unwrap();
    let client = authority.issue(&["client"]).unwrap();
    let own = own(&authority);
    let server = Etcd::builder().tls(&authority, &own).start().unwrap();
    Setup {
        authority,
        client,
        server,
    }
}

impl Setup {
    fn with_good_certificates() -> Self {
        setup(|authority| authority.issue(HERE).unwrap())
    }

    fn url(&self, authority: &Path, client: Option<&Issued>) -> String {
        let client = client.map(|Issued { certificate, key }| {
            format!("&cert={}&key={}", certificate.display(), key.display())
        });
        let [host] = &*self.server.endpoints() else {
            panic!("one member");
        };
        let authority = authority.display();
        format!(
            "etcds://{host}?ca={authority}{}",
            client.unwrap_or_default()
        )
    }

    fn good_url(&self) -> String {
        self.url(self.authority.certificate(), Some(&self.client))
    }
}

/// What the operator reads: the error and its causes.
async fn refused(url: &str) -> (ErrorKind, String) {
    let error = connect(url).await.map(drop).unwrap_err();
    assert_eq!(error.effect(), Effect::None, "{error:?}");
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let words: Vec<_> = causes.map(ToString::to_string).collect();
    (error.kind(), words.join(": "))
}

#[tokio::test]
async fn locks_work_over_certificates_that_fit() {
    let setup = Setup::with_good_certificates();
    let etcd = connect(&setup.good_url()).await.unwrap();
    let node = node_on(etcd).await.unwrap();
    let session = node.session().await;
    let (grant, attempt) = node.take(session, "k").await;
    let kept = node.keep(session, &[&grant], &[attempt]).await.unwrap();
    assert_eq!(kept.unwrap().gone, []);
    assert_locks_end_by_themselves(&node).await;
    assert!(
        node.store
            .delete_if_owner(&grant.key, grant.token)
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn certificates_that_do_not_fit_are_denied_and_the_reason_is_named() {
    let good = Setup::with_good_certificates();
    let stranger = Authority::new().unwrap();
    let theirs = stranger.issue(&["client"]).unwrap();
    let expired = good.authority.issue_expired(&["client"]).unwrap();
    let ours = good.authority.certificate();
    for (url, words) in [
        (
            good.url(stranger.certificate(), Some(&good.client)),
            "UnknownIssuer",
        ),
        (good.url(ours, None), "refuses this client's certificate"),
        (
            good.url(ours, Some(&theirs)),
            "refuses this client's certificate",
        ),
        (
            good.url(ours, Some(&expired)),
            "refuses this client's certificate",
        ),
    ] {
        let (kind, told) = refused(&url).await;
        assert_eq!(kind, ErrorKind::Denied, "{url}: {told}");
        assert!(told.contains(words), "{url}: {told}");
    }
    let elsewhere = setup(|authority| authority.issue(&["elsewhere"]).unwrap());
    let (kind, told) = refused(&elsewhere.good_url()).await;
    assert_eq!(kind, ErrorKind::Denied, "{told}");
    assert!(told.contains("not valid for name"), "{told}");
    let late = setup(|authority| authority.issue_expired(HERE).unwrap());
    let (kind, told) = refused(&late.good_url()).await;
    assert_eq!(kind, ErrorKind::Denied, "{told}");
    assert!(told.contains("expired"), "{told}");
}

#[tokio::test]
async fn a_key_of_another_certificate_is_a_mistake_of_the_call() {
    let setup = Setup::with_good_certificates();
    let mixed = Issued {
        key: setup.authority.issue(&["other"]).unwrap().key,
        ..setup.client.clone()
    };
    let url = setup.url(setup.authority.certificate(), Some(&mixed));
    let (kind, told) = refused(&url).await;
    assert_eq!(kind, ErrorKind::InvalidRequest, "{told}");
}

#[tokio::test]
async fn tls_and_plain_text_do_not_meet() {
    let setup = Setup::with_good_certificates();
    let plain = Etcd::start().unwrap();
    let [host] = &*plain.endpoints() else {
        panic!("one member");
    };
    let tls = setup.good_url().replace(&setup.server.endpoints()[0], host);
    for url in [tls, format!("etcd://{}", setup.server.endpoints()[0])] {
        let (kind, told) = refused(&url).await;
        // It looks as if the server had gone away just then.
        assert_eq!(kind, ErrorKind::Unavailable, "{told}");
        assert!(told.contains("TLS"), "{url}: {told}");
    }
}

#[tokio::test]
async fn where_nobody_listens_is_no_matter_of_certificates() {
    let mut setup = Setup::with_good_certificates();
    let url = setup.good_url();
    setup.server.kill(0).unwrap();
    let (kind, told) = refused(&url).await;
    assert_eq!(kind, ErrorKind::Unavailable, "{told}");
}

/// One member whose certificate does not fit is as good as one that is down.
#[tokio::test]
async fn a_member_with_a_certificate_that_does_not_fit_is_left_for_another() {
    let setup = Setup::with_good_certificates();
    let late = setup.authority.issue_expired(HERE).unwrap();
    let late = Etcd::builder()
        .tls(&setup.authority, &late)
        .start()
        .unwrap();
    let hosts = [late.endpoints(), setup.server.endpoints()]
        .concat()
        .join(",");
    let url = setup
        .good_url()
        .replace(&setup.server.endpoints()[0], &hosts);
    for _ in 0..4 {
        let etcd = connect(&url).await.unwrap();
        let node = node_on(etcd).await.unwrap();
        let session = node.session().await;
        for _ in 0..4 {
            let (grant, _) = node.take(session, "k").await;
            assert!(
                node.store
                    .delete_if_owner(&grant.key, grant.token)
                    .await
                    .unwrap()
            );
        }
    }
}
