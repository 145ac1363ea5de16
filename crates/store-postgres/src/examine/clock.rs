//! How far the server's clock and this machine's are apart.

use std::time::Duration;

use lock_spi::{Finding, Result, Runtime, Severity};
use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::finding;
use crate::error::{Failure, Phase};

/// So far apart two clocks that somebody keeps never are.
const APART: Duration = Duration::from_secs(2);

pub(super) async fn look(
    connection: &mut PgConnection,
    runtime: &dyn Runtime,
) -> Result<Option<Finding>> {
    const ASK: &str =
        "SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000)::bigint AS now";
    let before = runtime.wall_clock();
    let row = sqlx::raw_sql(ASK).fetch_one(connection).await;
    let after = runtime.wall_clock();
    let now = row.and_then(|row| row.try_get("now"));
    let now: i64 = now.map_err(|error| Failure::new(Phase::Connecting, error))?;
    let theirs = Duration::from_millis(u64::try_from(now).unwrap_or(0));
    Ok(judge(theirs, before, after))
}

/// The answer was given at some time between the two.
fn judge(theirs: Duration, before: Duration, after: Duration) -> Option<Finding> {
    let behind = before.saturating_sub(theirs);
    let ahead = theirs.saturating_sub(after);
    let (apart, direction) = match behind > ahead {
        true => (behind, "behind"),
        false => (ahead, "ahead of"),
    };
    (apart >= APART).then(|| {
        let seconds = apart.as_secs_f64();
        finding(
            "clock_skew",
            Severity::Warning,
            format!("the server's clock is {seconds:.1} s {direction} this machine's"),
            "no lock depends on it, but times shown are off, and a clock that nobody keeps may run \
             too fast or too slow, which a renewal bears only to within a tenth of the ttl: see to \
             NTP on both",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_round_trip_cannot_explain_is_told() {
        let at = Duration::from_secs;
        assert_eq!(judge(at(100), at(90), at(110)), None);
        assert_eq!(judge(at(100), at(101), at(101)), None);
        let behind = judge(at(100), at(130), at(131)).unwrap().what;
        assert!(behind.contains("30.0 s behind"), "{behind}");
        let ahead = judge(at(3700), at(99), at(100)).unwrap().what;
        assert!(ahead.contains("3600.0 s ahead of"), "{ahead}");
    }
}
