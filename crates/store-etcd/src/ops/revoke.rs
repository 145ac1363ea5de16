use etcd_kv::{Compare, DeleteRequest, KeyValue, Op, PutRequest, Txn, TxnResponse};
use lock_spi::{FencingToken, LockKey, Result, RevocationId};

use super::Operation;
use super::reply::Replies;
use super::wish::get;
use crate::codec::{KeySpace, RevocationValue, Value, decode_floor, encode_floor};

/// Reads what a revoke must know.
#[derive(Debug)]
pub(crate) struct Survey<'a> {
    pub(crate) keys: &'a KeySpace,
    pub(crate) key: &'a LockKey,
    pub(crate) id: RevocationId,
}

/// What it shows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Surveyed {
    /// What an earlier copy of this revoke did.
    pub(crate) record: Option<RevocationValue>,
    /// As it is stored: what cannot be read can be revoked all the same.
    pub(crate) lock: Option<KeyValue>,
    pub(crate) floor: Option<FencingToken>,
    pub(crate) floor_revision: i64,
    pub(crate) meta: Option<KeyValue>,
    pub(crate) revision: i64,
}

impl Operation for Survey<'_> {
    type Reply = Surveyed;

    fn txn(&self) -> Txn {
        Txn::default().then([
            get(self.keys.revocation(self.key, self.id)),
            get(self.keys.lock(self.key)),
            get(self.keys.floor(self.key)),
            get(self.keys.meta()),
        ])
    }

    fn read_reply(&self, answer: TxnResponse) -> Result<Surveyed> {
        let mut replies = Replies::of(answer);
        let record = replies.kv()?;
        let lock = replies.kv()?;
        let floor = replies.kv()?;
        Ok(Surveyed {
            record: record
                .map(|kv| RevocationValue::decode(&kv.value))
                .transpose()?,
            lock,
            floor_revision: floor.as_ref().map_or(0, |kv| kv.mod_revision),
            floor: floor.map(|kv| decode_floor(&kv.value)).transpose()?,
            meta: replies.kv()?,
            revision: replies.header.revision,
        })
    }
}

/// Ends the grant that was surveyed, raises the floor and writes the record, in one step.
#[derive(Debug)]
pub(crate) struct Revoke<'a> {
    pub(crate) survey: Survey<'a>,
    /// The mod revision of the lock; 0 when there is none.
    pub(crate) lock: i64,
    pub(crate) floor: i64,
    pub(crate) meta: i64,
    pub(crate) record: &'a RevocationValue,
}

impl Operation for Revoke<'_> {
    /// Whether it was done; if not, something has changed since the survey.
    type Reply = bool;

    fn txn(&self) -> Txn {
        let Survey { keys, key, id } = self.survey;
        let (lock, floor) = (keys.lock(key), keys.floor(key));
        let record = keys.revocation(key, id);
        let end: Option<Op> = (self.lock > 0).then(|| DeleteRequest::key(lock.clone()).into());
        Txn::when([
            Compare::mod_revision(lock, self.lock),
            Compare::mod_revision(floor.clone(), self.floor),
            Compare::mod_revision(keys.meta(), self.meta),
            Compare::create_revision(record.clone(), 0),
        ])
        .then(end.into_iter().chain([
            PutRequest::new(floor, encode_floor(self.record.new_floor)).into(),
            PutRequest::new(record, self.record.encode()).into(),
        ]))
    }

    fn read_reply(&self, answer: TxnResponse) -> Result<bool> {
        Ok(answer.succeeded)
    }
}
