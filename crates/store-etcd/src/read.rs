//! What is only read: `read`, `list`, `revocations`.

use bytes::Bytes;
use etcd_kv::{KeyValue, MetadataStore, Order, RangeRequest};
use lock_spi::{
    Error, KeyPrefix, LockInfo, LockKey, Page, PageRequest, PageToken, Result, Revocation,
};

use crate::codec::{LockEntry, Name, RevocationValue, Value, range_after};
use crate::core::Core;
use crate::error::invalid;
use crate::ops::Peek;
use crate::view::{holder, revocation};

pub(crate) async fn read<M: MetadataStore>(core: &Core<M>, key: &LockKey) -> Result<LockInfo> {
    let peek = Peek {
        keys: &core.keys,
        key,
    };
    // It may come from a member that lags, so it is not held against the highest seen.
    let seen = core.execute(core.config.request_timeout(), &peek).await?;
    let seen = seen.reply;
    Ok(LockInfo {
        key: key.clone(),
        floor: seen.floor,
        waiter_count: Some(u32::try_from(seen.waiters).unwrap_or(u32::MAX)),
        holder: seen.lock.map(|entry| holder(core, &entry)),
    })
}

pub(crate) async fn list<M: MetadataStore>(
    core: &Core<M>,
    prefix: &KeyPrefix,
    page: PageRequest,
) -> Result<Page<LockInfo>> {
    let below = core.keys.locks(prefix);
    pages(core, &below, page, |name, kv| {
        let Name::Lock(key) = name else {
            return None;
        };
        let entry = LockEntry::read(kv).ok()?;
        Some(LockInfo {
            key,
            floor: None,
            waiter_count: None,
            holder: Some(holder(core, &entry)),
        })
    })
    .await
}

/// The records of a key, newest first. They are read whole: a key has few.
pub(crate) async fn revocations<M: MetadataStore>(
    core: &Core<M>,
    key: &LockKey,
    page: PageRequest,
) -> Result<Page<Revocation>> {
    let limit = limit_of(&page)?;
    let before = match page.after {
        None => i64::MAX,
        Some(PageToken(text)) => text.parse().map_err(|_| foreign_token())?,
    };
    let request = RangeRequest {
        order: Order::CreateRevision,
        ..RangeRequest::prefix(core.keys.revocations(key))
    };
    let found = core.range(core.config.request_timeout(), request).await?;
    let mut older = found
        .kvs
        .iter()
        .rev()
        .filter(|kv| kv.create_revision < before)
        .filter_map(|kv| {
            let Some(Name::Revocation(key, id)) = core.keys.name(&kv.key) else {
                return None;
            };
            let record = RevocationValue::decode(&kv.value).ok()?;
            Some((kv.create_revision, revocation(key, id, record)))
        })
        .peekable();
    let mut entries = Vec::new();
    let mut last = None;
    while let Some((created, record)) = older.next_if(|_| entries.len() < limit) {
        entries.push(record);
        last = Some(created);
    }
    let next = older
        .peek()
        .and(last)
        .map(|last| PageToken(last.to_string()));
    Ok(Page { entries, next })
}

/// A page of what stands below a prefix, in the order of the stored names. What is not ours is left
/// out; an administrator finds it by `diagnose`.
pub(crate) async fn pages<M: MetadataStore, T>(
    core: &Core<M>,
    below: &Bytes,
    page: PageRequest,
    read: impl Fn(Name, &KeyValue) -> Option<T> + Send,
) -> Result<Page<T>> {
    let limit = limit_of(&page)?;
    let mut last = page.after.map(|PageToken(name)| Bytes::from(name));
    if let Some(name) = &last
        && (!name.starts_with(below) || core.keys.name(name).is_none())
    {
        return Err(foreign_token());
    }
    let mut after = last.clone();
    let mut entries = Vec::new();
    loop {
        let request = RangeRequest {
            // One more, to know whether there is another page.
            limit: Some(page.limit.saturating_add(1)),
            ..RangeRequest::new(range_after(below, after.as_deref()))
        };
        let found = core.range(core.config.request_timeout(), request).await?;
        for kv in &found.kvs {
            after = Some(kv.key.clone());
            let Some(entry) = core.keys.name(&kv.key).and_then(|name| read(name, kv)) else {
                continue;
            };
            if entries.len() == limit {
                let next = last.as_deref().map(String::from_utf8_lossy);
                let next = next.map(|name| PageToken(name.into_owned()));
                return Ok(Page { entries, next });
            }
            entries.push(entry);
            last.clone_from(&after);
        }
        if !found.more {
            let next = None;
            return Ok(Page { entries, next });
        }
    }
}

fn limit_of(page: &PageRequest) -> Result<usize> {
    match usize::try_from(page.limit) {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => Err(invalid("a page has at least one entry")),
    }
}

fn foreign_token() -> Error {
    invalid("the page token was not made by this listing")
}
