use std::collections::BTreeSet;
use std::sync::Arc;

use super::bars::Bars;
use super::window::Window;
use crate::check::Violation;
use crate::record::{FaultName, Lane};

/// One line of the picture.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Row {
    /// A client and a lock.
    Lock { client: Arc<str>, key: Arc<str> },
    /// A fault.
    Fault(FaultName),
}

impl Row {
    pub(super) fn height(&self) -> f64 {
        match self {
            Self::Lock { .. } => 40.0,
            Self::Fault(_) => 20.0,
        }
    }
}

/// The lines that are worth drawing: of the lock that it is about, or of all; and of the faults that
/// could have had a part in it.
pub(super) fn rows(bars: &Bars, window: Window, violation: Option<&Violation>) -> Vec<Row> {
    let own = violation.and_then(|violation| violation.key.as_ref());
    let locks = bars
        .locks
        .iter()
        .filter(|((_, key), _)| own.is_none_or(|own| own == key))
        .filter(|(_, spans)| spans.iter().any(|span| window.shows(span.from, span.to)))
        .map(|((client, key), _)| Row::Lock {
            client: Arc::clone(client),
            key: Arc::clone(key),
        });
    let lanes: &[Lane] = violation.map_or(&[], |violation| &violation.lanes);
    let concerns = |hit: &Lane| {
        !hit.is_client() || lanes.is_empty() || lanes.iter().any(|lane| lane.is_same_place(hit))
    };
    let faults: BTreeSet<_> = bars
        .faults
        .iter()
        .filter(|(_, times)| {
            times
                .iter()
                .any(|(from, to, hit)| window.shows(*from, to.unwrap_or(*from)) && concerns(hit))
        })
        .map(|(fault, _)| *fault)
        .collect();
    locks.chain(faults.into_iter().map(Row::Fault)).collect()
}
