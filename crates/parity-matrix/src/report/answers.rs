//! What one asks first.

use super::table;

/// A question, and the answer for the embedded store, for etcd and for Postgres.
const ANSWERS: &[[&str; 4]] = &[
    [
        "What must I run?",
        "nothing: it lives in the process",
        "a cluster of etcd, 3.4 or later but 3.5.0 to 3.5.6; three members outlive the loss of one",
        "one PostgreSQL, and the schema `dlock` in a database of it",
    ],
    [
        "What do I lose on fail-over?",
        "everything: it ends with its process",
        "nothing: what was granted was agreed on by a majority",
        "with a synchronous standby nothing; with an asynchronous one the newest grants and \
         releases, whose tokens are outranked",
    ],
    [
        "What is the least ttl?",
        "1 s",
        "1 s, and one and a half election timeouts of the cluster; whole seconds",
        "1 s; milliseconds",
    ],
    [
        "What does it cost to keep N locks?",
        "one call for each session",
        "one keepalive and one look at the lease for each session; nothing is written",
        "one call for each session, which writes N rows",
    ],
    [
        "How late is a waiter woken?",
        "at once",
        "by a message of the server, after an expiry too",
        "by a notification after a release; after an expiry by a timer of its own",
    ],
    [
        "What does a full disk do?",
        "there is none",
        "renewals, releases and giving up go on; nothing new is granted or revoked",
        "nothing that writes goes on: what is not renewed expires",
    ],
];

pub(super) fn section() -> String {
    let rows: Vec<_> = ANSWERS
        .iter()
        .map(|row| row.iter().map(|&cell| cell.to_owned()).collect())
        .collect();
    let head = ["", "embedded (`memory:`)", "etcd", "Postgres"];
    format!("## In one line each\n\n{}", table(&head, &rows))
}
