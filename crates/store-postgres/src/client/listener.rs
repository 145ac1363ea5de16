//! The one connection on which a store object hears that it is somebody's turn.

use std::time::Duration;

use lock_spi::{AttemptId, Result};
use sqlx::postgres::{PgListener, PgPoolOptions};
use sqlx::types::Uuid;

use super::connect::PostgresClient;
use crate::error::{Failure, Phase, not_now, timed_out};

/// After so long a silence the server is asked for a sign of life: a connection that is broken in
/// silence looks like one on which nothing happens.
const SILENCE: Duration = Duration::from_secs(10);

/// Hears notifications until it is broken; then it is of no use any more.
#[derive(Debug)]
pub(crate) struct Listener {
    client: PostgresClient,
    listener: PgListener,
    limit: Duration,
}

/// What a listener hears.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Heard {
    /// It is this attempt's turn to look.
    Turn(AttemptId),
    /// Nothing that means anything to us.
    Noise,
}

impl Listener {
    pub(crate) async fn start(
        client: &PostgresClient,
        channel: &str,
        limit: Duration,
    ) -> Result<Self> {
        let options = client.options_to_listen();
        let options = options.ok_or_else(|| not_now("no host is known"))?;
        let start = async {
            // The listener takes its connection out of a pool, of whatever size, for good.
            let pool = PgPoolOptions::new()
                .max_connections(1)
                .acquire_timeout(limit)
                .idle_timeout(None)
                .max_lifetime(None)
                .test_before_acquire(false)
                .connect_lazy_with(options);
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.eager_reconnect(false);
            listener.listen(channel).await?;
            Ok(listener)
        };
        let started = client.runtime().timeout(limit, start).await;
        let started = started.map_err(|_elapsed| timed_out(lock_spi::Effect::None))?;
        let listener = started.map_err(|error| Failure::new(Phase::Connecting, error))?;
        Ok(Self {
            client: client.clone(),
            listener,
            limit,
        })
    }

    /// What comes next.
    pub(crate) async fn hear(&mut self) -> Result<Heard> {
        loop {
            // Dropped while it waits for the next message it has lost none.
            let next = self
                .client
                .runtime()
                .timeout(SILENCE, self.listener.try_recv());
            match next.await {
                Ok(Ok(Some(told))) => {
                    let attempt = told.payload().parse().ok();
                    let turn = attempt.map(|id: Uuid| AttemptId::from_u128(id.as_u128()));
                    return Ok(turn.map_or(Heard::Noise, Heard::Turn));
                }
                Ok(Ok(None)) => return Err(not_now("the connection that listens is broken")),
                Ok(Err(error)) => return Err(Failure::new(Phase::Connecting, error).into()),
                Err(_silent) => self.check().await?,
            }
        }
    }

    async fn check(&mut self) -> Result<()> {
        let sign = sqlx::raw_sql("SELECT 1").execute(&mut self.listener);
        let sign = self.client.runtime().timeout(self.limit, sign).await;
        let sign = sign.map_err(|_elapsed| timed_out(lock_spi::Effect::None))?;
        sign.map_err(|error| Failure::new(Phase::Connecting, error))?;
        Ok(())
    }
}
