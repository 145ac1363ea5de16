use lock_spi::{
    Effect, ErrorKind, Holder, InsertOutcome, InsertRequest, LockKey, Payload, Place, Queue,
};

use crate::attempt::OpenAttempt;
use crate::backend::Unanswered;
use crate::error::Error;
use crate::guard::Guard;
use crate::holding::Renewal;
use crate::session::Opened;
use crate::sessions::Sessions;
use crate::timing::Timing;

/// How often one try begins anew because its session or attempt was over.
const NEW_BEGINNINGS: u32 = 3;

/// A lock that is wished for, and how it is to be held.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) key: LockKey,
    pub(crate) timing: Timing,
    pub(crate) payload: Payload,
    pub(crate) renewal: Renewal,
    /// It gets a session of its own, to be handed over with.
    pub(crate) transferable: bool,
}

/// How one try ended.
pub(crate) enum Tried {
    Failed(Error),
    Granted(Guard),
    Held(Option<Holder>),
    Queued(Place),
}

impl Wish {
    /// Tries once. `attempt` is the wish's attempt so far, and stays it while it is not over.
    pub(crate) async fn try_once(
        &self,
        sessions: &Sessions,
        attempt: &mut Option<OpenAttempt>,
        queue: Queue,
    ) -> Tried {
        for _ in 0..NEW_BEGINNINGS {
            let open = match attempt.take() {
                Some(open) => open,
                None => match sessions.begin(self.timing, self.key.clone(), self.transferable) {
                    Ok(open) => open,
                    Err(shut) => return Tried::Failed(shut),
                },
            };
            // In its place while anything is awaited: whoever is dropped there drops it too.
            let open = attempt.insert(open);
            match open.session().opened().await {
                Opened::Yes => {}
                Opened::Failed(error) => {
                    *attempt = None;
                    return Tried::Failed(error);
                }
                Opened::Over => {
                    *attempt = None;
                    continue;
                }
            }
            let sent = open.session().now();
            match open.insert(self.request(open, queue)).await {
                Ok(Ok(InsertOutcome::Granted(grant))) => {
                    let occupied = sessions.lines().occupy(&self.key);
                    let held = attempt.take();
                    let held = held.and_then(|open| open.hold(grant, sent, self.renewal, occupied));
                    return held.map_or_else(too_late, |held| Tried::Granted(Guard::new(held)));
                }
                Ok(Ok(InsertOutcome::Held(holder))) => return Tried::Held(holder),
                Ok(Ok(InsertOutcome::Queued(place))) => return Tried::Queued(place),
                Ok(Ok(InsertOutcome::Ended)) => *attempt = None,
                Ok(Err(error)) if error.kind() == ErrorKind::SessionGone => {
                    open.session().gone();
                    *attempt = None;
                }
                Ok(Err(error)) => return Tried::Failed(error.into()),
                Err(Unanswered(why)) => {
                    *attempt = None;
                    return Tried::Failed(Error::unavailable(Effect::Unknown, why));
                }
            }
        }
        Tried::Failed(Error::unavailable(
            Effect::None,
            "no session lived long enough for a try",
        ))
    }

    fn request(&self, open: &OpenAttempt, queue: Queue) -> InsertRequest {
        InsertRequest {
            key: self.key.clone(),
            session: open.session().id,
            attempt: open.id(),
            payload: self.payload.clone(),
            queue,
        }
    }
}

fn too_late() -> Tried {
    Tried::Failed(Error::unavailable(
        Effect::Unknown,
        "the grant came too late and is given back",
    ))
}
