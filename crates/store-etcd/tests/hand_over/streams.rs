//! A server's own word on the streams of watches that it has.

use std::io::{Read, Write};
use std::net::TcpStream;

/// What one member says of itself.
pub(crate) struct Streams {
    endpoint: String,
}

impl Streams {
    pub(crate) fn of(endpoint: &str) -> Self {
        Self {
            endpoint: endpoint.to_owned(),
        }
    }

    /// How many are open.
    pub(crate) fn open(&self) -> u64 {
        self.metric("etcd_debugging_mvcc_watch_stream_total")
    }

    /// How many have ever been opened.
    pub(crate) fn opened(&self) -> u64 {
        let method = r#"grpc_method="Watch",grpc_service="etcdserverpb.Watch""#;
        self.metric(&format!(
            r#"grpc_server_started_total{{{method},grpc_type="bidi_stream"}}"#
        ))
    }

    /// How many watches there are, on all of them.
    pub(crate) fn watchers(&self) -> u64 {
        self.metric("etcd_debugging_mvcc_watcher_total")
    }

    fn metric(&self, name: &str) -> u64 {
        let mut connection = TcpStream::connect(&self.endpoint).unwrap();
        // By this version the answer comes in one piece.
        let request = b"GET /metrics HTTP/1.0\r\n\r\n";
        connection.write_all(request).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let mut lines = answer.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(0, |value| value.trim().parse().unwrap())
    }
}
