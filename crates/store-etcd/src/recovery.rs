//! Beginning a new term, after a restore or whatever else took the cluster back.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use etcd_kv::MetadataStore;
use lock_spi::{
    Effect, Error, ErrorKind, FencingToken, Instant, RecoverRequest, Recovery, RecoveryId, Result,
};

use crate::codec::{MetaValue, RecoveryValue, State};
use crate::core::{Core, ROUNDS};
use crate::error::not_now;
use crate::meta::Meta;
use crate::ops::{Recover, WriteMeta};

/// 2020-01-01, since the Unix epoch.
const TERM_ORIGIN: Duration = Duration::from_secs(1_577_836_800);

/// When this store object first saw a recovery; its hold-off counts from then, on its own clock.
#[derive(Debug, Default)]
pub(crate) struct HoldOff(Mutex<Option<(RecoveryId, Instant)>>);

impl HoldOff {
    fn first_seen(&self, id: RecoveryId, now: Instant) -> Instant {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *seen {
            Some((known, since)) if known == id => since,
            _ => {
                *seen = Some((id, now));
                now
            }
        }
    }
}

pub(crate) async fn recover<M: MetadataStore>(
    core: Arc<Core<M>>,
    request: RecoverRequest,
) -> Result<Recovery> {
    let limit = core.config.request_timeout();
    for _ in 0..ROUNDS {
        let (meta, header) = core.read_meta(limit).await?;
        let begun = meta.value.recovery.clone();
        if let Some(begun) = begun.filter(|recovery| recovery.id == request.id) {
            core.adopt_meta_of(meta.clone(), header)?;
            if let Some(recovery) = core.go_on(limit, &meta, &begun).await? {
                return Ok(recovery);
            }
            continue;
        }
        let value = MetaValue {
            term: next_term(&meta.value, request.above, core.runtime.wall_clock())?,
            state: State::Closed,
            recovery: Some(RecoveryValue {
                id: request.id,
                hold_off: request.hold_off,
            }),
            cluster_id: header.cluster_id,
            watermark: meta.value.watermark,
        };
        let recover = Recover {
            keys: &core.keys,
            expected: meta.revision,
            value: &value,
        };
        // Repeated with the same id it goes on, so an answer that is lost is the caller's to ask
        // for again; one that is refused means that the state is another by now.
        drop(core.execute(limit, &recover).await?);
    }
    Err(not_now("others kept getting in between").with_effect(Effect::Unknown))
}

impl<M: MetadataStore> Core<M> {
    /// Opens the namespace when the hold-off is over; `None` when the state is another by now.
    async fn go_on(
        &self,
        limit: Duration,
        meta: &Meta,
        begun: &RecoveryValue,
    ) -> Result<Option<Recovery>> {
        let term = meta.value.term;
        let now = self.runtime.now();
        let since = self.hold_off.first_seen(begun.id, now);
        let closed_for = (since + begun.hold_off).saturating_since(now);
        if meta.is_open() || !closed_for.is_zero() {
            let closed_for = if meta.is_open() {
                Duration::ZERO
            } else {
                closed_for
            };
            return Ok(Some(Recovery { term, closed_for }));
        }
        let value = MetaValue {
            state: State::Open,
            ..meta.value.clone()
        };
        let open = WriteMeta {
            keys: &self.keys,
            expected: meta.revision,
            value: &value,
        };
        drop(self.execute(limit, &open).await?);
        Ok(None)
    }
}

/// A term above every token that anybody may know. Hours make it higher than that of a recovery
/// which the restored backup knows nothing of.
fn next_term(meta: &MetaValue, above: Option<FencingToken>, wall_clock: Duration) -> Result<u64> {
    let hours = wall_clock.saturating_sub(TERM_ORIGIN).as_secs() / 3600;
    let known = [above, meta.watermark].into_iter().flatten();
    let known = known.map(FencingToken::term).max();
    let term = known.unwrap_or(0).max(meta.term) + 1;
    let term = term.max(hours);
    if term > FencingToken::MAX_TERM {
        let message = format!("no term above {}", FencingToken::MAX_TERM);
        return Err(Error::new(ErrorKind::Exhausted, Effect::None, message));
    }
    Ok(term)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(term: u64) -> Option<FencingToken> {
        Some(FencingToken::from_parts(term, 1).unwrap())
    }

    #[test]
    fn a_term_is_above_all_that_is_known() {
        let hours = |hours: u64| TERM_ORIGIN + Duration::from_secs(3600 * hours);
        let meta = |term, watermark| MetaValue {
            term,
            watermark,
            ..Meta::first(1)
        };
        let early = Duration::ZERO;
        for (meta, above, now, term) in [
            (meta(0, None), None, early, 1),
            (meta(4, None), None, early, 5),
            (meta(4, None), token(9), early, 10),
            (meta(4, token(12)), token(9), early, 13),
            (meta(4, None), None, hours(60_000), 60_000),
            (meta(70_000, None), None, hours(60_000), 70_001),
        ] {
            assert_eq!(next_term(&meta, above, now).unwrap(), term);
        }
    }

    #[test]
    fn the_last_term_is_the_last() {
        let meta = MetaValue {
            term: FencingToken::MAX_TERM,
            ..Meta::first(1)
        };
        let error = next_term(&meta, None, Duration::ZERO).unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Exhausted, Effect::None)
        );
    }

    #[test]
    fn a_hold_off_counts_from_when_its_recovery_was_first_seen() {
        let at = |seconds| Instant::from_origin(Duration::from_secs(seconds));
        let (hold_off, id) = (HoldOff::default(), RecoveryId::from_u128(1));
        assert_eq!(hold_off.first_seen(id, at(5)), at(5));
        assert_eq!(hold_off.first_seen(id, at(9)), at(5));
        assert_eq!(hold_off.first_seen(RecoveryId::from_u128(2), at(9)), at(9));
    }
}
