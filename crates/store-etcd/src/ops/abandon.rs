use bytes::Bytes;
use etcd_kv::{Compare, DeleteRequest, Op, Txn, TxnResponse};
use lock_spi::Result;

use super::Operation;
use super::reply::Replies;
use super::wish::Wish;
use crate::codec::LockEntry;

/// Removes the attempt's ticket and sees to it that nothing of the attempt can arrive any more.
#[derive(Debug)]
pub(crate) struct Abandon<'a> {
    pub(crate) wish: Wish<'a>,
    pub(crate) form: AbandonForm,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AbandonForm {
    /// Every creating request of the attempt was answered: nothing can arrive.
    Answered,
    /// Something may arrive: the epoch rises as well.
    Unanswered,
    /// Something may arrive and the store is full, where nothing can be put: the epoch goes, and
    /// whoever inserts next bumps it back.
    Full,
}

/// What the attempt's key looks like after that.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Abandoned {
    /// The epoch that was put, with which all that was sent before is settled.
    pub(crate) epoch: Option<i64>,
    pub(crate) lock: Option<LockEntry>,
}

impl Operation for Abandon<'_> {
    type Reply = Abandoned;

    fn txn(&self) -> Txn {
        let Self { wish, form } = self;
        let remove_ticket = || Op::from(DeleteRequest::key(wish.ticket()));
        match form {
            AbandonForm::Answered => Txn::default().then([remove_ticket(), wish.get_lock()]),
            AbandonForm::Unanswered => Txn::when([Compare::exists(wish.session())])
                .then([
                    wish.put(wish.epoch(), Bytes::new()),
                    remove_ticket(),
                    wish.get_lock(),
                ])
                .otherwise([remove_ticket(), wish.get_lock()]),
            AbandonForm::Full => Txn::default().then([
                DeleteRequest::key(wish.epoch()).into(),
                remove_ticket(),
                wish.get_lock(),
            ]),
        }
    }

    fn read_reply(&self, answer: TxnResponse) -> Result<Abandoned> {
        let succeeded = answer.succeeded;
        let mut replies = Replies::of(answer);
        let put = self.form == AbandonForm::Unanswered && succeeded;
        if put || self.form == AbandonForm::Full {
            replies.write()?;
        }
        replies.write()?;
        Ok(Abandoned {
            epoch: put.then_some(replies.header.revision),
            lock: replies.lock()?,
        })
    }
}
