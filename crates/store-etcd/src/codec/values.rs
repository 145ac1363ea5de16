//! What stands in the values: JSON with a `format`, so that a later format is told from damage.

use std::time::Duration;

use bytes::Bytes;
use etcd_kv::KeyValue;
use lock_spi::{
    AttemptId, Effect, Error, ErrorKind, FencingToken, Owner, Payload, Reason, RecoveryId, Result,
    SessionId, Ttl,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::forms::{escaped, millis, optional_text, text, ttl_millis};

/// The format that this build writes and reads.
pub(crate) const FORMAT: u32 = 1;

/// A value that is stored under some key.
pub(crate) trait Value: Serialize + DeserializeOwned {
    /// What it is, for messages.
    const WHAT: &'static str;

    fn encode(&self) -> Bytes {
        let stamped = Stamped {
            format: FORMAT,
            value: self,
        };
        // Invariant: these types have text keys and no failing parts, so JSON can hold them.
        serde_json::to_vec(&stamped)
            .expect("a value cannot be written")
            .into()
    }

    /// Reads a stored value; errors have effect `None`, the caller knows what was sent.
    fn decode(bytes: &[u8]) -> Result<Self> {
        let format = format_of(bytes).ok_or_else(|| damaged(Self::WHAT, "it has no format"))?;
        if format != FORMAT {
            let message = format!(
                "{} of format {format}; this build speaks {FORMAT}",
                Self::WHAT
            );
            return Err(Error::new(ErrorKind::Incompatible, Effect::None, message));
        }
        let stamped: Stamped<Self> = serde_json::from_slice(bytes)
            .map_err(|source| damaged(Self::WHAT, "it cannot be read").with_source(source))?;
        Ok(stamped.value)
    }
}

/// The format of a stored value, if it says one.
pub(crate) fn format_of(bytes: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct OfAnyFormat {
        format: u32,
    }
    let of_any: OfAnyFormat = serde_json::from_slice(bytes).ok()?;
    Some(of_any.format)
}

fn damaged(what: &str, how: &str) -> Error {
    let message = format!("what is stored as {what} is damaged: {how}");
    Error::new(ErrorKind::Protocol, Effect::None, message)
}

#[derive(Deserialize, Serialize)]
struct Stamped<T> {
    format: u32,
    #[serde(flatten)]
    value: T,
}

/// The state of the whole namespace.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct MetaValue {
    /// High bits of every token; it rises when the revision may have gone back.
    pub(crate) term: u64,
    pub(crate) state: State,
    /// The recovery that made this term, kept so that it can be repeated.
    pub(crate) recovery: Option<RecoveryValue>,
    /// The cluster that this was written for; another one holds a copy.
    #[serde(with = "text")]
    pub(crate) cluster_id: u64,
    /// No token at or below it may be handed out.
    #[serde(with = "optional_text")]
    pub(crate) watermark: Option<FencingToken>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Closed,
    Open,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct RecoveryValue {
    #[serde(with = "text")]
    pub(crate) id: RecoveryId,
    #[serde(with = "millis")]
    pub(crate) hold_off: Duration,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct SessionValue {
    #[serde(with = "text")]
    pub(crate) owner: Owner,
    #[serde(with = "ttl_millis")]
    pub(crate) ttl: Ttl,
    #[serde(with = "millis")]
    pub(crate) opened_at: Duration,
    /// The store object that opened it.
    #[serde(with = "text")]
    pub(crate) instance: u128,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct LockValue {
    #[serde(with = "text")]
    pub(crate) owner: Owner,
    #[serde(with = "text")]
    pub(crate) session: SessionId,
    #[serde(with = "text")]
    pub(crate) attempt: AttemptId,
    pub(crate) term: u64,
    #[serde(with = "escaped")]
    pub(crate) payload: Payload,
    #[serde(with = "millis")]
    pub(crate) granted_at: Duration,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct TicketValue {
    #[serde(with = "text")]
    pub(crate) owner: Owner,
    #[serde(with = "text")]
    pub(crate) session: SessionId,
    #[serde(with = "millis")]
    pub(crate) queued_at: Duration,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct RevocationValue {
    #[serde(with = "text")]
    pub(crate) by: Owner,
    #[serde(with = "text")]
    pub(crate) reason: Reason,
    #[serde(with = "millis")]
    pub(crate) at: Duration,
    pub(crate) revoked: bool,
    #[serde(with = "optional_text")]
    pub(crate) previous_token: Option<FencingToken>,
    #[serde(with = "optional_text")]
    pub(crate) previous_owner: Option<Owner>,
    #[serde(with = "text")]
    pub(crate) new_floor: FencingToken,
}

macro_rules! value {
    ($($name:ident $what:literal),*) => {$(
        impl Value for $name {
            const WHAT: &'static str = $what;
        }
    )*};
}
value!(
    MetaValue "meta",
    SessionValue "a session",
    LockValue "a lock",
    TicketValue "a place",
    RevocationValue "a revocation"
);

/// A floor is its token in 20 digits, so that people can compare floors as text.
pub(crate) fn encode_floor(floor: FencingToken) -> Bytes {
    format!("{:020}", floor.as_u64()).into()
}

pub(crate) fn decode_floor(bytes: &[u8]) -> Result<FencingToken> {
    let text = std::str::from_utf8(bytes)
        .ok()
        .filter(|text| text.len() == 20);
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| damaged("a floor", "it is not 20 digits"))
}

/// A lock as it stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct LockEntry {
    pub(crate) token: FencingToken,
    pub(crate) value: LockValue,
    /// Whether it ends with its session, as it must.
    pub(crate) leased: bool,
}

impl LockEntry {
    /// Reads a lock: nobody ever rewrites one, so its revision is the token's counter.
    pub(crate) fn read(kv: &KeyValue) -> Result<Self> {
        let value = LockValue::decode(&kv.value)?;
        let token = token(value.term, kv.mod_revision)?;
        let leased = kv
            .lease
            .is_some_and(|lease| lease.0 == value.session.as_i64());
        Ok(Self {
            token,
            value,
            leased,
        })
    }
}

/// The token of a term and a revision.
pub(crate) fn token(term: u64, revision: i64) -> Result<FencingToken> {
    let counter = u64::try_from(revision).unwrap_or_default();
    FencingToken::from_parts(term, counter).map_err(|source| {
        let message = format!("no token for term {term} and revision {revision}");
        Error::new(ErrorKind::Exhausted, Effect::None, message).with_source(source)
    })
}

/// The revision that a token's counter is.
pub(crate) fn revision(token: FencingToken) -> i64 {
    token.counter().cast_signed()
}

#[cfg(test)]
mod tests {
    use etcd_kv::LeaseId;

    use super::*;

    fn lock() -> LockValue {
        LockValue {
            owner: Owner::new("worker \"7\"").unwrap(),
            session: SessionId::new(7).unwrap(),
            attempt: AttemptId::from_u128(9),
            term: 3,
            payload: Payload::new(vec![0, b'a', 0xff]).unwrap(),
            granted_at: Duration::from_millis(1234),
        }
    }

    #[test]
    fn the_form_of_a_lock_is_pinned() {
        let text = r#"{"format":1,"owner":"worker \"7\"","session":"0000000000000007","attempt":"00000000000000000000000000000009","term":3,"payload":"%00a%FF","granted_at":1234}"#;
        assert_eq!(lock().encode(), text);
        assert_eq!(LockValue::decode(text.as_bytes()).unwrap(), lock());
    }

    #[test]
    fn every_value_reads_back() {
        let meta = MetaValue {
            term: 1,
            state: State::Closed,
            recovery: Some(RecoveryValue {
                id: RecoveryId::from_u128(5),
                hold_off: Duration::from_secs(30),
            }),
            cluster_id: u64::MAX,
            watermark: Some(FencingToken::MAX),
        };
        assert_eq!(MetaValue::decode(&meta.encode()).unwrap(), meta);
        let session = SessionValue {
            owner: Owner::default(),
            ttl: Ttl::DEFAULT,
            opened_at: Duration::ZERO,
            instance: u128::MAX,
        };
        assert_eq!(SessionValue::decode(&session.encode()).unwrap(), session);
        let revocation = RevocationValue {
            by: Owner::new("admin").unwrap(),
            reason: Reason::new("stuck").unwrap(),
            at: Duration::from_millis(5),
            revoked: false,
            previous_token: None,
            previous_owner: None,
            new_floor: FencingToken::new(9).unwrap(),
        };
        assert_eq!(
            RevocationValue::decode(&revocation.encode()).unwrap(),
            revocation
        );
    }

    #[test]
    fn a_later_format_is_told_from_damage() {
        let later = LockValue::decode(br#"{"format":2,"shape":"new"}"#).unwrap_err();
        assert_eq!(later.kind(), ErrorKind::Incompatible);
        for junk in [&b""[..], b"junk", b"{}", br#"{"format":1}"#, b"\xff"] {
            let error = LockValue::decode(junk).unwrap_err();
            assert_eq!(
                (error.kind(), error.effect()),
                (ErrorKind::Protocol, Effect::None)
            );
        }
    }

    #[test]
    fn floors_are_twenty_digits() {
        let floor = FencingToken::new(42).unwrap();
        assert_eq!(encode_floor(floor), "00000000000000000042");
        assert_eq!(decode_floor(&encode_floor(floor)).unwrap(), floor);
        for junk in ["42", "", "0000000000000000004x", "00000000000000000000"] {
            assert!(decode_floor(junk.as_bytes()).is_err(), "{junk}");
        }
    }

    #[test]
    fn a_lock_is_leased_when_its_lease_is_its_session() {
        let mut kv = KeyValue {
            value: lock().encode(),
            mod_revision: 12,
            lease: Some(LeaseId(7)),
            ..KeyValue::default()
        };
        let entry = LockEntry::read(&kv).unwrap();
        assert_eq!((entry.token, entry.leased), (token(3, 12).unwrap(), true));
        for lease in [None, Some(LeaseId(8))] {
            kv.lease = lease;
            assert!(!LockEntry::read(&kv).unwrap().leased);
        }
    }
}
