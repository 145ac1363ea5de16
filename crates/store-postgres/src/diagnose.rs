//! Findings of the database, as the findings of a store.

use lock_spi::Finding;

use crate::calls::Diagnosis;

/// Every finding that the schema of this build can tell.
const KNOWN: [&str; 16] = [
    "asynchronous_standby",
    "autovacuum_off",
    "counter_behind",
    "counter_near_end",
    "further_index",
    "idle_slot",
    "namespace_closed",
    "not_reaped",
    "notify_queue_full",
    "old_transaction",
    "sequence_altered",
    "term_near_end",
    "timeline_unreadable",
    "unlogged",
    "unsafe_setting",
    "wraparound_near",
];

pub(crate) fn finding(diagnosis: Diagnosis) -> Finding {
    let Diagnosis {
        id,
        severity,
        what,
        what_to_do,
    } = diagnosis;
    Finding {
        // A schema that is newer than this build may know of more.
        id: KNOWN
            .into_iter()
            .find(|known| *known == id)
            .unwrap_or("other"),
        severity,
        what,
        what_to_do,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_of_the_schema_is_known_by_its_name() {
        let text = crate::schema::sql();
        let function = text.split("dlock.diagnose_1()").nth(1).unwrap();
        let findings = function.split("$f$").nth(1).unwrap();
        let mut told: Vec<_> = findings
            .split("SELECT '")
            .skip(1)
            .filter_map(|rest| {
                let (id, rest) = rest.split_once("', '")?;
                let (severity, _) = rest.split_once('\'')?;
                ["note", "warning", "critical"]
                    .contains(&severity)
                    .then_some(id)
            })
            .collect();
        told.sort_unstable();
        assert_eq!(told, KNOWN);
    }
}
