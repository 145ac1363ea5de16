//! A simulated etcd and a real one, which are asked the same.

use std::sync::Arc;

use etcd_kv::{
    Applied, Header, KvError, KvErrorKind, LeaseGrant, MetadataStore, OpResponse, PutRequest,
    TimeToLive, TxnResponse, WatchRequest,
};
use etcd_mock::MockStore;
use lock_spi::Runtime;

use crate::steps::{Answer, Step};
use crate::watched::Watched;

/// Both have had the same revision all along.
pub(crate) struct Pair {
    pub(crate) simulated: MockStore,
    pub(crate) real: Arc<dyn MetadataStore>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) watches: Vec<Option<Watched>>,
}

impl Pair {
    /// Whatever came before, it goes on from one revision, and nothing before it can be read.
    pub(crate) async fn level(&mut self) {
        self.watches.clear();
        let revision = |answer: etcd_kv::PutResponse| answer.header.revision;
        let filler = || PutRequest::new("filler", "");
        let mut real = revision(self.real.put(filler()).await.expect("an answer"));
        while self.simulated.revision() < real {
            let filled = self.simulated.put(filler()).await;
            filled.expect("an answer");
        }
        while real < self.simulated.revision() {
            real = revision(self.real.put(filler()).await.expect("an answer"));
        }
        for store in [&self.simulated as &dyn MetadataStore, &*self.real] {
            store.compact(real).await.expect("something to compact");
        }
    }

    /// Takes a step on both.
    pub(crate) async fn take(&mut self, step: &Step) {
        match step {
            Step::CloseWatch(at) => {
                self.compare_watch(*at).await;
                drop(self.watches.get_mut(*at).map(Option::take));
            }
            Step::ReadWatch(at) => self.compare_watch(*at).await,
            Step::Watch(request) => self.watch(request).await,
            Step::Compact(_) => {
                self.compare_watches().await;
                // Whether the real server has come to these is its own affair.
                for watch in &mut self.watches {
                    watch.take_if(|watch| watch.is_behind());
                }
                self.ask(step).await;
            }
            _ => self.ask(step).await,
        }
        self.watches.iter_mut().flatten().for_each(Watched::look);
    }

    async fn ask(&self, step: &Step) {
        let simulated = answer(&self.simulated, step).await;
        let real = answer(&*self.real, step).await;
        assert_eq!(simulated, real, "the simulated one first, to {step:?}");
    }

    async fn watch(&mut self, request: &WatchRequest) {
        let began = self.simulated.revision();
        let simulated = self.simulated.watch(request.clone()).await;
        let real = self.real.watch(request.clone()).await;
        self.watches.push(match (simulated, real) {
            (Ok(simulated), Ok(real)) => Some(Watched::new(request, [simulated, real], began)),
            (Err(simulated), Err(real)) => {
                assert_eq!(refused(&simulated), refused(&real), "to {request:?}");
                None
            }
            (simulated, real) => panic!("{simulated:?} and {real:?} to {request:?}"),
        });
    }

    async fn compare_watch(&mut self, at: usize) {
        if let Some(Some(watch)) = self.watches.get_mut(at) {
            watch.compare(&*self.runtime).await;
        }
    }

    pub(crate) async fn compare_watches(&mut self) {
        for watch in self.watches.iter_mut().flatten() {
            watch.compare(&*self.runtime).await;
        }
    }
}

/// What one of them answers, without what each cluster has of its own, what a clock decides and
/// what the client of the real one cannot know.
async fn answer<M: MetadataStore + ?Sized>(
    store: &M,
    step: &Step,
) -> Result<Answer, (KvErrorKind, Applied)> {
    let answer = ask(store, step.clone()).await;
    answer.map_err(|error| refused(&error))
}

async fn ask<M: MetadataStore + ?Sized>(store: &M, step: Step) -> Result<Answer, KvError> {
    Ok(match step {
        Step::Compact(revision) => {
            store.compact(revision).await?;
            Answer::Done
        }
        Step::Delete(request) => {
            let mut answer = store.delete(request).await?;
            answer.header = neutral(answer.header);
            Answer::Deleted(answer)
        }
        Step::LeaseGrant { id, ttl } => {
            let LeaseGrant { header, id, ttl } = store.lease_grant(id, ttl).await?;
            let header = neutral(header);
            Answer::Granted(LeaseGrant { header, id, ttl })
        }
        Step::LeaseKeepAliveOnce(id) => {
            let mut answer = store.lease_keep_alive_once(id).await?;
            // The client has none when the server does not know the lease.
            answer.header = Header::default();
            Answer::KeptAlive(vec![answer])
        }
        Step::LeaseRevoke(id) => {
            store.lease_revoke(id).await?;
            Answer::Done
        }
        Step::LeaseTimeToLive(id) => {
            let answer = store.lease_time_to_live(id).await?;
            assert!(answer.ttl <= answer.granted_ttl, "{answer:?}");
            Answer::Left(TimeToLive {
                header: neutral(answer.header),
                ttl: answer.ttl.signum(),
                ..answer
            })
        }
        Step::Put(request) => {
            let mut answer = store.put(request).await?;
            answer.header = neutral(answer.header);
            Answer::Put(answer)
        }
        Step::Range(request) => {
            let mut answer = store.range(request).await?;
            answer.header = neutral(answer.header);
            Answer::Ranged(answer)
        }
        Step::Txn(txn) => Answer::Txn(plain(store.txn(txn).await?)),
        Step::Advance { .. }
        | Step::CloseKeepAlive(_)
        | Step::CloseWatch(_)
        | Step::KeepAlive { .. }
        | Step::ReadKeepAlive(_)
        | Step::ReadWatch(_)
        | Step::Watch(_) => unreachable!("no plain call"),
    })
}

/// Inside of an answer the client repeats the header of the whole.
fn plain(mut answer: TxnResponse) -> TxnResponse {
    answer.header = neutral(answer.header);
    for response in &mut answer.responses {
        *match response {
            OpResponse::Delete(answer) => &mut answer.header,
            OpResponse::Put(answer) => &mut answer.header,
            OpResponse::Range(answer) => &mut answer.header,
        } = Header::default();
    }
    answer
}

fn neutral(header: Header) -> Header {
    Header {
        revision: header.revision,
        ..Header::default()
    }
}

/// To a read, a real server does not say down to where it can be read.
fn refused(error: &KvError) -> (KvErrorKind, Applied) {
    let kind = match error.kind() {
        KvErrorKind::Compacted { .. } => KvErrorKind::Compacted {
            compact_revision: 0,
        },
        kind => kind,
    };
    (kind, error.applied())
}
