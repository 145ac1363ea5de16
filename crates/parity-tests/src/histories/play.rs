//! Plays a history on a store and on the model.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::Instant;

use super::answer::Answer;
use super::call::Call;
use super::model::{Model, Window};
use super::performer::Performer;
use crate::fixture::Deployment;

/// How long a reader that may lag behind is asked again.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A step on which a store and the model do not agree.
#[derive(Debug)]
pub struct Disagreement {
    /// Which call of the history it was.
    pub at: usize,
    /// The call.
    pub call: Call,
    /// What the store answered.
    pub told: String,
    /// What the contract allows there.
    pub allowed: Vec<String>,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            at,
            call,
            told,
            allowed,
        } = self;
        let allowed = allowed.join(", or ");
        write!(f, "call {at}, {call:?}: told {told}, allowed is {allowed}")
    }
}

impl std::error::Error for Disagreement {}

/// Plays a history on a fresh deployment.
///
/// # Errors
///
/// The first step on which the store and the model do not agree.
///
/// # Cancel safety
///
/// What was played stays in the deployment.
pub async fn play(
    deployment: Arc<dyn Deployment>,
    history: &[Call],
) -> Result<(), Box<Disagreement>> {
    let mut performer = Performer::new(deployment).await;
    let capabilities = performer.store(0).descriptor().capabilities;
    let mut model = Model::new(capabilities);
    for (at, &call) in history.iter().enumerate() {
        if !model.means_something(call, performer.runtime.now()) {
            continue;
        }
        step(&mut performer, &mut model, call)
            .await
            .map_err(|(told, allowed)| {
                Box::new(Disagreement {
                    at,
                    call,
                    told: format!("{told:?}"),
                    allowed,
                })
            })?;
    }
    Ok(())
}

async fn step(
    performer: &mut Performer,
    model: &mut Model,
    call: Call,
) -> Result<(), (Answer, Vec<String>)> {
    let until = performer.runtime.now() + PATIENCE;
    loop {
        let (window, answer) = ask(performer, call).await;
        let judged = model.judge(call, &answer, window, |session| performer.session(session));
        match judged {
            Ok(next) => {
                *model = next;
                return Ok(());
            }
            // Readers may be told what was true before.
            Err(_) if is_look(call) && window.end < until => {
                performer.runtime.sleep(LOOK_AGAIN).await;
            }
            Err(allowed) => return Err((answer, allowed)),
        }
    }
}

async fn ask(performer: &mut Performer, call: Call) -> (Window, Answer) {
    let begin: Instant = performer.runtime.now();
    let answer = performer.perform(call).await;
    let end = performer.runtime.now();
    (Window { begin, end }, answer)
}

const fn is_look(call: Call) -> bool {
    matches!(call, Call::Read(..) | Call::List(..) | Call::Records(..))
}
