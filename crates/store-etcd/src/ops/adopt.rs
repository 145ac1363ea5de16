use bytes::Bytes;
use etcd_kv::{Compare, KeyValue, PutRequest, Txn, TxnResponse};
use lock_spi::{Result, SessionId};

use super::Operation;
use super::reply::Replies;
use super::wish::{get, lease};
use crate::codec::{KeySpace, SessionValue, Value};

/// Rewrites a session for another store object, and raises its epoch: every creating request that
/// the former one has sent fails from now on.
#[derive(Debug)]
pub(crate) struct Adopt<'a> {
    pub(crate) keys: &'a KeySpace,
    pub(crate) session: SessionId,
    pub(crate) meta: i64,
    /// The revision of the session as it was read.
    pub(crate) read: i64,
    pub(crate) value: &'a SessionValue,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum AdoptReply {
    Adopted {
        epoch: i64,
    },
    /// Something has changed since it was read: what stands now.
    Changed {
        session: Option<KeyValue>,
    },
}

impl Operation for Adopt<'_> {
    type Reply = AdoptReply;

    fn txn(&self) -> Txn {
        let session = self.keys.session(self.session);
        let put = |key, value| PutRequest::new(key, value).with_lease(lease(self.session));
        Txn::when([
            Compare::mod_revision(self.keys.meta(), self.meta),
            Compare::mod_revision(session.clone(), self.read),
        ])
        .then([
            put(session.clone(), self.value.encode()).into(),
            put(self.keys.epoch(self.session), Bytes::new()).into(),
        ])
        .otherwise([get(session)])
    }

    fn read_reply(&self, answer: TxnResponse) -> Result<AdoptReply> {
        if answer.succeeded {
            let epoch = answer.header.revision;
            return Ok(AdoptReply::Adopted { epoch });
        }
        let session = Replies::of(answer).kv()?;
        Ok(AdoptReply::Changed { session })
    }
}
