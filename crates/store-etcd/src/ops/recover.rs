use etcd_kv::{Compare, DeleteRequest, KeyRange, KeyValue, PutRequest, Txn, TxnResponse};
use lock_spi::{KeyPrefix, Result};

use super::Operation;
use super::meta::state;
use super::wish::get;
use crate::codec::{KeySpace, MetaValue, Value};

/// Begins a new term: ends every grant, place and session in one step.
#[derive(Debug)]
pub(crate) struct Recover<'a> {
    pub(crate) keys: &'a KeySpace,
    pub(crate) expected: i64,
    pub(crate) value: &'a MetaValue,
}

impl Operation for Recover<'_> {
    /// The state as it is now.
    type Reply = Option<KeyValue>;

    fn txn(&self) -> Txn {
        let meta = self.keys.meta();
        let ended = [
            self.keys.locks(&KeyPrefix::default()),
            self.keys.queues(),
            self.keys.sessions(),
            self.keys.epochs(),
        ];
        let removals = ended.map(|prefix| DeleteRequest::new(KeyRange::prefix(prefix)).into());
        Txn::when([Compare::mod_revision(meta.clone(), self.expected)])
            .then(
                [
                    PutRequest::new(meta.clone(), self.value.encode()).into(),
                    get(meta.clone()),
                ]
                .into_iter()
                .chain(removals),
            )
            .otherwise([get(meta)])
    }

    fn read_reply(&self, answer: TxnResponse) -> Result<Self::Reply> {
        state(answer)
    }
}
