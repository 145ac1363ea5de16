//! The state of the namespace as this store object knows it.

use etcd_kv::{Header, KeyValue};
use lock_spi::{Error, FencingToken, FloorViolation, Result};

use crate::codec::{MetaValue, State, Value, token};
use crate::error::nonsense;
use crate::horizon::{Horizon, Seen};

/// The state with the revision that wrote it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Meta {
    pub(crate) value: MetaValue,
    pub(crate) revision: i64,
}

/// The state of the namespace and how far the cluster has come.
#[derive(Debug)]
pub(crate) struct Standing {
    meta: Meta,
    horizon: Horizon,
}

impl Meta {
    /// The state that a new namespace begins with.
    pub(crate) const fn first(cluster_id: u64) -> MetaValue {
        MetaValue {
            term: 0,
            state: State::Open,
            recovery: None,
            cluster_id,
            watermark: None,
        }
    }

    pub(crate) fn read(kv: Option<&KeyValue>) -> Result<Self> {
        let kv = kv.ok_or_else(|| nonsense("the state of the namespace is missing"))?;
        Ok(Self {
            value: MetaValue::decode(&kv.value)?,
            revision: kv.mod_revision,
        })
    }

    pub(crate) fn is_open(&self) -> bool {
        self.value.state == State::Open
    }

    /// The state with a watermark no lower than `floor`.
    pub(crate) fn with_watermark(&self, floor: FencingToken) -> MetaValue {
        MetaValue {
            watermark: self.value.watermark.max(Some(floor)),
            ..self.value.clone()
        }
    }
}

impl Standing {
    /// What is known after the first look. A namespace that was written for another cluster is a
    /// copy: nothing is granted in it until it is recovered.
    pub(crate) fn new(meta: Meta, header: Header) -> Result<Self> {
        let mut horizon = Horizon::new(meta.value.term, header);
        if meta.value.cluster_id != header.cluster_id {
            let token = token(meta.value.term, header.revision)?;
            let floor = meta.value.watermark.unwrap_or(token);
            horizon.violate(FloorViolation { token, floor });
        }
        Ok(Self { meta, horizon })
    }

    pub(crate) fn meta(&self) -> Meta {
        self.meta.clone()
    }

    pub(crate) fn seen(&self) -> Seen {
        self.horizon.seen()
    }

    pub(crate) fn observe(&mut self, before: Seen, header: Header) -> bool {
        self.horizon.observe(before, header)
    }

    /// Takes in the state as an answer shows it; with a higher term everything begins anew.
    pub(crate) fn adopt(&mut self, meta: Meta, header: Header) -> Result<()> {
        if meta.value.term > self.meta.value.term {
            *self = Self::new(meta, header)?;
        } else if meta.value.term == self.meta.value.term && meta.revision > self.meta.revision {
            self.meta = meta;
        }
        Ok(())
    }

    pub(crate) fn violate(&mut self, violation: FloorViolation) {
        self.horizon.violate(violation);
    }

    pub(crate) fn violation(&self) -> Option<Error> {
        let violation = self.horizon.violation()?;
        Some(Error::floor_violated(
            violation,
            "the cluster has gone back or is a copy; recover the namespace",
        ))
    }
}

#[cfg(test)]
mod tests {
    use lock_spi::ErrorKind;

    use super::*;

    fn meta(term: u64, revision: i64) -> Meta {
        let value = MetaValue {
            term,
            ..Meta::first(1)
        };
        Meta { value, revision }
    }

    fn header(revision: i64) -> Header {
        Header {
            cluster_id: 1,
            revision,
            ..Header::default()
        }
    }

    #[test]
    fn an_older_state_that_arrives_late_is_not_adopted() {
        let mut standing = Standing::new(meta(3, 20), header(30)).unwrap();
        for older in [meta(3, 10), meta(2, 25)] {
            standing.adopt(older, header(31)).unwrap();
            assert_eq!(standing.meta(), meta(3, 20));
        }
        standing.adopt(meta(3, 21), header(32)).unwrap();
        assert_eq!(standing.meta().revision, 21);
    }

    #[test]
    fn a_higher_term_begins_the_memory_anew() {
        let mut standing = Standing::new(meta(3, 20), header(30)).unwrap();
        let token = FencingToken::new(1).unwrap();
        let floor = token;
        standing.violate(FloorViolation { token, floor });
        standing.adopt(meta(4, 5), header(6)).unwrap();
        assert!(standing.violation().is_none());
        assert_eq!(standing.seen().revision, 6);
    }

    #[test]
    fn a_copy_in_another_cluster_is_told() {
        let mut other = header(30);
        other.cluster_id = 2;
        let standing = Standing::new(meta(0, 20), other).unwrap();
        let error = standing.violation().unwrap();
        assert_eq!(error.kind(), ErrorKind::FloorViolated);
    }

    #[test]
    fn a_watermark_only_rises() {
        let (low, high) = (FencingToken::new(5).unwrap(), FencingToken::new(9).unwrap());
        let mut meta = meta(0, 1);
        meta.value = meta.with_watermark(high);
        assert_eq!(meta.with_watermark(low).watermark, Some(high));
    }
}
