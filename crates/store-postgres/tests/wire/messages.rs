//! The messages of a client, as far as they must be told apart.

use std::collections::BTreeMap;

/// Calls that write or renew.
const WRITES: [&str; 13] = [
    "abandon_1",
    "adopt_session_1",
    "close_session_1",
    "extend_1",
    "keep_alive_1",
    "open_session_1",
    "reap_1",
    "recover_1",
    "release_1",
    "release_many_1",
    "revoke_1",
    "try_insert_1",
    "try_insert_many_1",
];

/// Puts the bytes of a client together to requests.
#[derive(Default)]
pub(crate) struct Requests {
    bytes: Vec<u8>,
    started: bool,
    /// What was prepared, by its name.
    statements: BTreeMap<Vec<u8>, bool>,
    /// The messages of the request that is not complete yet, and whether it writes.
    open: (Vec<u8>, bool),
}

/// Messages that are answered together.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Request {
    pub(crate) bytes: Vec<u8>,
    pub(crate) writes: bool,
}

impl Requests {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next request that is complete.
    pub(crate) fn next(&mut self) -> Option<Request> {
        loop {
            // The first message has no type.
            let header = usize::from(self.started);
            let length = self.bytes.get(header..header + 4)?;
            let length = u32::from_be_bytes(length.try_into().expect("four bytes"));
            let end = header + usize::try_from(length).expect("a short message");
            if self.bytes.len() < end {
                return None;
            }
            let message: Vec<_> = self.bytes.drain(..end).collect();
            if !self.started {
                self.started = true;
                return Some(Request {
                    bytes: message,
                    writes: false,
                });
            }
            self.note(&message);
            let ends = matches!(message[0], b'S' | b'Q' | b'X' | b'p');
            self.open.0.extend(message);
            if ends {
                let (bytes, writes) = std::mem::take(&mut self.open);
                return Some(Request { bytes, writes });
            }
        }
    }

    fn note(&mut self, message: &[u8]) {
        let mut texts = message[5..].split(|byte| *byte == 0);
        let mut text = || texts.next().unwrap_or_default().to_vec();
        match message[0] {
            b'P' => {
                let (name, sql) = (text(), text());
                let sql = String::from_utf8_lossy(&sql);
                let called = |name: &&str| sql.contains(&format!("dlock.{name}("));
                self.statements.insert(name, WRITES.iter().any(called));
            }
            b'B' => {
                let (_portal, name) = (text(), text());
                self.open.1 |= self.statements.get(&name).copied().unwrap_or(false);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[kind], &length[..], body].concat()
    }

    #[test]
    fn a_call_is_one_request_and_known_for_what_it_does() {
        let mut requests = Requests::default();
        let startup = [&12_u32.to_be_bytes()[..], b"startup!"].concat();
        let prepare = [
            message(b'P', b"s1\0SELECT * FROM dlock.extend_1($1)\0\0\0"),
            message(b'S', b""),
        ]
        .concat();
        let call = [message(b'B', b"\0s1\0\0\0"), message(b'S', b"")].concat();
        requests.push(&startup);
        requests.push(&prepare);
        requests.push(&call[..7]);
        let mut expect = |bytes: Option<&Vec<u8>>, writes| {
            let bytes = bytes.cloned();
            let expected = bytes.map(|bytes| Request { bytes, writes });
            assert_eq!(requests.next(), expected);
        };
        expect(Some(&startup), false);
        expect(Some(&prepare), false);
        expect(None, false);
        requests.push(&call[7..]);
        assert_eq!(
            requests.next(),
            Some(Request {
                bytes: call,
                writes: true
            })
        );
    }
}
