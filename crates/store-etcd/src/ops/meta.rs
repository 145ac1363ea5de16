use etcd_kv::{Compare, KeyValue, PutRequest, Txn, TxnResponse};
use lock_spi::Result;

use super::Operation;
use super::reply::Replies;
use super::wish::get;
use crate::codec::{KeySpace, MetaValue, Value};

/// Writes the state of the namespace, if it is still the one that was read.
#[derive(Debug)]
pub(crate) struct WriteMeta<'a> {
    pub(crate) keys: &'a KeySpace,
    /// The mod revision that was read; 0 when there was none.
    pub(crate) expected: i64,
    pub(crate) value: &'a MetaValue,
}

impl Operation for WriteMeta<'_> {
    /// The state as it is now.
    type Reply = Option<KeyValue>;

    fn txn(&self) -> Txn {
        let meta = self.keys.meta();
        Txn::when([Compare::mod_revision(meta.clone(), self.expected)])
            .then([
                PutRequest::new(meta.clone(), self.value.encode()).into(),
                get(meta.clone()),
            ])
            .otherwise([get(meta)])
    }

    fn read_reply(&self, answer: TxnResponse) -> Result<Self::Reply> {
        state(answer)
    }
}

/// The state as it is now: put and read back, or only read.
pub(super) fn state(answer: TxnResponse) -> Result<Option<KeyValue>> {
    let succeeded = answer.succeeded;
    let mut replies = Replies::of(answer);
    if succeeded {
        replies.write()?;
    }
    replies.kv()
}
