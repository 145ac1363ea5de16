//! What was answered, in the interface's terms.

use etcd_client::proto::{
    PbDeleteResponse, PbEvent, PbKeyValue, PbLeaseGrantResponse, PbLeaseKeepAliveResponse,
    PbLeaseTimeToLiveResponse, PbPutResponse, PbRangeResponse, PbResponseHeader, PbResponseOp,
    PbTxnOpResponse, PbTxnResponse,
};
use etcd_kv::{
    Applied, DeleteResponse, EventKind, Header, KeepAliveResponse, KeyValue, KvError, KvErrorKind,
    LeaseGrant, LeaseId, OpResponse, PutResponse, RangeResponse, TimeToLive, TxnResponse,
    WatchEvent,
};

/// Every answer has a header; the store judges by it.
pub(super) fn header(header: Option<PbResponseHeader>) -> Result<Header, KvError> {
    header
        .map(present)
        .ok_or_else(|| nonsense("an answer without a header"))
}

fn present(header: PbResponseHeader) -> Header {
    let PbResponseHeader {
        cluster_id,
        member_id,
        revision,
        raft_term,
    } = header;
    Header {
        cluster_id,
        member_id,
        revision,
        raft_term,
    }
}

/// What was applied is not known when its answer cannot be read.
fn nonsense(message: &'static str) -> KvError {
    KvError::new(KvErrorKind::Protocol, Applied::Unknown, message)
}

pub(super) fn range(answer: PbRangeResponse) -> Result<RangeResponse, KvError> {
    let of = header(answer.header)?;
    Ok(ranged(of, answer))
}

fn ranged(header: Header, answer: PbRangeResponse) -> RangeResponse {
    RangeResponse {
        header,
        kvs: answer.kvs.into_iter().map(key_value).collect(),
        more: answer.more,
        count: count(answer.count),
    }
}

pub(super) fn put(answer: PbPutResponse) -> Result<PutResponse, KvError> {
    let of = header(answer.header)?;
    Ok(written(of, answer))
}

fn written(header: Header, answer: PbPutResponse) -> PutResponse {
    PutResponse {
        header,
        prev_kv: answer.prev_kv.map(key_value),
    }
}

pub(super) fn delete(answer: PbDeleteResponse) -> Result<DeleteResponse, KvError> {
    let of = header(answer.header)?;
    Ok(deleted(of, answer))
}

fn deleted(header: Header, answer: PbDeleteResponse) -> DeleteResponse {
    DeleteResponse {
        header,
        deleted: count(answer.deleted),
        prev_kvs: answer.prev_kvs.into_iter().map(key_value).collect(),
    }
}

pub(super) fn txn(answer: PbTxnResponse) -> Result<TxnResponse, KvError> {
    let header = header(answer.header)?;
    let responses = answer.responses.into_iter();
    Ok(TxnResponse {
        header,
        succeeded: answer.succeeded,
        responses: responses
            .map(|response| op(header, response))
            .collect::<Result<_, _>>()?,
    })
}

/// The headers inside say less than that of the whole, and sometimes nothing.
fn op(header: Header, answer: PbResponseOp) -> Result<OpResponse, KvError> {
    match answer.response {
        Some(PbTxnOpResponse::ResponseDeleteRange(answer)) => {
            Ok(OpResponse::Delete(deleted(header, answer)))
        }
        Some(PbTxnOpResponse::ResponsePut(answer)) => Ok(OpResponse::Put(written(header, answer))),
        Some(PbTxnOpResponse::ResponseRange(answer)) => {
            Ok(OpResponse::Range(ranged(header, answer)))
        }
        Some(PbTxnOpResponse::ResponseTxn(_)) | None => {
            Err(nonsense("an operation that was not asked for was answered"))
        }
    }
}

pub(super) fn lease_grant(answer: PbLeaseGrantResponse) -> Result<LeaseGrant, KvError> {
    Ok(LeaseGrant {
        header: header(answer.header)?,
        id: LeaseId(answer.id),
        ttl: answer.ttl,
    })
}

pub(super) fn keep_alive(answer: PbLeaseKeepAliveResponse) -> Result<KeepAliveResponse, KvError> {
    Ok(KeepAliveResponse {
        header: header(answer.header)?,
        id: LeaseId(answer.id),
        ttl: answer.ttl,
    })
}

pub(super) fn time_to_live(answer: PbLeaseTimeToLiveResponse) -> Result<TimeToLive, KvError> {
    let mut keys: Vec<_> = answer.keys.into_iter().map(Into::into).collect();
    keys.sort_unstable();
    Ok(TimeToLive {
        header: header(answer.header)?,
        id: LeaseId(answer.id),
        ttl: answer.ttl,
        granted_ttl: answer.granted_ttl,
        keys,
    })
}

pub(super) fn event(event: PbEvent) -> Result<WatchEvent, KvError> {
    let kind = match event.r#type {
        0 => EventKind::Put,
        1 => EventKind::Delete,
        _ => return Err(nonsense("an event of an unknown type")),
    };
    let kv = event.kv.ok_or_else(|| nonsense("an event without a key"))?;
    Ok(WatchEvent {
        kind,
        kv: key_value(kv),
        prev_kv: event.prev_kv.map(key_value),
    })
}

fn key_value(kv: PbKeyValue) -> KeyValue {
    let PbKeyValue {
        key,
        create_revision,
        mod_revision,
        version,
        value,
        lease,
    } = kv;
    KeyValue {
        key: key.into(),
        value: value.into(),
        create_revision,
        mod_revision,
        version,
        lease: (lease != 0).then_some(LeaseId(lease)),
    }
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: PbResponseHeader = PbResponseHeader {
        cluster_id: 1,
        member_id: 2,
        revision: 3,
        raft_term: 4,
    };

    fn stored(lease: i64) -> PbKeyValue {
        PbKeyValue {
            key: b"k".into(),
            create_revision: 5,
            mod_revision: 6,
            version: 7,
            value: b"v".into(),
            lease,
        }
    }

    #[test]
    fn every_number_finds_its_place() {
        let answer = range(PbRangeResponse {
            header: Some(HEADER),
            kvs: vec![stored(0), stored(8)],
            more: true,
            count: 9,
        })
        .unwrap();
        let expected = Header {
            cluster_id: 1,
            member_id: 2,
            revision: 3,
            raft_term: 4,
        };
        assert_eq!(answer.header, expected);
        assert!(answer.more);
        assert_eq!(answer.count, 9);
        let [free, leased] = &*answer.kvs else {
            panic!("{answer:?}");
        };
        assert_eq!((free.lease, leased.lease), (None, Some(LeaseId(8))));
        let numbers = (free.create_revision, free.mod_revision, free.version);
        assert_eq!(numbers, (5, 6, 7));
        assert_eq!((&*free.key, &*free.value), (&b"k"[..], &b"v"[..]));
    }

    #[test]
    fn an_answer_without_a_header_may_have_been_applied() {
        let error = put(PbPutResponse::default()).unwrap_err();
        assert_eq!(error.kind(), KvErrorKind::Protocol);
        assert_eq!(error.applied(), Applied::Unknown);
    }

    #[test]
    fn inside_a_transaction_the_header_of_the_whole_counts() {
        let inner = PbRangeResponse {
            header: None,
            ..PbRangeResponse::default()
        };
        let answer = txn(PbTxnResponse {
            header: Some(HEADER),
            succeeded: true,
            responses: vec![PbResponseOp {
                response: Some(PbTxnOpResponse::ResponseRange(inner)),
            }],
        })
        .unwrap();
        let [OpResponse::Range(inner)] = &*answer.responses else {
            panic!("{answer:?}");
        };
        assert_eq!(inner.header, answer.header);
        let empty = PbTxnResponse {
            header: Some(HEADER),
            succeeded: true,
            responses: vec![PbResponseOp { response: None }],
        };
        assert_eq!(txn(empty).unwrap_err().kind(), KvErrorKind::Protocol);
    }

    #[test]
    fn events_are_told_apart_and_strange_ones_refused() {
        let of = |r#type, kv| PbEvent {
            r#type,
            kv,
            prev_kv: None,
        };
        assert_eq!(event(of(0, Some(stored(0)))).unwrap().kind, EventKind::Put);
        assert_eq!(
            event(of(1, Some(stored(0)))).unwrap().kind,
            EventKind::Delete
        );
        assert!(event(of(2, Some(stored(0)))).is_err());
        assert!(event(of(1, None)).is_err());
    }
}
