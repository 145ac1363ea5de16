//! A session that stays open between its statements, by as much of the protocol as that takes.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use test_servers::Postgres;

const STARTUP: &[u8] = b"\0\x03\0\0user\0postgres\0database\0postgres\0\0";
/// Messages of the server: the number of its process, a row, and that it is ready.
const KEY: u8 = b'K';
const ROW: u8 = b'D';
const READY: u8 = b'Z';

/// Whether there is a process of this number that has not ended.
pub(crate) fn runs(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // After the program's name, which is in parentheses.
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_some_and(|state| !state.starts_with('Z'))
}

pub(crate) struct Session {
    stream: TcpStream,
    pub(crate) pid: i32,
}

impl Session {
    pub(crate) fn open(postgres: &Postgres) -> Self {
        let stream = TcpStream::connect(postgres.address()).unwrap();
        stream.set_read_timeout(Some(super::LONG)).unwrap();
        let mut session = Self { stream, pid: 0 };
        session.write(STARTUP);
        while let Ok((kind, content)) = session.read() {
            match kind {
                KEY => session.pid = i32::from_be_bytes(content[..4].try_into().unwrap()),
                READY => return session,
                _ => {}
            }
        }
        panic!("no session");
    }

    pub(crate) fn ask(&mut self, sql: &str) -> String {
        self.send(sql);
        self.receive()
    }

    pub(crate) fn send(&mut self, sql: &str) {
        // One that has ended shows by what is received.
        drop(self.stream.write_all(b"Q"));
        self.write(format!("{sql}\0").as_bytes());
    }

    /// The only column of the last row; nothing, once the session has ended.
    pub(crate) fn receive(&mut self) -> String {
        let mut last = String::new();
        while let Ok((kind, content)) = self.read() {
            match kind {
                // After the number of columns and the length of the first.
                ROW => last = String::from_utf8(content[6..].to_vec()).unwrap(),
                READY => break,
                _ => {}
            }
        }
        last
    }

    pub(crate) fn says_something_within(&self, limit: Duration) -> bool {
        self.stream.set_read_timeout(Some(limit)).unwrap();
        let seen = self.stream.peek(&mut [0]).is_ok();
        self.stream.set_read_timeout(Some(super::LONG)).unwrap();
        seen
    }

    fn write(&mut self, content: &[u8]) {
        let length = u32::try_from(content.len() + 4).unwrap();
        let message = [&length.to_be_bytes(), content].concat();
        drop(self.stream.write_all(&message));
    }

    fn read(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap();
        let mut content = vec![0; length - 4];
        self.stream.read_exact(&mut content)?;
        Ok((kind, content))
    }
}
