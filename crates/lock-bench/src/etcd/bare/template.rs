//! A recorded transaction, to be sent again for other keys.

use anyhow::{Context, Result, bail};
use etcd_client::{
    Compare as EtcdCompare, CompareOp as EtcdCompareOp, PutOptions, Txn as EtcdTxn, TxnOp,
};
use etcd_kv::{Compare, CompareOp, KeyRange, Lease, Op, RangeRequest, Target, Txn, prefix_end};

/// A transaction of the store, in which one key and one revision can be replaced.
#[derive(Debug)]
pub(super) struct Template {
    recorded: Txn,
    key: &'static str,
    revision: i64,
}

impl Template {
    /// Of a transaction for `key`. Where it compares with `revision`, another will take its place.
    ///
    /// Fails when there is something in it that this cannot send.
    pub(super) fn new(recorded: Txn, key: &'static str, revision: i64) -> Result<Self> {
        let template = Self {
            recorded,
            key,
            revision,
        };
        template.of(key, revision)?;
        Ok(template)
    }

    /// The same transaction for another key and another revision.
    pub(super) fn of(&self, key: &str, revision: i64) -> Result<EtcdTxn> {
        let Txn {
            when,
            then,
            otherwise,
        } = &self.recorded;
        let compare = |compare| self.compare(compare, key, revision);
        let ops =
            |ops: &[Op]| -> Result<Vec<_>> { ops.iter().map(|op| self.op(op, key)).collect() };
        Ok(EtcdTxn::new()
            .when(when.iter().map(compare).collect::<Result<Vec<_>>>()?)
            .and_then(ops(then)?)
            .or_else(ops(otherwise)?))
    }

    fn compare(&self, compare: &Compare, key: &str, revision: i64) -> Result<EtcdCompare> {
        let Compare { range, target, op } = compare;
        let (name, end) = match range {
            KeyRange::Key(name) => (self.renamed(name, key), None),
            KeyRange::Prefix(name) => {
                let name = self.renamed(name, key);
                let end = prefix_end(&name).context("a prefix without an end")?;
                (name, Some(end))
            }
            KeyRange::Span { .. } => bail!("a span is compared"),
        };
        let equal = match op {
            CompareOp::Equal => EtcdCompareOp::Equal,
            other => bail!("something is compared as {other:?}"),
        };
        let compare = match target {
            Target::CreateRevision(number) => EtcdCompare::create_revision(name, equal, *number),
            Target::ModRevision(number) if *number == self.revision => {
                EtcdCompare::mod_revision(name, equal, revision)
            }
            Target::ModRevision(number) => EtcdCompare::mod_revision(name, equal, *number),
            Target::Lease(Some(lease)) => EtcdCompare::lease(name, equal, lease.0),
            other => bail!("{other:?} is compared"),
        };
        Ok(match end {
            Some(end) => compare.with_range(end),
            None => compare,
        })
    }

    fn op(&self, op: &Op, key: &str) -> Result<TxnOp> {
        Ok(match op {
            Op::Range(read) if *read == RangeRequest::new(read.range.clone()) => {
                TxnOp::get(self.single(&read.range, key)?, None)
            }
            Op::Delete(delete) if !delete.prev_kv => {
                TxnOp::delete(self.single(&delete.range, key)?, None)
            }
            Op::Put(put) if !put.prev_kv => {
                let options = match put.lease {
                    Lease::Attached(lease) => PutOptions::new().with_lease(lease.0),
                    other => bail!("a put has the lease {other:?}"),
                };
                let name = self.renamed(&put.key, key);
                TxnOp::put(name, put.value.clone(), Some(options))
            }
            other => bail!("{other:?} is done"),
        })
    }

    /// The one key that is read or deleted.
    fn single(&self, range: &KeyRange, key: &str) -> Result<Vec<u8>> {
        match range {
            KeyRange::Key(name) => Ok(self.renamed(name, key)),
            other => bail!("{other:?} is read or deleted"),
        }
    }

    /// A stored name with `key` in the place of the one that was recorded.
    fn renamed(&self, name: &[u8], key: &str) -> Vec<u8> {
        let recorded = self.key.as_bytes();
        let at = name
            .windows(recorded.len())
            .position(|part| part == recorded);
        let Some(at) = at else {
            return name.to_vec();
        };
        let rest = &name[at + recorded.len()..];
        [&name[..at], key.as_bytes(), rest].concat()
    }
}

#[cfg(test)]
mod tests {
    use etcd_kv::{DeleteRequest, LeaseId, PutRequest};

    use super::*;

    fn recorded(then: Op) -> Txn {
        Txn::when([
            Compare::mod_revision("lock/recorded", 7),
            Compare::mod_revision("meta", 3),
            Compare::no_key_below("wait/recorded/"),
        ])
        .then([then])
        .otherwise([RangeRequest::key("lock/recorded").into()])
    }

    #[test]
    fn only_the_key_and_its_revision_are_replaced() {
        let put = PutRequest::new("lock/recorded", "v").with_lease(LeaseId(5));
        let template = Template::new(recorded(put.into()), "recorded", 7).unwrap();
        let equal = EtcdCompareOp::Equal;
        let expected = EtcdTxn::new()
            .when([
                EtcdCompare::mod_revision("lock/other", equal, 9),
                EtcdCompare::mod_revision("meta", equal, 3),
                EtcdCompare::create_revision("wait/other/", equal, 0).with_range("wait/other0"),
            ])
            .and_then([TxnOp::put(
                "lock/other",
                "v",
                Some(PutOptions::new().with_lease(5)),
            )])
            .or_else([TxnOp::get("lock/other", None)]);
        let found = template.of("other", 9).unwrap();
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    }

    #[test]
    fn what_cannot_be_sent_is_refused_and_not_left_out() {
        for op in [
            Op::from(PutRequest::new("lock/recorded", "")),
            Op::from(DeleteRequest::new(KeyRange::prefix("lock/"))),
            Op::from(RangeRequest::prefix("wait/")),
        ] {
            let shown = format!("{op:?}");
            assert!(
                Template::new(recorded(op), "recorded", 7).is_err(),
                "{shown}"
            );
        }
    }
}
