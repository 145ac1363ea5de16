//! What operators need.

use async_trait::async_trait;
use etcd_kv::{Consistency, MetadataStore, Order, RangeRequest};
use lock_spi::{
    Effect, Error, ErrorKind, Finding, LockKey, Migration, Page, PageRequest, Place,
    RecoverRequest, Recovery, Result, SessionInfo, StoreAdmin, WaiterInfo,
};

use crate::codec::{FORMAT, Name, SessionValue, TicketValue, Value, format_of};
use crate::core::Core;
use crate::diagnose::diagnose;
use crate::error::nonsense;
use crate::read::pages;
use crate::recovery::recover;
use crate::store::EtcdLockStore;

#[async_trait]
impl<M: MetadataStore> StoreAdmin for EtcdLockStore<M> {
    async fn sessions(&self, page: PageRequest) -> Result<Page<SessionInfo>> {
        let core = self.core();
        pages(core, &core.keys.sessions(), page, |name, kv| {
            let Name::Session(session) = name else {
                return None;
            };
            let value = SessionValue::decode(&kv.value).ok()?;
            let own = core.sessions.get(session);
            Some(SessionInfo {
                session,
                owner: value.owner,
                ttl: value.ttl,
                opened_at: value.opened_at,
                remaining: own.map(|own| own.remaining(core.runtime.now())),
            })
        })
        .await
    }

    async fn waiters(&self, key: &LockKey) -> Result<Vec<WaiterInfo>> {
        let core = self.core();
        let request = RangeRequest {
            order: Order::CreateRevision,
            ..RangeRequest::prefix(core.keys.queue(key))
        };
        let found = core.range(core.config.request_timeout(), request).await?;
        let ours = found.kvs.iter().filter_map(|kv| {
            let Some(Name::Ticket(_, attempt)) = core.keys.name(&kv.key) else {
                return None;
            };
            let value = TicketValue::decode(&kv.value).ok()?;
            Some((attempt, value, kv.create_revision.unsigned_abs()))
        });
        let waiters = ours
            .zip(0_u32..)
            .map(|((attempt, value, position), ahead)| {
                let ahead = Some(ahead);
                WaiterInfo {
                    attempt,
                    session: value.session,
                    owner: value.owner,
                    place: Place { position, ahead },
                    queued_at: value.queued_at,
                }
            });
        Ok(waiters.collect())
    }

    async fn diagnose(&self) -> Result<Vec<Finding>> {
        diagnose(self.core()).await
    }

    async fn migration(&self) -> Result<Migration> {
        migration(self.core()).await
    }

    async fn migrate(&self) -> Result<Migration> {
        // There is one format so far, and opening the store has made it.
        let migration = migration(self.core()).await?;
        match migration.found {
            Some(FORMAT) => Ok(migration),
            found => {
                let message = format!("no way from format {found:?} to {FORMAT}");
                Err(Error::new(ErrorKind::Incompatible, Effect::None, message))
            }
        }
    }

    async fn recover(&self, request: RecoverRequest) -> Result<Recovery> {
        self.run_to_end(|core| recover(core, request)).await
    }
}

async fn migration<M: MetadataStore>(core: &Core<M>) -> Result<Migration> {
    let get = core.kv.get(core.keys.meta(), Consistency::Linearizable);
    let found = core.call(core.config.request_timeout(), get).await;
    let found = found.map_err(|error| error.with_effect(Effect::None))?.kv;
    let found = found
        .map(|kv| {
            format_of(&kv.value).ok_or_else(|| nonsense("the state of the namespace has no format"))
        })
        .transpose()?;
    let wanted = FORMAT;
    Ok(Migration { found, wanted })
}
