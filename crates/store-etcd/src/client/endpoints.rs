use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use etcd_kv::{Applied, KvError, KvErrorKind};
use futures_util::future::join_all;
use lock_spi::{Elapsed, Instant, Result, Runtime};

use super::config::ClientConfig;
use super::errors;
use super::member::{Connector, Member};
use super::slot::{Cell, Slot};
use super::tls;

/// For the first connections there is more time: passwords are slow to check on purpose.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// The members of the cluster, and which of them is asked.
///
/// All calls go to one member for as long as it answers. One that does not is not asked again
/// before the others were.
pub(super) struct Endpoints {
    runtime: Arc<dyn Runtime>,
    /// Of one call, with all members that are asked.
    limit: Duration,
    connector: Connector,
    all: Vec<Endpoint>,
    preferred: AtomicUsize,
}

struct Endpoint {
    host: String,
    slot: Slot<Member>,
}

/// What becomes of a call that nobody answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Call {
    /// It changes nothing: asked elsewhere, and never of unknown effect.
    Read,
    /// Done twice it does the same: asked elsewhere.
    Renewal,
    /// It may have been applied, and is asked elsewhere only when it was not.
    Write,
}

impl Endpoints {
    pub(super) fn new(config: &ClientConfig, runtime: Arc<dyn Runtime>) -> Result<Self> {
        let all = config.hosts.iter().map(|host| Endpoint {
            host: host.clone(),
            slot: Slot::default(),
        });
        let all: Vec<_> = all.collect();
        // Not every client begins with the same one.
        let first = usize::try_from(runtime.random() % (1 << 16)).unwrap_or_default();
        Ok(Self {
            connector: Connector::new(config)?,
            limit: config.request_timeout,
            preferred: AtomicUsize::new(first % all.len().max(1)),
            all,
            runtime,
        })
    }

    /// Connects to every member that can be reached; one is enough, unless another is of a version
    /// that must not be used.
    pub(super) async fn connect(&self) -> Result<(), KvError> {
        let until = self.runtime.now() + self.limit.max(CONNECT_LIMIT);
        let members = self.all.iter().map(|endpoint| async move {
            let cell = endpoint.slot.cell(self.runtime.now(), self.limit);
            self.member(endpoint, &cell, until).await.map(drop)
        });
        let mut reached = false;
        let mut failed = None;
        for member in join_all(members).await {
            match member {
                Ok(_) => reached = true,
                Err(error) if is_for_another(&error) => failed = Some(heavier(failed, error)),
                Err(error) => return Err(error),
            }
        }
        match failed {
            Some(error) if !reached => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes a call within the limit.
    pub(super) async fn call<T, F, A>(&self, kind: Call, call: F) -> Result<T, KvError>
    where
        T: Send,
        F: Fn(&Member) -> A + Send + Sync,
        A: Future<Output = Result<T, etcd_client::Error>> + Send,
    {
        let until = self.runtime.now() + self.limit;
        let first = self.preferred.load(Ordering::Relaxed);
        let mut failed: Option<KvError> = None;
        for step in 0..self.all.len() {
            let now = self.runtime.now();
            if now >= until {
                break;
            }
            let index = (first + step) % self.all.len();
            let mut turn = Turn {
                endpoints: self,
                index,
                cell: self.all[index].slot.cell(now, self.limit),
                began: now,
                answered: false,
            };
            let until = match kind {
                // Half of it, so that there is time for another one.
                Call::Read | Call::Renewal if self.all.len() > 1 => until.min(now + self.limit / 2),
                _ => until,
            };
            match self.ask(&turn, kind, until, &call).await {
                Err(error) if is_for_another(&error) => {
                    let goes_on = kind != Call::Write || error.applied() == Applied::No;
                    failed = Some(heavier(failed, error));
                    if !goes_on {
                        break;
                    }
                }
                answer => {
                    turn.answered = true;
                    return answer;
                }
            }
        }
        Err(failed.unwrap_or_else(|| silent(kind)))
    }

    async fn ask<T, F, A>(
        &self,
        turn: &Turn<'_>,
        kind: Call,
        until: Instant,
        call: &F,
    ) -> Result<T, KvError>
    where
        T: Send,
        F: Fn(&Member) -> A + Send + Sync,
        A: Future<Output = Result<T, etcd_client::Error>> + Send,
    {
        let connected_by = until.min(turn.began + self.limit / 2);
        let endpoint = &self.all[turn.index];
        let member = self.member(endpoint, &turn.cell, connected_by).await?;
        // Boxed: calls of gRPC are large, and so would be every future around them.
        let send = || Box::pin(call(member));
        let answer = async {
            match send().await {
                Err(error) if errors::wants_new_token(&error) => {
                    Box::pin(member.refresh_tokens()).await?;
                    send().await
                }
                answer => answer,
            }
        };
        match self.within(until, answer).await {
            Ok(answer) => answer.map_err(|error| judged(kind, errors::from_client(error))),
            Err(Elapsed) => Err(silent(kind)),
        }
    }

    /// The member, connected to when it is first asked. Nothing is applied by that.
    async fn member<'c>(
        &self,
        endpoint: &Endpoint,
        cell: &'c Cell<Member>,
        until: Instant,
    ) -> Result<&'c Member, KvError> {
        if let Some(member) = cell.get() {
            return Ok(member);
        }
        let connect = || Box::pin(self.connector.connect(&endpoint.host));
        let connected = cell.get_or_try_init(connect);
        match self.within(until, connected).await {
            Ok(Ok(member)) => Ok(member),
            Ok(Err(error)) => Err(judged(Call::Read, error)),
            Err(Elapsed) => Err(silent(Call::Read)),
        }
    }

    async fn within<T>(
        &self,
        until: Instant,
        future: impl Future<Output = T> + Send,
    ) -> Result<T, Elapsed> {
        let limit = until.saturating_since(self.runtime.now());
        self.runtime.timeout(limit, future).await
    }
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.all.iter().map(|endpoint| &endpoint.host);
        f.debug_list().entries(hosts).finish()
    }
}

/// Whether another member may do better.
fn is_for_another(error: &KvError) -> bool {
    match error.kind() {
        KvErrorKind::NoLeader | KvErrorKind::Unavailable => true,
        _ => tls::is_refusal(error),
    }
}

fn heavier(told: Option<KvError>, error: KvError) -> KvError {
    match told {
        Some(told) if weight(&told) > weight(&error) => told,
        _ => error,
    }
}

/// Of the errors of one call, the heaviest is told: what may have been applied stays so, whatever
/// another member says; one without a leader says more than one that is down, and that more than one
/// that is refused for good.
fn weight(error: &KvError) -> (bool, bool, bool) {
    (
        error.applied() == Applied::Unknown,
        error.kind() == KvErrorKind::NoLeader,
        !tls::is_refusal(error),
    )
}

/// The same error, knowing what kind of call it was.
fn judged(kind: Call, error: KvError) -> KvError {
    match kind {
        Call::Read => error.with_applied(Applied::No),
        Call::Renewal | Call::Write => error,
    }
}

fn silent(kind: Call) -> KvError {
    let message = "no answer within the time limit";
    judged(
        kind,
        KvError::new(KvErrorKind::Unavailable, Applied::Unknown, message),
    )
}

/// One member being asked. Dropped without an answer, another one is preferred from then on, and
/// unless that was soon, its connections are in doubt.
struct Turn<'a> {
    endpoints: &'a Endpoints,
    index: usize,
    cell: Cell<Member>,
    began: Instant,
    answered: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let now = self.endpoints.runtime.now();
        let slot = &self.endpoints.all[self.index].slot;
        if self.answered {
            slot.heard(&self.cell, now);
            return;
        }
        if now.saturating_since(self.began) >= self.endpoints.limit / 4 {
            slot.silent(&self.cell, self.began);
        }
        let next = (self.index + 1) % self.endpoints.all.len();
        let preferred = &self.endpoints.preferred;
        let relaxed = Ordering::Relaxed;
        // Where another one is preferred already, it stays so.
        if preferred
            .compare_exchange(self.index, next, relaxed, relaxed)
            .is_ok()
        {
            let host = &self.endpoints.all[self.index].host;
            tracing::debug!(host, "a member of etcd did not answer");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_errors_the_one_that_leaves_most_open_is_told() {
        let error = |kind, applied| KvError::new(kind, applied, "planted");
        let expired = rustls::CertificateError::Expired;
        let refused = error(KvErrorKind::Denied, Applied::No)
            .with_source(rustls::Error::InvalidCertificate(expired));
        assert!(is_for_another(&refused));
        assert!(!is_for_another(&error(KvErrorKind::Denied, Applied::No)));
        let down = error(KvErrorKind::Unavailable, Applied::No);
        let leaderless = error(KvErrorKind::NoLeader, Applied::No);
        let open = error(KvErrorKind::Unavailable, Applied::Unknown);
        let mut told = None;
        for (error, kind, applied) in [
            (refused, KvErrorKind::Denied, Applied::No),
            (down, KvErrorKind::Unavailable, Applied::No),
            (leaderless, KvErrorKind::NoLeader, Applied::No),
            (open, KvErrorKind::Unavailable, Applied::Unknown),
        ] {
            let heaviest = heavier(told, error);
            assert_eq!((heaviest.kind(), heaviest.applied()), (kind, applied));
            told = Some(heaviest);
        }
        let late = error(KvErrorKind::NoLeader, Applied::No);
        assert_eq!(heavier(told, late).applied(), Applied::Unknown);
    }
}
