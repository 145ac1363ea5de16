use etcd_kv::{DeleteRequest, Txn, TxnResponse};
use lock_spi::Result;

use super::Operation;
use crate::codec::KeySpace;

/// Changes nothing, but goes through raft: its answer shows how far the cluster really is.
#[derive(Debug)]
pub(crate) struct Confirm<'a> {
    pub(crate) keys: &'a KeySpace,
}

impl Operation for Confirm<'_> {
    type Reply = ();

    fn txn(&self) -> Txn {
        Txn::default().then([DeleteRequest::key(self.keys.nothing()).into()])
    }

    fn read_reply(&self, _answer: TxnResponse) -> Result<()> {
        Ok(())
    }
}
