use std::sync::{Mutex, MutexGuard, PoisonError};

use etcd_client::proto::PbLeaseKeepAliveResponse;
use etcd_client::{Error, LeaseClient, LeaseKeepAliveStream, LeaseKeeper};

use super::errors::is_unknown_lease;

/// So many streams are kept for the next renewals.
const MAX_IDLE: usize = 8;

/// Renewals of leases over streams that are kept open.
///
/// A stream carries one renewal at a time, of any lease. It is taken out for it and put back when
/// its answer has come: one whose answer is still under way is never used again, because that
/// answer would be taken for the next one's, which was sent later.
#[derive(Default)]
pub(super) struct KeepAlives {
    idle: Mutex<Vec<Stream>>,
}

struct Stream {
    keeper: LeaseKeeper,
    answers: LeaseKeepAliveStream,
}

impl KeepAlives {
    /// Renews a lease; `None` when the server does not know it.
    pub(super) async fn renew(
        &self,
        mut client: LeaseClient,
        id: i64,
    ) -> Result<Option<PbLeaseKeepAliveResponse>, Error> {
        let idle = self.idle().pop();
        // A stream that was kept may have broken since, together with its connection.
        if let Some(stream) = idle
            && let Ok(answer) = self.renew_on(stream, id).await
        {
            return Ok(Some(answer));
        }
        // Opening renews too, but what is said to that has no header left, and it is the header
        // that tells who led.
        match client.keep_alive(id).await {
            Ok((keeper, answers)) => self
                .renew_on(Stream { keeper, answers }, id)
                .await
                .map(Some),
            Err(error) if is_unknown_lease(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn renew_on(
        &self,
        mut stream: Stream,
        id: i64,
    ) -> Result<PbLeaseKeepAliveResponse, Error> {
        stream.keeper.id = id;
        stream.keeper.keep_alive().await?;
        match stream.answers.message().await? {
            Some(answer) if answer.id() == id => {
                self.keep(stream);
                Ok(answer.0)
            }
            Some(_) => Err(broken("the answer to a renewal is about another lease")),
            None => Err(broken("the server ended the stream of renewals")),
        }
    }

    fn keep(&self, stream: Stream) {
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE {
            idle.push(stream);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Stream>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn broken(message: &str) -> Error {
    Error::LeaseKeepAliveError(message.into())
}
