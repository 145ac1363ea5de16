use bytes::Bytes;
use etcd_kv::{Compare, KeyValue, PutRequest, Txn, TxnResponse};
use lock_spi::{Result, SessionId};

use super::Operation;
use super::reply::Replies;
use super::wish::{get, lease};
use crate::codec::{KeySpace, SessionValue, Value};

/// Writes a session under its lease.
#[derive(Debug)]
pub(crate) struct Open<'a> {
    pub(crate) keys: &'a KeySpace,
    pub(crate) session: SessionId,
    pub(crate) meta: i64,
    pub(crate) value: &'a SessionValue,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum OpenReply {
    Opened {
        epoch: i64,
    },
    /// It stands already; the epoch is 0 when there is none.
    Stands {
        value: SessionValue,
        epoch: i64,
    },
    MetaChanged(Option<KeyValue>),
}

impl Operation for Open<'_> {
    type Reply = OpenReply;

    fn txn(&self) -> Txn {
        let session = self.keys.session(self.session);
        let epoch = self.keys.epoch(self.session);
        let put = |key, value| PutRequest::new(key, value).with_lease(lease(self.session));
        Txn::when([
            Compare::mod_revision(self.keys.meta(), self.meta),
            Compare::create_revision(session.clone(), 0),
        ])
        .then([
            put(session.clone(), self.value.encode()).into(),
            put(epoch.clone(), Bytes::new()).into(),
        ])
        .otherwise([get(session), get(epoch), get(self.keys.meta())])
    }

    fn read_reply(&self, answer: TxnResponse) -> Result<OpenReply> {
        if answer.succeeded {
            let epoch = answer.header.revision;
            return Ok(OpenReply::Opened { epoch });
        }
        let mut replies = Replies::of(answer);
        let session = replies.kv()?;
        let epoch = replies.modified()?;
        match session {
            Some(kv) => Ok(OpenReply::Stands {
                value: SessionValue::decode(&kv.value)?,
                epoch,
            }),
            None => Ok(OpenReply::MetaChanged(replies.kv()?)),
        }
    }
}
