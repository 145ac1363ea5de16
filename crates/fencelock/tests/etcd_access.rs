//! Guards on an etcd that does not let everybody in.

use std::sync::Arc;
use std::time::Duration;

use fencelock::spi::{Runtime, TokioRuntime};
use fencelock::{Client, ErrorKind};
use test_servers::{Authority, Etcd};

#[tokio::test]
async fn a_guard_is_kept_over_certificates() {
    let authority = Authority::new().unwrap();
    let own = authority.issue(&["127.0.0.1"]).unwrap();
    let etcd = Etcd::builder().tls(&authority, &own).start().unwrap();
    let shown = authority.issue(&["client"]).unwrap();
    let url = format!(
        "etcds://{}?ttl=3s&ca={}&cert={}&key={}",
        etcd.endpoints().join(","),
        authority.certificate().display(),
        shown.certificate.display(),
        shown.key.display(),
    );
    let client = Client::connect(&url).await.unwrap();
    let guard = client.acquire("k").await.unwrap();
    let token = guard.check().unwrap();
    // Longer than its ttl.
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    runtime.sleep(Duration::from_secs(4)).await;
    assert_eq!(guard.check().unwrap(), token);
    guard.release().await.unwrap();
    client.shutdown().await;
}

#[tokio::test]
async fn who_has_the_wrong_password_is_denied_and_no_error_shows_it() {
    let mut etcd = Etcd::start().unwrap();
    etcd.limit_to("locks", "secret", "/dlock/").unwrap();
    let url = |password| format!("etcd://locks:{password}@{}", etcd.endpoints()[0]);
    let refused = Client::connect(&url("guessed")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Denied);
    assert!(!refused.is_retryable());
    assert!(!format!("{refused:?}").contains("guessed"));
    let client = Client::connect(&url("secret")).await.unwrap();
    let guard = client.try_acquire("k").await.unwrap().guard();
    guard.unwrap().release().await.unwrap();
    client.shutdown().await;
}
