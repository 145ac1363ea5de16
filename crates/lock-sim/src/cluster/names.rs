//! The names and values of the store, read anew here so as not to believe it.

use std::sync::Arc;
use std::time::Duration;

use etcd_kv::KeyValue;
use lock_spi::{AttemptId, FencingToken, SessionId};
use percent_encoding::percent_decode_str;
use serde_json::Value;

/// The namespace of all runs.
pub(crate) const NAMESPACE: &str = "sim";

const ROOT: &str = "/dlock/sim/";

/// What a stored key is the name of, as far as it matters here.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Name {
    Session(SessionId),
    Floor(Arc<str>),
    Lock(Arc<str>),
    Ticket(Arc<str>, AttemptId),
    Meta,
}

impl Name {
    pub(crate) fn of(stored: &[u8]) -> Option<Self> {
        let tail = std::str::from_utf8(stored).ok()?.strip_prefix(ROOT)?;
        if tail == "meta" {
            return Some(Self::Meta);
        }
        let (family, tail) = tail.split_once('/')?;
        match family {
            "session" => Some(Self::Session(tail.parse().ok()?)),
            "floor" => Some(Self::Floor(decoded(tail))),
            "lock" => Some(Self::Lock(decoded(tail))),
            "wait" => {
                let (key, attempt) = tail.split_once('/')?;
                Some(Self::Ticket(decoded(key), attempt.parse().ok()?))
            }
            _ => None,
        }
    }
}

/// Where a lock is stored.
pub(crate) fn lock_name(key: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let encoded = key.bytes().map(|byte| match plain(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    format!("{ROOT}lock/{}", encoded.collect::<String>())
}

fn decoded(text: &str) -> Arc<str> {
    percent_decode_str(text).decode_utf8_lossy().into()
}

/// Who a stored lock belongs to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Holding {
    pub(crate) token: FencingToken,
    pub(crate) session: SessionId,
    pub(crate) attempt: AttemptId,
}

impl Holding {
    pub(crate) fn of(kv: &KeyValue) -> Option<Self> {
        let value: Value = serde_json::from_slice(&kv.value).ok()?;
        let counter = u64::try_from(kv.mod_revision).ok()?;
        Some(Self {
            token: FencingToken::from_parts(value.get("term")?.as_u64()?, counter).ok()?,
            session: value.get("session")?.as_str()?.parse().ok()?,
            attempt: value.get("attempt")?.as_str()?.parse().ok()?,
        })
    }
}

/// The session of a stored ticket.
pub(crate) fn waiting(kv: &KeyValue) -> Option<SessionId> {
    let value: Value = serde_json::from_slice(&kv.value).ok()?;
    value.get("session")?.as_str()?.parse().ok()
}

/// The ttl of a stored session.
pub(crate) fn ttl(kv: &KeyValue) -> Option<Duration> {
    let value: Value = serde_json::from_slice(&kv.value).ok()?;
    Some(Duration::from_millis(value.get("ttl")?.as_u64()?))
}

/// The term of a stored `meta`.
pub(crate) fn term(kv: &KeyValue) -> Option<u64> {
    let value: Value = serde_json::from_slice(&kv.value).ok()?;
    value.get("term")?.as_u64()
}

/// A stored floor.
pub(crate) fn floor(kv: &KeyValue) -> Option<FencingToken> {
    let digits = std::str::from_utf8(&kv.value).ok()?;
    FencingToken::new(digits.parse().ok()?).ok()
}
