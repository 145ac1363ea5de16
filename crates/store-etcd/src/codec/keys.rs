//! Where everything of a namespace stands.

use std::borrow::Cow;

use bytes::Bytes;
use etcd_kv::{KeyRange, prefix_end};
use lock_spi::{AttemptId, KeyPrefix, LockKey, Namespace, RevocationId, SessionId};

use super::percent;

/// The keys of one namespace; all begin with `/dlock/<namespace>/`.
///
/// Encoded text has no `/`, so one key's `wait/<key>/` cannot run into another's.
#[derive(Clone, Debug)]
pub(crate) struct KeySpace {
    root: String,
}

/// What a stored key is the name of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Name {
    Epoch(SessionId),
    Floor(LockKey),
    Lock(LockKey),
    Meta,
    Revocation(LockKey, RevocationId),
    Session(SessionId),
    Ticket(LockKey, AttemptId),
}

impl KeySpace {
    pub(crate) fn new(namespace: &Namespace) -> Self {
        Self {
            root: format!("/dlock/{namespace}/"),
        }
    }

    /// Every transaction has about ten names; each takes one piece of memory, of the right size.
    fn at<const N: usize>(&self, parts: [&str; N]) -> Bytes {
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut name = String::with_capacity(self.root.len() + length);
        name.push_str(&self.root);
        name.extend(parts);
        name.into()
    }

    /// The start of all names.
    pub(crate) fn root(&self) -> Bytes {
        self.root.clone().into()
    }

    pub(crate) fn meta(&self) -> Bytes {
        self.at(["meta"])
    }

    /// A key that nobody ever writes.
    pub(crate) fn nothing(&self) -> Bytes {
        self.at(["nothing"])
    }

    pub(crate) fn session(&self, session: SessionId) -> Bytes {
        self.at(["session/", &session.to_string()])
    }

    pub(crate) fn sessions(&self) -> Bytes {
        self.at(["session/"])
    }

    pub(crate) fn epoch(&self, session: SessionId) -> Bytes {
        self.at(["epoch/", &session.to_string()])
    }

    pub(crate) fn epochs(&self) -> Bytes {
        self.at(["epoch/"])
    }

    pub(crate) fn lock(&self, key: &LockKey) -> Bytes {
        self.at(["lock/", &encoded(key)])
    }

    /// The locks whose keys start with `prefix`.
    pub(crate) fn locks(&self, prefix: &KeyPrefix) -> Bytes {
        let prefix = percent::encode(prefix.as_str().as_bytes());
        self.at(["lock/", &prefix])
    }

    pub(crate) fn floor(&self, key: &LockKey) -> Bytes {
        self.at(["floor/", &encoded(key)])
    }

    pub(crate) fn ticket(&self, key: &LockKey, attempt: AttemptId) -> Bytes {
        self.at(["wait/", &encoded(key), "/", &attempt.to_string()])
    }

    /// The tickets of one key.
    pub(crate) fn queue(&self, key: &LockKey) -> Bytes {
        self.at(["wait/", &encoded(key), "/"])
    }

    /// The tickets of every key.
    pub(crate) fn queues(&self) -> Bytes {
        self.at(["wait/"])
    }

    pub(crate) fn revocation(&self, key: &LockKey, id: RevocationId) -> Bytes {
        self.at(["revocation/", &encoded(key), "/", &id.to_string()])
    }

    /// The revocations of one key.
    pub(crate) fn revocations(&self, key: &LockKey) -> Bytes {
        self.at(["revocation/", &encoded(key), "/"])
    }

    /// What a stored key names; `None` for what this store does not write.
    pub(crate) fn name(&self, stored: &[u8]) -> Option<Name> {
        let tail = std::str::from_utf8(stored).ok()?.strip_prefix(&self.root)?;
        let Some((family, tail)) = tail.split_once('/') else {
            return (tail == "meta").then_some(Name::Meta);
        };
        match (family, tail.split_once('/')) {
            ("epoch", None) => tail.parse().ok().map(Name::Epoch),
            ("floor", None) => decoded(tail).map(Name::Floor),
            ("lock", None) => decoded(tail).map(Name::Lock),
            ("session", None) => tail.parse().ok().map(Name::Session),
            ("revocation", Some((key, id))) => {
                Some(Name::Revocation(decoded(key)?, id.parse().ok()?))
            }
            ("wait", Some((key, attempt))) => {
                Some(Name::Ticket(decoded(key)?, attempt.parse().ok()?))
            }
            _ => None,
        }
    }
}

/// What of `prefix` lies behind `after`, or all of it.
pub(crate) fn range_after(prefix: &Bytes, after: Option<&[u8]>) -> KeyRange {
    match (after, prefix_end(prefix)) {
        (Some(after), Some(end)) => KeyRange::Span {
            start: [after, b"\0"].concat().into(),
            end,
        },
        _ => KeyRange::prefix(prefix.clone()),
    }
}

fn encoded(key: &LockKey) -> Cow<'_, str> {
    percent::encode(key.as_str().as_bytes())
}

fn decoded(text: &str) -> Option<LockKey> {
    LockKey::new(String::from_utf8(percent::decode(text)?).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn space() -> KeySpace {
        KeySpace::new(&Namespace::new("ns").unwrap())
    }

    fn key(text: &str) -> LockKey {
        LockKey::new(text).unwrap()
    }

    /// B134: the stored names are pinned.
    #[test]
    fn the_layout_is_pinned() {
        let (space, session) = (space(), SessionId::new(0xab).unwrap());
        let attempt = AttemptId::from_u128(0xcd);
        let id = RevocationId::from_u128(0xef);
        let a = key("a/é");
        for (stored, text) in [
            (space.meta(), "/dlock/ns/meta"),
            (space.session(session), "/dlock/ns/session/00000000000000ab"),
            (space.epoch(session), "/dlock/ns/epoch/00000000000000ab"),
            (space.lock(&a), "/dlock/ns/lock/a%2F%C3%A9"),
            (space.floor(&a), "/dlock/ns/floor/a%2F%C3%A9"),
            (
                space.ticket(&a, attempt),
                "/dlock/ns/wait/a%2F%C3%A9/000000000000000000000000000000cd",
            ),
            (space.queue(&a), "/dlock/ns/wait/a%2F%C3%A9/"),
            (
                space.revocation(&a, id),
                "/dlock/ns/revocation/a%2F%C3%A9/000000000000000000000000000000ef",
            ),
        ] {
            assert_eq!(stored, text);
        }
    }

    /// B128, B134: neither keys nor namespaces run into one another.
    #[test]
    fn names_do_not_run_into_one_another() {
        let space = space();
        let attempt = AttemptId::from_u128(1);
        for (one, other) in [("a", "ab"), ("a", "a/b"), ("a", "a%2Fb"), ("a/", "a")] {
            let ticket = space.ticket(&key(other), attempt);
            assert!(
                !ticket.starts_with(&space.queue(&key(one))),
                "{one} {other}"
            );
        }
        let of =
            |namespace, text| KeySpace::new(&Namespace::new(namespace).unwrap()).lock(&key(text));
        assert_ne!(of("ab", "c"), of("a", "bc"));
    }

    /// B127: what is not ours has no name.
    #[test]
    fn junk_has_no_name() {
        let space = space();
        for stored in [
            "/dlock/ns/lock/",
            "/dlock/ns/lock/path/1",
            "/dlock/ns/lock/%2f",
            "/dlock/ns/lock/%00",
            "/dlock/ns/wait/a",
            "/dlock/ns/wait/a/1",
            "/dlock/ns/session/xyz",
            "/dlock/ns/other",
            "/dlock/other/lock/a",
            "a",
        ] {
            assert_eq!(space.name(stored.as_bytes()), None, "{stored}");
        }
        assert_eq!(space.name(b"\xff"), None);
    }

    proptest! {
        #[test]
        fn names_read_back(text in "\\PC{1,40}", number: u128) {
            let (space, key) = (space(), key(&text));
            let session = SessionId::new(i64::try_from(number >> 65).unwrap().max(1)).unwrap();
            let attempt = AttemptId::from_u128(number);
            let id = RevocationId::from_u128(number);
            for (stored, name) in [
                (space.lock(&key), Name::Lock(key.clone())),
                (space.floor(&key), Name::Floor(key.clone())),
                (space.ticket(&key, attempt), Name::Ticket(key.clone(), attempt)),
                (space.revocation(&key, id), Name::Revocation(key.clone(), id)),
                (space.session(session), Name::Session(session)),
                (space.epoch(session), Name::Epoch(session)),
                (space.meta(), Name::Meta),
            ] {
                prop_assert_eq!(space.name(&stored), Some(name));
            }
        }

        #[test]
        fn two_keys_have_two_names(one in "\\PC{1,4}", other in "\\PC{1,4}") {
            prop_assert_eq!(one == other, space().lock(&key(&one)) == space().lock(&key(&other)));
        }
    }
}
