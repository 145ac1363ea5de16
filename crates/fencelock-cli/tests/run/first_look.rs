//! What `fencelock` alone says, followed to the letter.

use std::process::Command;

use test_servers::Postgres;

use crate::process::fencelock;
use crate::scratch::Scratch;

/// Whoever types `fencelock`, and then what it says, holds a lock on their own Postgres.
#[test]
fn following_the_welcome_leads_to_a_held_lock_on_ones_own_postgres() {
    let server = Postgres::start().expect("a server of Postgres");
    let folder = Scratch::new();
    let welcome = fencelock("", &folder)
        .env_remove("FENCELOCK_STORE")
        .output()
        .unwrap();
    assert!(welcome.status.success());
    let welcome = String::from_utf8(welcome.stdout).unwrap();
    let lines: Vec<_> = welcome
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .collect();
    let (first, rest) = lines.split_first().expect("it says what to type");
    // The one thing that everybody has to know: where the own server is.
    let own = "postgres://postgres@localhost/postgres";
    assert_eq!(first.split_once('='), Some(("export FENCELOCK_STORE", own)));
    let script = first.replace(own, &server.url("postgres")) + "\n" + &rest.join("\n");

    let program = std::path::Path::new(env!("CARGO_BIN_EXE_fencelock"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let output = Command::new("sh")
        .args(["-e", "-c", &script])
        .env("PATH", path)
        .env("XDG_CONFIG_HOME", folder.path())
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let token = said
        .lines()
        .find_map(|line| line.strip_prefix("I hold demo with token "));
    assert!(token.expect(&said).parse::<u64>().unwrap() > 0);
}
