use std::io::{self, Write};

use fencelock::spi::{FencingToken, LockOutcome, Revocation};
use serde::Serialize;

use super::{moment, one_line, or_dash};
use crate::output::{Answer, Table};

/// What a revoke did.
#[derive(Debug, Serialize)]
pub(crate) struct OutcomeView {
    /// Whether a grant was ended.
    pub(crate) revoked: bool,
    pub(crate) previous_token: Option<String>,
    pub(crate) previous_owner: Option<String>,
    pub(crate) floor: Option<String>,
}

/// The record of a revoke.
#[derive(Debug, Serialize)]
pub(crate) struct RevocationView {
    pub(crate) id: String,
    pub(crate) key: String,
    pub(crate) by: String,
    pub(crate) reason: String,
    /// By the revoking machine's clock.
    pub(crate) at: String,
    #[serde(flatten)]
    pub(crate) outcome: OutcomeView,
}

impl From<&LockOutcome> for OutcomeView {
    fn from(outcome: &LockOutcome) -> Self {
        let LockOutcome {
            revoked,
            previous_token,
            previous_owner,
            new_token_floor,
        } = outcome;
        let text = |token: &FencingToken| token.to_string();
        Self {
            revoked: *revoked,
            previous_token: previous_token.as_ref().map(text),
            previous_owner: previous_owner.as_ref().map(ToString::to_string),
            floor: new_token_floor.as_ref().map(text),
        }
    }
}

impl From<&Revocation> for RevocationView {
    fn from(revocation: &Revocation) -> Self {
        let Revocation {
            id,
            key,
            by,
            reason,
            at,
            outcome,
        } = revocation;
        Self {
            id: id.to_string(),
            key: key.to_string(),
            by: by.to_string(),
            reason: reason.to_string(),
            at: moment(*at),
            outcome: outcome.into(),
        }
    }
}

impl Answer for OutcomeView {
    fn to_people(&self, out: &mut dyn Write) -> io::Result<()> {
        match (&self.previous_token, &self.previous_owner) {
            (Some(token), Some(owner)) => {
                writeln!(out, "revoked the grant {token} of {}", one_line(owner))?;
            }
            _ => writeln!(out, "no grant was ended")?,
        }
        match &self.floor {
            Some(floor) => writeln!(out, "no token at or below {floor} is handed out any more"),
            None => Ok(()),
        }
    }
}

/// Revocations, newest first.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Revocations(pub(crate) Vec<RevocationView>);

impl Answer for Revocations {
    fn to_people(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.0.is_empty() {
            return writeln!(out, "nothing was revoked");
        }
        let mut table = Table::new(["at", "by", "ended", "of", "floor", "reason"]);
        for revocation in &self.0 {
            let outcome = &revocation.outcome;
            table.row([
                revocation.at.clone(),
                one_line(&revocation.by),
                or_dash(outcome.previous_token.as_ref()),
                or_dash(outcome.previous_owner.as_deref().map(one_line)),
                or_dash(outcome.floor.as_ref()),
                one_line(&revocation.reason),
            ]);
        }
        table.write(out)
    }
}
