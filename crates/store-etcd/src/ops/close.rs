use etcd_kv::{DeleteRequest, Txn, TxnResponse};
use lock_spi::{Result, SessionId};

use super::Operation;
use crate::codec::KeySpace;

/// Removes a session and its epoch, so that nothing can be inserted under it; its lease is revoked
/// next and takes the rest along. A session's id is unique for all time, so nothing is compared.
#[derive(Debug)]
pub(crate) struct Close<'a> {
    pub(crate) keys: &'a KeySpace,
    pub(crate) session: SessionId,
}

impl Operation for Close<'_> {
    type Reply = ();

    fn txn(&self) -> Txn {
        Txn::default().then([
            DeleteRequest::key(self.keys.session(self.session)).into(),
            DeleteRequest::key(self.keys.epoch(self.session)).into(),
        ])
    }

    fn read_reply(&self, _answer: TxnResponse) -> Result<()> {
        Ok(())
    }
}
