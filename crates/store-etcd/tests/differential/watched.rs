//! One watch on both: what the simulated etcd shows at once, the real one shows in time.

use std::collections::VecDeque;
use std::time::Duration;

use etcd_kv::{KvError, KvErrorKind, WatchEvent, WatchRequest, WatchStream};
use futures_util::{FutureExt, StreamExt};
use lock_spi::Runtime;

/// More than anything that does come takes.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct Watched {
    simulated: WatchStream,
    real: WatchStream,
    /// The revision when it began.
    began: i64,
    /// Whether it began in the past, and the real one may not have caught up.
    behind: bool,
    /// What the simulated one showed and the real one has yet to show.
    to_come: VecDeque<Result<WatchEvent, KvErrorKind>>,
}

impl Watched {
    pub(crate) fn new(
        request: &WatchRequest,
        [simulated, real]: [WatchStream; 2],
        began: i64,
    ) -> Self {
        Self {
            simulated,
            real,
            began,
            behind: request.start.is_some_and(|start| start <= began),
            to_come: VecDeque::new(),
        }
    }

    /// Whether a compaction now would end it or not, as the real server comes to it.
    pub(crate) fn is_behind(&self) -> bool {
        self.behind
    }

    /// Takes in what the simulated one shows by now.
    pub(crate) fn look(&mut self) {
        while let Some(Some(response)) = self.simulated.next().now_or_never() {
            match response {
                Ok(response) => self.to_come.extend(response.events.into_iter().map(Ok)),
                Err(error) => self.to_come.push_back(Err(kind(&error))),
            }
        }
    }

    /// Sees to it that the real one shows the same, and no revision in two parts.
    pub(crate) async fn compare(&mut self, runtime: &dyn Runtime) {
        self.look();
        while let Some(next) = self.to_come.front() {
            let response = runtime.timeout(LIMIT, self.real.next()).await;
            let Ok(response) = response else {
                panic!("the real one never shows {next:?}");
            };
            let events = match response.expect("no silent end") {
                Ok(response) => response.events.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(kind(&error))],
            };
            let mut last = 0;
            for event in events {
                let expected = self.to_come.pop_front();
                assert_eq!(expected.as_ref(), Some(&event), "the simulated one first");
                last = event.map_or(0, |event| event.kv.mod_revision);
                self.behind &= last <= self.began;
            }
            if let Some(Ok(next)) = self.to_come.front() {
                assert_ne!(next.kv.mod_revision, last, "one revision in two responses");
            }
        }
    }
}

fn kind(error: &KvError) -> KvErrorKind {
    error.kind()
}
