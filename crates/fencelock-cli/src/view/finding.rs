use std::io::{self, Write};

use fencelock::spi::{Finding, Severity};
use serde::Serialize;

use crate::output::{Answer, BOLD, HINT, WARN, WRONG};

/// Something that an operator should know.
#[derive(Debug, Serialize)]
struct FindingView {
    id: &'static str,
    severity: &'static str,
    what: String,
    /// `null` where there is nothing to do.
    what_to_do: Option<String>,
}

/// All that was found, the worst first.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Findings(Vec<FindingView>);

const CRITICAL: &str = "critical";
const WARNING: &str = "warning";
const NOTE: &str = "note";

impl Findings {
    pub(crate) fn new(mut findings: Vec<Finding>) -> Self {
        // Among equals, in the order in which they were found.
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        Self(findings.into_iter().map(FindingView::from).collect())
    }

    pub(crate) fn criticals(&self) -> usize {
        self.count(CRITICAL)
    }

    pub(crate) fn warnings(&self) -> usize {
        self.count(WARNING)
    }

    fn count(&self, severity: &str) -> usize {
        let of_it = self.0.iter().filter(|finding| finding.severity == severity);
        of_it.count()
    }
}

impl From<Finding> for FindingView {
    fn from(finding: Finding) -> Self {
        let Finding {
            id,
            severity,
            what,
            what_to_do,
        } = finding;
        Self {
            id,
            severity: match severity {
                Severity::Critical => CRITICAL,
                Severity::Warning => WARNING,
                Severity::Note => NOTE,
            },
            what,
            what_to_do: Some(what_to_do).filter(|what| what != "nothing"),
        }
    }
}

impl Answer for Findings {
    fn to_people(&self, out: &mut dyn Write) -> io::Result<()> {
        for finding in &self.0 {
            let style = match finding.severity {
                CRITICAL => WRONG,
                WARNING => WARN,
                _ => BOLD,
            };
            let FindingView {
                id, severity, what, ..
            } = finding;
            writeln!(out, "{style}{severity:<8}{style:#}  {id}: {what}")?;
            if let Some(what_to_do) = &finding.what_to_do {
                writeln!(out, "          {HINT}to do:{HINT:#} {what_to_do}")?;
            }
        }
        Ok(())
    }
}
