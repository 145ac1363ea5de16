//! What is kept in a real etcd refuses stale tokens, in the transaction that writes.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use etcd_client::{Client, Compare, CompareOp, GetOptions, Txn, TxnOp};
use lock_fence::{FencingToken, etcd};
use test_servers::Etcd;

const MARK: &str = "/reports/fence";
const DATA: &str = "/reports/latest";

/// A writer to one etcd.
struct Writer {
    client: Client,
}

impl Writer {
    async fn to(server: &Etcd) -> Self {
        let client = Client::connect(server.endpoints(), None).await.unwrap();
        Self { client }
    }

    /// Whether the write under this token came about, on this further condition.
    async fn writes_if(&mut self, mark: &str, token: u64, condition: Option<Compare>) -> bool {
        let token = FencingToken::new(token).unwrap();
        let mut writes = vec![TxnOp::put(DATA, token.to_string(), None)];
        writes.extend(etcd::remember(mark, token));
        let conditions: Vec<_> = condition
            .into_iter()
            .chain([etcd::compare(mark, token)])
            .collect();
        let txn = Txn::new().when(conditions).and_then(writes);
        self.client.txn(txn).await.unwrap().succeeded()
    }

    async fn writes(&mut self, mark: &str, token: u64) -> bool {
        self.writes_if(mark, token, None).await
    }

    async fn data(&mut self) -> String {
        let found = self.client.get(DATA, None).await.unwrap();
        found.kvs()[0].value_str().unwrap().to_owned()
    }

    async fn marks(&mut self, mark: &str) -> Vec<String> {
        let prefix = GetOptions::new().with_prefix();
        let found = self
            .client
            .get(format!("{mark}/"), Some(prefix))
            .await
            .unwrap();
        let keys = found
            .kvs()
            .iter()
            .map(|kv| kv.key_str().unwrap().to_owned());
        keys.collect()
    }
}

fn run(test: impl AsyncFnOnce(Writer)) {
    let server = Etcd::start().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        test(Writer::to(&server).await).await;
    });
}

/// B151: a resource refuses an old token after a new one, and admits an equal one.
#[test]
fn an_old_token_writes_nothing_and_an_equal_one_writes() {
    run(async |mut writer| {
        for (token, written) in [(7, true), (9, true), (9, true), (8, false), (10, true)] {
            assert_eq!(writer.writes(MARK, token).await, written, "{token}");
        }
        assert_eq!(writer.data().await, "10");
    });
}

/// B151: a new resource admits the first token, whatever it is.
#[test]
fn a_new_resource_admits_any_first_token() {
    run(async |mut writer| {
        for (mark, first) in [("/a", 1), ("/b", 10), ("/c", FencingToken::MAX.as_u64())] {
            assert!(writer.writes(mark, first).await, "{first}");
        }
        assert!(!writer.writes("/c", FencingToken::MAX.as_u64() - 1).await);
    });
}

#[test]
fn tokens_are_compared_as_numbers_and_one_mark_is_left() {
    run(async |mut writer| {
        for token in [9, 10, 99, 100] {
            assert!(writer.writes(MARK, token).await, "{token}");
        }
        assert!(!writer.writes(MARK, 99).await);
        assert_eq!(
            writer.marks(MARK).await,
            ["/reports/fence/00000000000000000100"]
        );
    });
}

#[test]
fn resources_whose_names_begin_alike_do_not_know_each_other() {
    run(async |mut writer| {
        assert!(writer.writes("/a", 50).await);
        for other in ["/a0", "/a/b", "/a/7", "/a.", "/", ""] {
            assert!(writer.writes(other, 1).await, "{other}");
        }
        assert!(!writer.writes("/a", 49).await);
        assert!(writer.writes("/a", 50).await);
    });
}

#[test]
fn a_write_that_fails_for_another_reason_remembers_nothing() {
    run(async |mut writer| {
        let never = Compare::version(DATA, CompareOp::Greater, 100);
        assert!(!writer.writes_if(MARK, 9, Some(never)).await);
        assert!(writer.marks(MARK).await.is_empty());
        assert!(writer.writes(MARK, 8).await);
    });
}
