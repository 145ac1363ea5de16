//! The holder's network is cut while another waits.

use std::thread::{scope, sleep};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use test_servers::Direction;

use crate::process::{Run, lives, until};
use crate::scratch::{PATIENCE, Scratch};
use crate::servers::{Server, TTL_OPTION};

/// So many pairs at a time.
const AT_ONCE: usize = 5;
/// Names how many pairs there are in all.
const PAIRS: &str = "FENCELOCK_CUT_PAIRS";

/// A group that hears no request to end, and has children and grandchildren.
pub(crate) const DEAF: &str =
    "trap '' TERM HUP; (sleep 1000 & sleep 1000) & echo $$ > first; sleep 1000";

/// Tells when it began, and whether anybody of the first one's group was alive then.
pub(crate) const WITNESS: &str =
    "if kill -0 -- -$(cat first) 2>&-; then echo overlap; else echo alone; fi > began
    date +%s%N > moment; mv moment second";

/// B35, INV-01, INV-10: whoever has no renewal confirmed has its command gone before another's begins.
#[test]
fn a_cut_off_command_is_gone_before_the_next_begins_on_etcd() {
    pairs("etcd", &Server::etcd());
}

/// B35, INV-01, INV-10.
#[test]
fn a_cut_off_command_is_gone_before_the_next_begins_on_postgres() {
    pairs("Postgres", &Server::postgres());
}

fn pairs(name: &str, server: &Server) {
    let count = std::env::var(PAIRS).map_or(AT_ONCE, |count| count.parse().unwrap());
    let at_once = if count > AT_ONCE {
        2 * AT_ONCE
    } else {
        AT_ONCE
    };
    let mut margins = Vec::new();
    while margins.len() < count {
        let first = margins.len();
        margins.extend(scope(|scope| {
            let pairs: Vec<_> = (first..count.min(first + at_once))
                .map(|number| scope.spawn(move || pair(server, number)))
                .collect();
            let margins = pairs.into_iter().map(|pair| pair.join().unwrap());
            margins.collect::<Vec<_>>()
        }));
    }
    margins.sort();
    let (least, most) = (margins[0], margins[margins.len() - 1]);
    let median = margins[margins.len() / 2];
    println!(
        "{name}: {count} of {count} gone before, by {least:?} at least, {median:?} usually, {most:?} at most"
    );
}

/// How long before the second began the first was gone.
fn pair(server: &Server, number: usize) -> Duration {
    let folder = Scratch::new();
    let key = format!("cut-{number}");
    let options = [[key.as_str()].as_slice(), &TTL_OPTION].concat();
    let (proxy, url) = server.proxy();
    let first = Run::script(&url, &folder, &options, DEAF);
    let group = folder.number("first");
    let second = Run::script(&server.url(), &folder, &options, WITNESS);
    server.await_waiters(&key, 1);
    // At any moment between two renewals.
    sleep(Duration::from_millis(
        u64::try_from(number).unwrap() * 97 % 670,
    ));

    proxy.swallow(Direction::ToServer);
    proxy.swallow(Direction::ToClient);
    until(PATIENCE, "end of the group", || {
        (!lives(group)).then_some(())
    });
    let gone = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let began = folder.number("second");
    assert_eq!(folder.lines("began"), ["alone"]);
    let began = Duration::from_nanos(began.try_into().unwrap());
    let margin = began.checked_sub(gone).expect("the first was gone before");
    assert_eq!(second.status(), 0);
    let first = first.ended();
    assert_eq!(first.status.code(), Some(80), "{first:?}");
    assert!(first.stderr.contains("hint:"), "{first:?}");
    margin
}
