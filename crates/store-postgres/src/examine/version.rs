//! Which server it is, and whether that is a good idea.

use std::time::Duration;

use lock_spi::{Finding, Result, Runtime, Severity};
use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::finding;
use crate::error::{Failure, Phase};

/// The functions of the schema were written for this one and those after it.
const OLDEST: i32 = 12;

/// When the community ceases to mend a version, by its release calendar: seconds since the Unix
/// epoch.
const ENDS_OF_LIFE: [(i32, u64, &str); 7] = [
    (12, 1_732_147_200, "2024-11-21"),
    (13, 1_762_992_000, "2025-11-13"),
    (14, 1_794_441_600, "2026-11-12"),
    (15, 1_825_891_200, "2027-11-11"),
    (16, 1_857_340_800, "2028-11-09"),
    (17, 1_888_790_400, "2029-11-08"),
    (18, 1_920_844_800, "2030-11-14"),
];

pub(super) async fn look(
    connection: &mut PgConnection,
    host: &str,
    runtime: &dyn Runtime,
) -> Result<Vec<Finding>> {
    const ASK: &str = "SELECT pg_catalog.current_setting('server_version') AS name, \
         pg_catalog.current_setting('server_version_num')::int AS number";
    let sent = runtime.now();
    let row = sqlx::raw_sql(ASK).fetch_one(connection).await;
    let took = runtime.now().saturating_since(sent);
    let read = row.and_then(|row| Ok((row.try_get("name")?, row.try_get("number")?)));
    let (name, number): (String, i32) =
        read.map_err(|error| Failure::new(Phase::Connecting, error))?;
    let milliseconds = took.as_millis();
    let mut findings = vec![finding(
        "server",
        Severity::Note,
        format!("PostgreSQL {name} at {host}, which answers within {milliseconds} ms"),
        "nothing",
    )];
    findings.extend(judge(number, runtime.wall_clock()));
    Ok(findings)
}

/// What is known to be wrong with a version.
fn judge(number: i32, wall_clock: Duration) -> Vec<Finding> {
    let (major, minor) = (number / 10_000, number % 10_000);
    let mut findings = Vec::new();
    if major < OLDEST {
        findings.push(finding(
            "server_too_old",
            Severity::Critical,
            format!("PostgreSQL {major} is older than {OLDEST}, the oldest that was thought of"),
            "upgrade the server",
        ));
        return findings;
    }
    if let Some((_, end, day)) = ENDS_OF_LIFE.iter().find(|(known, ..)| *known == major)
        && wall_clock >= Duration::from_secs(*end)
    {
        findings.push(finding(
            "end_of_life",
            Severity::Warning,
            format!("PostgreSQL {major} is no longer mended since {day}"),
            "upgrade the server",
        ));
    }
    if major == 14 && minor < 4 {
        findings.push(finding(
            "known_bugs",
            Severity::Warning,
            "PostgreSQL 14 before 14.4: an index that is made or remade CONCURRENTLY may miss rows, \
             those of dlock as well",
            "upgrade to 14.4 or later, then REINDEX what was made CONCURRENTLY",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-12-01.
    const NOW: Duration = Duration::from_secs(1_796_083_200);

    fn ids(number: i32) -> Vec<&'static str> {
        judge(number, NOW).iter().map(|found| found.id).collect()
    }

    #[test]
    fn a_version_is_judged_by_its_number_and_by_the_day() {
        for (number, found) in [
            (110_022, vec!["server_too_old"]),
            (130_010, vec!["end_of_life"]),
            (140_003, vec!["end_of_life", "known_bugs"]),
            (140_004, vec!["end_of_life"]),
            (150_014, vec![]),
            (180_001, vec![]),
            (990_000, vec![]),
        ] {
            assert_eq!(ids(number), found, "{number}");
        }
        let earlier = NOW - Duration::from_secs(60 * 24 * 3600);
        assert_eq!(judge(140_010, earlier), []);
    }

    #[test]
    fn the_days_are_those_of_the_seconds() {
        for (_, seconds, day) in ENDS_OF_LIFE {
            let mut parts = day.split('-').map(|part| part.parse::<i64>().unwrap());
            let (year, month, date) = (
                parts.next().unwrap(),
                parts.next().unwrap(),
                parts.next().unwrap(),
            );
            // Days from the civil calendar, for months after February.
            let era_day = 365 * year + year / 4 - year / 100 + year / 400;
            let days = era_day + (153 * (month - 3) + 2) / 5 + date - 1 - 719_468;
            assert_eq!(i64::try_from(seconds).unwrap(), days * 86_400, "{day}");
        }
    }
}
