use crate::chronicle::Chronicle;
use crate::record::{Answer, Asks, CallId, Lane, What};

/// A call that has begun. Dropped without an answer, it was called off.
#[derive(Debug)]
pub(crate) struct OpenCall {
    chronicle: Chronicle,
    lane: Lane,
    call: CallId,
    answered: bool,
}

impl OpenCall {
    pub(crate) fn begin(chronicle: &Chronicle, lane: &Lane, asks: Asks) -> Self {
        let call = chronicle.name_call();
        chronicle.note(lane, What::Called { call, asks });
        Self {
            chronicle: chronicle.clone(),
            lane: lane.clone(),
            call,
            answered: false,
        }
    }

    pub(crate) fn answer(mut self, answer: Answer) {
        self.tell(answer);
    }

    fn tell(&mut self, answer: Answer) {
        self.answered = true;
        let call = self.call;
        self.chronicle
            .note(&self.lane, What::Answered { call, answer });
    }

    /// The call goes on, and nobody hears its answer.
    pub(crate) fn leave(mut self) {
        self.answered = true;
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if !self.answered {
            self.tell(Answer::Cancelled);
        }
    }
}
