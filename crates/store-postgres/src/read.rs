//! What is only read: `read`, `list`, `revocations`, the sessions and those who wait.

use std::sync::Arc;

use lock_spi::{
    Error, KeyPrefix, LockInfo, LockKey, Page, PageRequest, PageToken, Result, Revocation,
    SessionId, SessionInfo, WaiterInfo,
};

use crate::calls::{List, ListSessions, ListWaiters, Read, Revocations};
use crate::core::Core;
use crate::error::invalid;

/// Pages have no more entries than this, whatever is asked for.
const MOST_ENTRIES: u32 = 1000;
/// How the page tokens of a listing begin; its key follows.
const BEHIND: &str = "behind ";

pub(crate) async fn read(core: Arc<Core>, key: LockKey) -> Result<LockInfo> {
    let read = Read {
        namespace: core.namespace(),
        key: &key,
    };
    let known = core.call(core.config.request_timeout(), &read).await?.reply;
    Ok(LockInfo {
        floor: known.floor,
        waiter_count: known.waiters,
        holder: known.holder,
        key,
    })
}

/// A page may be short of entries where many rows are empty; one without any is the last.
pub(crate) async fn list(
    core: Arc<Core>,
    prefix: KeyPrefix,
    page: PageRequest,
) -> Result<Page<LockInfo>> {
    let limit = limit_of(&page)?;
    let mut after = page
        .after
        .map(|token| key_below(&prefix, token))
        .transpose()?;
    loop {
        let list = List {
            namespace: core.namespace(),
            prefix: &prefix,
            after: after.as_ref(),
            limit,
        };
        let listed = core.call(core.config.request_timeout(), &list).await?.reply;
        after = listed.next;
        if listed.held.is_empty() && after.is_some() {
            continue;
        }
        let entries = listed
            .held
            .into_iter()
            .map(|(key, floor, holder)| LockInfo {
                key,
                floor,
                waiter_count: None,
                holder: Some(holder),
            });
        return Ok(Page {
            entries: entries.collect(),
            next: after.map(|key| PageToken(format!("{BEHIND}{key}"))),
        });
    }
}

pub(crate) async fn revocations(
    core: Arc<Core>,
    key: LockKey,
    page: PageRequest,
) -> Result<Page<Revocation>> {
    let limit = limit_of(&page)?;
    let serial = |PageToken(text)| text.parse().ok().filter(|serial: &i64| *serial > 0);
    let revocations = Revocations {
        namespace: core.namespace(),
        key: &key,
        below: page
            .after
            .map(|token| serial(token).ok_or_else(foreign_token))
            .transpose()?,
        limit: limit + 1,
    };
    let records = core.call(core.config.request_timeout(), &revocations).await;
    let (records, next) = cut(records?.reply, limit, |record| record.serial.to_string());
    let entries = records.into_iter().map(|record| Revocation {
        id: record.id,
        key: key.clone(),
        by: record.by,
        reason: record.reason,
        at: record.at,
        outcome: record.outcome,
    });
    let entries = entries.collect();
    Ok(Page { entries, next })
}

pub(crate) async fn sessions(core: Arc<Core>, page: PageRequest) -> Result<Page<SessionInfo>> {
    let limit = limit_of(&page)?;
    let after = |PageToken(text): PageToken| text.parse::<SessionId>();
    let list = ListSessions {
        namespace: core.namespace(),
        after: page
            .after
            .map(|token| after(token).map_err(|_| foreign_token()))
            .transpose()?,
        limit: limit + 1,
    };
    let found = core.call(core.config.request_timeout(), &list).await?.reply;
    let (entries, next) = cut(found, limit, |info| info.session.to_string());
    Ok(Page { entries, next })
}

pub(crate) async fn waiters(core: Arc<Core>, key: LockKey) -> Result<Vec<WaiterInfo>> {
    let list = ListWaiters {
        namespace: core.namespace(),
        key: &key,
    };
    Ok(core.call(core.config.request_timeout(), &list).await?.reply)
}

fn limit_of(page: &PageRequest) -> Result<i32> {
    match i32::try_from(page.limit.min(MOST_ENTRIES)) {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => Err(invalid("a page has at least one entry")),
    }
}

fn key_below(prefix: &KeyPrefix, PageToken(text): PageToken) -> Result<LockKey> {
    let key = text.strip_prefix(BEHIND).ok_or_else(foreign_token)?;
    let key = LockKey::new(key).map_err(|_| foreign_token())?;
    match key.as_str().starts_with(prefix.as_str()) {
        true => Ok(key),
        false => Err(foreign_token()),
    }
}

fn foreign_token() -> Error {
    invalid("the page token was not made by this listing")
}

/// Cuts off what is beyond the limit; where there was anything, the next page begins behind the last
/// entry that is left.
fn cut<T>(
    mut entries: Vec<T>,
    limit: i32,
    place: impl Fn(&T) -> String,
) -> (Vec<T>, Option<PageToken>) {
    let limit = usize::try_from(limit).unwrap_or(0);
    if entries.len() <= limit {
        return (entries, None);
    }
    entries.truncate(limit);
    let next = entries.last().map(|last| PageToken(place(last)));
    (entries, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_where_the_limit_is_and_only_then_has_a_next_one() {
        let cut = |entries| cut(entries, 2, u8::to_string);
        assert_eq!(cut(vec![1, 2]), (vec![1, 2], None));
        assert_eq!(
            cut(vec![1, 2, 3]),
            (vec![1, 2], Some(PageToken("2".into())))
        );
        assert_eq!(cut(vec![]), (vec![], None));
    }

    #[test]
    fn only_page_tokens_of_the_listing_are_taken() {
        let prefix = KeyPrefix::new("a/").unwrap();
        assert!(key_below(&prefix, PageToken("behind a/b".into())).is_ok());
        for foreign in ["a/b", "", "behind b", "behind ", "behind a/\n"] {
            assert!(key_below(&prefix, PageToken(foreign.into())).is_err());
        }
        let nothing = PageRequest {
            after: None,
            limit: 0,
        };
        assert!(limit_of(&nothing).is_err());
        let much = PageRequest {
            after: None,
            limit: u32::MAX,
        };
        assert_eq!(limit_of(&much).unwrap(), 1000);
    }
}
