//! The simulated etcd answers as a real one does. Each test plays the same calls on both, from a
//! fresh store on, and compares every answer. Left out are ids and terms of the cluster, what a clock
//! decides, and what the client to the real one cannot know.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use etcd_kv::{
    Compare, CompareOp, Consistency, DeleteRequest, Header, KeyRange, KvError, KvErrorKind, Lease,
    LeaseId, MetadataStore, Op, OpResponse, Order, PutRequest, RangeRequest, Target, Txn,
    WatchRequest, WatchStream,
};
use etcd_mock::{Expiry, MockStore, Options};
use futures_util::StreamExt;
use lock_spi::{Runtime, TokioRuntime};
use store_etcd::EtcdClient;
use test_servers::Etcd;

const LEASE: LeaseId = LeaseId(7);
const OTHER: LeaseId = LeaseId(8);
/// More than anything that does come takes.
const LIMIT: Duration = Duration::from_secs(10);

/// A store, and what it has answered.
struct Record {
    store: Arc<dyn MetadataStore>,
    runtime: Arc<dyn Runtime>,
    answers: Vec<String>,
}

impl Record {
    fn note<T: Debug>(&mut self, call: &str, answer: Result<T, KvError>) {
        let answer = match answer {
            Ok(answer) => neutral(&format!("{answer:?}")),
            // To a read, a real server does not say down to where it can be read.
            Err(error) => match error.kind() {
                KvErrorKind::Compacted { .. } => "compacted".to_owned(),
                kind => format!("{kind:?}, applied: {:?}", error.applied()),
            },
        };
        self.answers.push(format!("{call} -> {answer}"));
    }

    async fn put(&mut self, request: PutRequest) {
        let call = format!("{request:?}");
        let answer = self.store.put(request).await;
        self.note(&call, answer);
    }

    async fn delete(&mut self, request: DeleteRequest) {
        let call = format!("{request:?}");
        let answer = self.store.delete(request).await;
        self.note(&call, answer);
    }

    async fn range(&mut self, request: RangeRequest) {
        let call = format!("{request:?}");
        let answer = self.store.range(request).await;
        self.note(&call, answer);
    }

    async fn txn(&mut self, txn: Txn) {
        let call = format!("{txn:?}");
        self.txn_of(&call, txn).await;
    }

    /// Without the headers inside of the answer: the client repeats the one of the whole.
    async fn txn_of(&mut self, call: &str, txn: Txn) {
        let mut answer = self.store.txn(txn).await;
        for response in answer.iter_mut().flat_map(|txn| &mut txn.responses) {
            *match response {
                OpResponse::Delete(answer) => &mut answer.header,
                OpResponse::Put(answer) => &mut answer.header,
                OpResponse::Range(answer) => &mut answer.header,
            } = Header::default();
        }
        self.note(call, answer);
    }

    async fn compact(&mut self, revision: i64) {
        let answer = self.store.compact(revision).await;
        self.note(&format!("compact to {revision}"), answer);
    }

    async fn grant(&mut self, id: LeaseId, ttl: i64) {
        let answer = self.store.lease_grant(id, ttl).await;
        self.note(&format!("grant {id:?} for {ttl} s"), answer);
    }

    async fn revoke(&mut self, id: LeaseId) {
        let answer = self.store.lease_revoke(id).await;
        self.note(&format!("revoke {id:?}"), answer);
    }

    /// Without the header: the client has none when the server does not know the lease.
    async fn keep_alive(&mut self, id: LeaseId) {
        let answer = self.store.lease_keep_alive_once(id).await;
        let answer = answer.map(|alive| (alive.id, alive.ttl));
        self.note(&format!("keep {id:?} alive"), answer);
    }

    /// Without the remaining time, which differs by what the calls took.
    async fn time_to_live(&mut self, id: LeaseId) {
        let answer = self.store.lease_time_to_live(id).await;
        let answer = answer.map(|left| (left.header, left.ttl < 0, left.granted_ttl, left.keys));
        self.note(&format!("time to live of {id:?}"), answer);
    }

    /// Reads the present state of everything.
    async fn all(&mut self) {
        self.range(RangeRequest::prefix("")).await;
    }

    /// The same without the values.
    async fn all_names(&mut self) {
        self.range(RangeRequest {
            keys_only: true,
            ..RangeRequest::prefix("")
        })
        .await;
    }

    async fn watch(&mut self, range: KeyRange, start: Option<i64>) -> WatchStream {
        let request = WatchRequest {
            start,
            prev_kv: true,
            ..WatchRequest::new(range)
        };
        self.store.watch(request).await.expect("a watch")
    }

    /// Notes what a watch shows, up to this revision or its end. How many changes come in one
    /// response is left out: a real server gathers those that a watch has to catch up with.
    async fn seen(&mut self, watch: &mut WatchStream, until: i64) {
        loop {
            let next = self.runtime.timeout(LIMIT, watch.next()).await;
            match next.expect("something to see").expect("no silent end") {
                Err(error) => return self.note("watch", Ok(error.kind())),
                Ok(response) => {
                    for event in response.events {
                        let last = event.kv.mod_revision >= until;
                        self.note("watch", Ok(event));
                        if last {
                            return;
                        }
                    }
                }
            }
        }
    }
}

/// The same without what each cluster has of its own.
fn neutral(answer: &str) -> String {
    let mut text = answer.to_owned();
    for name in ["cluster_id: ", "member_id: ", "raft_term: "] {
        let parts: Vec<_> = text.split(name).collect();
        let parts = parts.iter().enumerate().map(|(at, part)| match at {
            0 => part,
            _ => part.trim_start_matches(|c: char| c.is_ascii_digit()),
        });
        text = parts.collect::<Vec<_>>().join(name);
    }
    text
}

/// Plays on both, and compares.
fn assert_faithful(play: impl AsyncFn(&mut Record)) {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a tokio runtime");
    tokio.block_on(async {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
        let options = Options::default().with_expiry(Expiry::Scanned);
        let simulated = MockStore::in_step_with_options(Arc::clone(&runtime), options);
        let server = Etcd::start().expect("a server of etcd");
        let config = format!("etcd://{}", server.endpoints()[0]);
        let config = config.parse().expect("a URL");
        let real = EtcdClient::connect(config, Arc::clone(&runtime)).await;
        let stores: [Arc<dyn MetadataStore>; 2] = [
            Arc::new(simulated),
            Arc::new(real.expect("the server answers")),
        ];
        let mut answers = Vec::new();
        for store in stores {
            let mut record = Record {
                store,
                runtime: Arc::clone(&runtime),
                answers: Vec::new(),
            };
            play(&mut record).await;
            answers.push(record.answers);
        }
        let [simulated, real] = &answers[..] else {
            panic!("one record for each store")
        };
        for (simulated, real) in simulated.iter().zip(real) {
            assert_eq!(
                simulated, real,
                "the simulated one first, then the real one"
            );
        }
        assert_eq!(simulated.len(), real.len());
    });
}

fn put(key: &'static str) -> Op {
    PutRequest::new(key, "v").into()
}

fn delete(range: KeyRange) -> Op {
    DeleteRequest::new(range).into()
}

fn leased(key: &'static str, lease: Lease) -> PutRequest {
    PutRequest {
        lease,
        ..PutRequest::new(key, "w")
    }
}

#[test]
fn in_revisions_and_reads() {
    assert_faithful(async |record| {
        record.all().await;
        for key in ["c", "a", "b", "a"] {
            record.put(PutRequest::new(key, "v")).await;
        }
        let previous = PutRequest {
            prev_kv: true,
            ..PutRequest::new("a", "")
        };
        record.put(previous).await;
        record.put(PutRequest::new("", "v")).await;
        for range in [
            RangeRequest::prefix(""),
            RangeRequest::key("none"),
            RangeRequest::key(""),
            RangeRequest {
                limit: Some(2),
                ..RangeRequest::prefix("")
            },
            RangeRequest {
                limit: Some(1),
                order: Order::CreateRevision,
                ..RangeRequest::prefix("")
            },
            RangeRequest {
                count_only: true,
                ..RangeRequest::prefix("")
            },
            RangeRequest {
                keys_only: true,
                ..RangeRequest::prefix("")
            },
            RangeRequest {
                consistency: Consistency::Serializable,
                ..RangeRequest::key("a")
            },
        ] {
            record.range(range).await;
        }
        record.delete(DeleteRequest::key("none")).await;
        let previous = DeleteRequest {
            prev_kv: true,
            ..DeleteRequest::new(KeyRange::prefix(""))
        };
        record.delete(previous).await;
        record.put(PutRequest::new("a", "v")).await;
        record.all().await;
    });
}

#[test]
fn in_compaction() {
    assert_faithful(async |record| {
        for value in ["2", "3", "4"] {
            record.put(PutRequest::new("a", value)).await;
        }
        record.compact(3).await;
        for revision in 1..=5 {
            let past = RangeRequest {
                revision: Some(revision),
                ..RangeRequest::key("a")
            };
            record.range(past).await;
        }
        for revision in [3, 2, 5] {
            record.compact(revision).await;
        }
    });
}

#[test]
fn in_transactions() {
    assert_faithful(async |record| {
        let read = || Op::from(RangeRequest::key("a"));
        let all = || KeyRange::prefix("");
        for branch in [
            vec![],
            vec![read(), put("a"), read()],
            vec![put("a"), put("a")],
            vec![put("a"), delete(KeyRange::key("a"))],
            vec![put("ab"), delete(KeyRange::prefix("a"))],
            vec![delete(KeyRange::key("a")), put("a")],
            vec![delete(KeyRange::key("a")), delete(all())],
            vec![delete(KeyRange::key("none")), put("d")],
            // A real server does not see that these meet.
            vec![put("ab"), delete(all())],
            vec![delete(all()), put("ab")],
            vec![delete(all()), put("ab"), delete(all()), put("b")],
            vec![delete(KeyRange::key("none"))],
            vec![put("e"), leased("f", Lease::Attached(OTHER)).into()],
            vec![leased("none", Lease::Kept).into()],
            vec![put("")],
        ] {
            record.txn(Txn::default().then(branch.clone())).await;
            record.txn(Txn::default().otherwise(branch)).await;
        }
        for count in [128_usize, 129] {
            let puts = (0..count).map(|key| PutRequest::new(key.to_string(), "").into());
            record.txn(Txn::default().then(puts)).await;
        }
        record.all().await;
    });
}

#[test]
fn in_sizes() {
    assert_faithful(async |record| {
        const MIB: usize = 1024 * 1024;
        for size in [MIB * 14 / 10, MIB * 3 / 2, MIB * 19 / 10, MIB * 3] {
            let large = || PutRequest::new("large", vec![b'v'; size]);
            for txn in [None, Some(Txn::default().then([large().into()]))] {
                let answer = match txn {
                    None => record.store.put(large()).await.map(|_| ()),
                    Some(txn) => record.store.txn(txn).await.map(|_| ()),
                };
                record.note(&format!("{size} bytes"), answer);
            }
            let absent = Compare::value("none", vec![b'v'; size]);
            let branch = || [PutRequest::new("other", "").into()];
            let txn = Txn::when([absent]).then(branch()).otherwise(branch());
            record.txn_of(&format!("{size} bytes compared"), txn).await;
        }
        for count in [128, 129] {
            let compares = (0..count).map(|_| Compare::create_revision("none", 0));
            record.txn(Txn::when(compares)).await;
            let reads = (0..count).map(|_| RangeRequest::key("none").into());
            record.txn(Txn::default().otherwise(reads)).await;
        }
        record.all_names().await;
    });
}

#[test]
fn in_comparisons() {
    assert_faithful(async |record| {
        record.grant(LEASE, 60).await;
        record.put(PutRequest::new("empty", "")).await;
        record.put(leased("leased", Lease::Attached(LEASE))).await;
        for range in ["none", "empty", "leased"].map(KeyRange::key) {
            for op in [
                CompareOp::Equal,
                CompareOp::NotEqual,
                CompareOp::Less,
                CompareOp::Greater,
            ] {
                for target in [
                    Target::CreateRevision(0),
                    Target::ModRevision(2),
                    Target::Version(1),
                    Target::Lease(None),
                    Target::Lease(Some(LEASE)),
                    Target::Value("".into()),
                    Target::Value("v".into()),
                ] {
                    let range = range.clone();
                    record.txn(Txn::when([Compare { range, target, op }])).await;
                }
            }
        }
    });
}

#[test]
fn in_leases() {
    assert_faithful(async |record| {
        for (id, ttl) in [
            (1, 1),
            (2, 0),
            (3, -5),
            (4, 9_000_000_000),
            (5, 9_000_000_001),
            (7, 60),
            (7, 60),
            (8, 60),
        ] {
            record.grant(LeaseId(id), ttl).await;
        }
        record.keep_alive(LEASE).await;
        record.keep_alive(LeaseId(99)).await;
        record.time_to_live(LeaseId(99)).await;
        record.revoke(LeaseId(99)).await;
        for lease in [
            Lease::Attached(LeaseId(99)),
            Lease::Kept,
            Lease::Attached(LEASE),
            Lease::Kept,
            Lease::Attached(OTHER),
            Lease::Detached,
            Lease::Attached(OTHER),
        ] {
            record.put(leased("a", lease)).await;
            record.time_to_live(LEASE).await;
            record.time_to_live(OTHER).await;
        }
        record.put(leased("b", Lease::Attached(OTHER))).await;
        record.revoke(LEASE).await;
        record.all().await;
        record.revoke(OTHER).await;
        record.all().await;
    });
}

#[test]
fn in_expiry() {
    assert_faithful(async |record| {
        let mut watch = record.watch(KeyRange::prefix(""), None).await;
        let begin = record.runtime.now();
        record.grant(LEASE, 1).await;
        for key in ["b", "a"] {
            record.put(leased(key, Lease::Attached(LEASE))).await;
        }
        record.seen(&mut watch, 4).await;
        let passed = record.runtime.now().saturating_since(begin);
        assert!(passed >= Duration::from_secs(1), "{passed:?}");
        record.time_to_live(LEASE).await;
        record.keep_alive(LEASE).await;
        record.put(leased("a", Lease::Attached(LEASE))).await;
        record.all().await;
    });
}

/// Whether the lease stands on by then or not: nothing renews it, and the answer comes after its end.
#[test]
fn in_keepalives_that_come_too_late() {
    assert_faithful(async |record| {
        record.grant(LEASE, 1).await;
        record.put(leased("a", Lease::Attached(LEASE))).await;
        record.runtime.sleep(Duration::from_millis(1050)).await;
        record.keep_alive(LEASE).await;
        record.all().await;
        record.time_to_live(LEASE).await;
    });
}

#[test]
fn in_watches() {
    assert_faithful(async |record| {
        record.put(PutRequest::new("a", "2")).await;
        let mut present = record.watch(KeyRange::prefix(""), None).await;
        let mut past = record.watch(KeyRange::prefix(""), Some(2)).await;
        let mut future = record.watch(KeyRange::key("a"), Some(5)).await;
        record.txn(Txn::default().then([put("c"), put("b")])).await;
        record.put(PutRequest::new("a", "4")).await;
        record.put(PutRequest::new("a", "5")).await;
        record.delete(DeleteRequest::key("a")).await;
        for watch in [&mut present, &mut past, &mut future] {
            record.seen(watch, 6).await;
        }
        // A key that is put and deleted in one revision, which a real server lets pass.
        let all = || delete(KeyRange::prefix(""));
        let mut both = record.watch(KeyRange::prefix(""), None).await;
        record
            .txn(Txn::default().then([put("d"), all(), put("e")]))
            .await;
        record.txn(Txn::default().then([all(), put("e")])).await;
        record.put(PutRequest::new("f", "9")).await;
        record.seen(&mut both, 9).await;
        record.compact(4).await;
        for start in [3, 4] {
            let mut watch = record.watch(KeyRange::key("a"), Some(start)).await;
            record.seen(&mut watch, 6).await;
        }
    });
}
