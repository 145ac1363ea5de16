//! How a user is let in.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use test_servers::Postgres;

use crate::command::{Ended, fencelock};
use crate::sites::{DATABASE, with_schema};

const DENIED: i32 = 77;

/// A crontab has no place for a password; libpq's file has, and it counts for the host, the database
/// and the user that its line names.
#[test]
fn a_password_is_found_in_the_password_file() {
    let server = Postgres::builder().password("secret").start().unwrap();
    with_schema(&server);
    let address = server.address();
    let url = format!("postgres://postgres@{address}/{DATABASE}");
    let name = format!("pgpass-{}", std::process::id());
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let list = |line: String| {
        fs::write(&file, line).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let mut command = fencelock(&url, &["list"]);
        Ended::of(command.env("PGPASSFILE", &file))
    };
    list(format!("{address}:{DATABASE}:postgres:secret\n")).data();
    let others = list(format!("{address}:{DATABASE}:somebody:secret\n"));
    assert_eq!(others.status, DENIED, "{others:?}");
    fs::remove_file(file).unwrap();
}
