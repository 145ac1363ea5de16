//! Bytes by which single requests are told from all others.

use lock_spi::{AttemptId, SessionId};

/// The transaction that opens a session: the only one with a session's value.
pub(crate) fn opening() -> Vec<u8> {
    br#""instance":""#.into()
}

/// The transaction that makes an attempt a grant: by GRANT, TAKE or SKIP.
pub(crate) fn granting(attempt: AttemptId) -> Vec<u8> {
    format!(r#""attempt":"{attempt}""#).into()
}

/// The transaction that gives a place to some attempt of this session.
pub(crate) fn queueing(session: SessionId) -> Vec<u8> {
    format!(r#""session":"{session}","queued_at""#).into()
}

/// The grant of a session's lease.
pub(crate) fn lease_grant(session: SessionId) -> Vec<u8> {
    [vec![0x10], varint(session)].concat()
}

/// A renewal of a session's lease, or its revocation: they look the same.
pub(crate) fn lease_by_id(session: SessionId) -> Vec<u8> {
    message(&[vec![0x08], varint(session)].concat())
}

/// The question what a session's lease holds.
pub(crate) fn lease_look(session: SessionId) -> Vec<u8> {
    message(&[vec![0x08], varint(session), vec![0x10, 0x01]].concat())
}

/// The beginning of a watch of one key.
pub(crate) fn watch(key: &str) -> Vec<u8> {
    let field = |bytes: &[u8]| [&[0x0a, short(bytes.len())], bytes].concat();
    let in_fragments = [0x40, 0x01];
    message(&field(
        &[&field(key.as_bytes()), &in_fragments[..]].concat(),
    ))
}

/// As gRPC sends it: not compressed, of this length.
fn message(body: &[u8]) -> Vec<u8> {
    [&[0, 0, 0, 0, short(body.len())], body].concat()
}

fn short(length: usize) -> u8 {
    let length = u8::try_from(length).unwrap();
    assert!(length < 0x80, "one byte has to do for it");
    length
}

fn varint(session: SessionId) -> Vec<u8> {
    let mut left = session.as_i64().cast_unsigned();
    let mut bytes = Vec::new();
    while left >= 0x80 {
        bytes.push(u8::try_from(left & 0x7f).unwrap() | 0x80);
        left >>= 7;
    }
    bytes.push(u8::try_from(left).unwrap());
    bytes
}
