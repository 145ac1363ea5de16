//! Ending grants and attempts: `delete_if_owner` and `abandon`.

use std::collections::BTreeMap;
use std::sync::Arc;

use lock_spi::{AttemptId, FencingToken, LockKey, Namespace, Result, SessionId};

use crate::batch::{Batched, Batches};
use crate::calls::{Abandon, Ending, Release, ReleaseMany, Released};
use crate::client::Call;
use crate::core::{Core, unconfirmed};
use crate::session::AtWork;

pub(crate) async fn delete_if_owner(
    core: Arc<Core>,
    key: LockKey,
    token: FencingToken,
) -> Result<bool> {
    let own = core.sessions.holding(token);
    let granted = own
        .as_ref()
        .and_then(|own| own.grant(token))
        .filter(|granted| granted.key == key);
    // A renewal meanwhile must not end it as surplus, or nothing would be found here.
    let releasing = own.as_ref().zip(granted.as_ref());
    let _at_work =
        releasing.and_then(|(own, granted)| AtWork::begin(own, granted.attempt, &granted.key));
    if let (Some(own), Some(granted)) = (&own, &granted) {
        // Nothing more is sent for its attempt from here on.
        own.with_attempts(|attempts| attempts.give_up(granted.attempt, &key));
    }
    let ending = Ending {
        key: key.clone(),
        token,
        settled: granted.as_ref().is_some_and(|granted| granted.settled),
    };
    let answer = core
        .call_batched(core.limit_of(own.as_deref()), &ending)
        .await?;
    if let (Some(own), Some(granted)) = (&own, &granted) {
        core.sessions.end(own, granted.attempt, &key);
    }
    core.wake(answer.reply.wake);
    Ok(answer.reply.released)
}

impl Batched for Ending {
    type Reply = Released;

    fn key(&self) -> &LockKey {
        &self.key
    }

    fn batches(core: &Core) -> &Batches<Self> {
        &core.releases
    }

    fn alone<'a>(&'a self, namespace: &'a Namespace) -> impl Call<Reply = Released> + 'a {
        Release {
            namespace,
            ending: self,
        }
    }

    fn together<'a>(
        endings: &'a [Self],
        namespace: &'a Namespace,
    ) -> impl Call<Reply = BTreeMap<usize, Released>> + 'a {
        ReleaseMany { namespace, endings }
    }
}

pub(crate) async fn abandon(
    core: Arc<Core>,
    key: LockKey,
    session: SessionId,
    attempt: AttemptId,
) -> Result<()> {
    if core.sessions.was_closed(session) {
        return Ok(());
    }
    if let Some(own) = core.sessions.get(session) {
        own.with_attempts(|attempts| attempts.give_up(attempt, &key));
        return core.end_attempt(&own, &key, attempt).await;
    }
    let abandon = Abandon {
        namespace: core.namespace(),
        key: &key,
        session,
        attempt,
    };
    let answer = core.call(core.config.request_timeout(), &abandon).await;
    core.wake(answer.map_err(unconfirmed)?.reply);
    Ok(())
}
