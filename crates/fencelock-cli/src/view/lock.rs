use std::io::{self, Write};
use std::time::Duration;

use fencelock::spi::{FencingToken, Holder, LockInfo};
use serde::Serialize;

use super::{brief, milliseconds, moment, one_line, or_dash};
use crate::output::{Answer, DIM, Table};

/// A key and who holds it.
#[derive(Debug, Serialize)]
pub(crate) struct LockView {
    pub(crate) key: String,
    pub(crate) held: bool,
    pub(crate) holder: Option<HolderView>,
    /// No grant is handed out at or below it.
    pub(crate) floor: Option<String>,
    /// `null` where the store did not look.
    pub(crate) waiters: Option<u32>,
}

/// Who holds a key.
#[derive(Debug, Serialize)]
pub(crate) struct HolderView {
    pub(crate) token: String,
    pub(crate) owner: String,
    pub(crate) session: String,
    /// By the holder's clock.
    pub(crate) granted_at: String,
    /// Unless renewed; `null` where the store does not know.
    pub(crate) remaining_ms: Option<u64>,
    /// What the holder shows, as far as it is text.
    pub(crate) payload: Option<String>,
}

impl From<&LockInfo> for LockView {
    fn from(info: &LockInfo) -> Self {
        let LockInfo {
            key,
            floor,
            waiter_count,
            holder,
        } = info;
        Self {
            key: key.to_string(),
            held: holder.is_some(),
            holder: holder.as_ref().map(HolderView::from),
            floor: floor.map(|floor: FencingToken| floor.to_string()),
            waiters: *waiter_count,
        }
    }
}

impl From<&Holder> for HolderView {
    fn from(holder: &Holder) -> Self {
        let Holder {
            token,
            owner,
            session,
            payload,
            granted_at,
            remaining,
        } = holder;
        let shown = !payload.is_empty();
        Self {
            token: token.to_string(),
            owner: owner.to_string(),
            session: session.to_string(),
            granted_at: moment(*granted_at),
            remaining_ms: remaining.map(milliseconds),
            payload: shown.then(|| String::from_utf8_lossy(payload.as_bytes()).into_owned()),
        }
    }
}

impl Answer for LockView {
    fn to_people(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut field = |name, value: &str| writeln!(out, "{DIM}{name:<8}{DIM:#} {value}");
        field("key", &self.key)?;
        match &self.holder {
            Some(holder) => {
                field("held by", &one_line(&holder.owner))?;
                field("token", &holder.token)?;
                let since = format!("{}, by the holder's clock", holder.granted_at);
                field("since", &since)?;
                if let Some(remaining) = holder.remaining_ms {
                    let remaining = brief(Duration::from_millis(remaining));
                    field("lives", &format!("{remaining} more, unless renewed"))?;
                }
                field("session", &holder.session)?;
                if let Some(payload) = &holder.payload {
                    field("shows", &one_line(payload))?;
                }
            }
            None => field("held by", "nobody")?,
        }
        field("waiting", &or_dash(self.waiters))?;
        match &self.floor {
            Some(floor) => field(
                "floor",
                &format!("{floor}; no token at or below it is handed out"),
            ),
            None => Ok(()),
        }
    }
}

/// Locks that are held.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Locks(pub(crate) Vec<LockView>);

impl Answer for Locks {
    fn to_people(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.0.is_empty() {
            return writeln!(out, "no lock is held");
        }
        let mut table = Table::new(["key", "token", "owner", "since", "lives", "waiting"]);
        for lock in &self.0 {
            let holder = lock.holder.as_ref();
            let remaining = holder.and_then(|holder| holder.remaining_ms);
            table.row([
                lock.key.clone(),
                or_dash(holder.map(|holder| &holder.token)),
                or_dash(holder.map(|holder| one_line(&holder.owner))),
                or_dash(holder.map(|holder| &holder.granted_at)),
                or_dash(remaining.map(|left| brief(Duration::from_millis(left)))),
                or_dash(lock.waiters),
            ]);
        }
        table.write(out)
    }
}
