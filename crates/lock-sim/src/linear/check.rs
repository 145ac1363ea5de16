//! Wing and Gong's search, with Lowe's memo of what was tried: each call takes effect at one moment
//! between its beginning and its end, so some order of the calls must explain all answers.

use std::collections::BTreeSet;
use std::fmt::Debug;

use super::bits::Bits;
use super::history::Call;

/// What an object does with calls, one at a time.
pub trait Model {
    /// What it is at a moment.
    type State: Clone + Debug + Ord;
    /// What is asked and answered.
    type Call;

    /// As it is before the first call.
    fn start(&self) -> Self::State;

    /// What a call makes of it; `None` when it cannot have been answered so.
    fn step(&self, state: &Self::State, call: &Self::Call) -> Option<Self::State>;
}

/// How long the search may go on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Calls that are tried, again and again included.
    pub steps: u64,
}

/// What the search came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use = "unknown is not the same as fine"]
pub enum Linear {
    /// Some order explains everything.
    Yes,
    /// No order does. The furthest that any came is so many calls.
    No {
        /// Calls that were explained.
        explained: usize,
    },
    /// The search was given up. It counts as a failure: nothing is known.
    Unknown,
}

/// Beginnings and ends of calls, in the order of time, as a list from which calls are lifted out
/// and put back.
struct Events {
    calls: usize,
    next: Vec<usize>,
    previous: Vec<usize>,
}

const NOWHERE: usize = usize::MAX;

impl Events {
    /// A call's beginning has its number; its end that number plus `calls`; then comes the anchor.
    fn new<C>(history: &[Call<C>]) -> Self {
        let calls = history.len();
        let mut order: Vec<_> = (0..calls)
            .flat_map(|call| {
                // At one moment beginnings come first: what touches may overlap.
                let began = Some((history[call].began, 0, call));
                let ended = history[call].ended.map(|ended| (ended, 1, call + calls));
                [began, ended].into_iter().flatten()
            })
            .collect();
        order.sort_unstable();
        let anchor = 2 * calls;
        let mut events = Self {
            calls,
            next: vec![NOWHERE; anchor + 1],
            previous: vec![NOWHERE; anchor + 1],
        };
        let mut last = anchor;
        for (_, _, event) in order {
            events.link(last, event);
            last = event;
        }
        events
    }

    fn first(&self) -> usize {
        self.next[2 * self.calls]
    }

    fn link(&mut self, left: usize, right: usize) {
        if left != NOWHERE {
            self.next[left] = right;
        }
        if right != NOWHERE {
            self.previous[right] = left;
        }
    }

    fn take_out(&mut self, event: usize) {
        self.link(self.previous[event], self.next[event]);
    }

    fn put_back(&mut self, event: usize) {
        let (left, right) = (self.previous[event], self.next[event]);
        self.next[left] = event;
        if right != NOWHERE {
            self.previous[right] = event;
        }
    }

    fn lift(&mut self, call: usize, ends: bool) {
        self.take_out(call);
        if ends {
            self.take_out(call + self.calls);
        }
    }

    fn unlift(&mut self, call: usize, ends: bool) {
        if ends {
            self.put_back(call + self.calls);
        }
        self.put_back(call);
    }
}

/// Looks for an order of the calls that explains all answers.
///
/// Calls without an answer may have taken effect at any time after their beginning, or never.
pub fn check<M: Model>(model: &M, history: &[Call<M::Call>], limits: Limits) -> Linear {
    let mut events = Events::new(history);
    let mut done = Bits::new(history.len());
    let mut answered = history.iter().filter(|call| call.ended.is_some()).count();
    let mut state = model.start();
    let mut path: Vec<(usize, M::State)> = Vec::new();
    let mut tried = BTreeSet::new();
    let mut explained = 0;
    let mut event = events.first();
    for _ in 0..limits.steps {
        if answered == 0 {
            return Linear::Yes;
        }
        if event != NOWHERE && event < events.calls {
            // A beginning: this call may be the next to take effect.
            let call = event;
            if let Some(next) = model.step(&state, &history[call].call) {
                done.set(call);
                if tried.insert((done.clone(), next.clone())) {
                    let ends = history[call].ended.is_some();
                    events.lift(call, ends);
                    answered -= usize::from(ends);
                    path.push((call, std::mem::replace(&mut state, next)));
                    explained = explained.max(path.len());
                    event = events.first();
                    continue;
                }
                done.clear(call);
            }
            event = events.next[event];
            continue;
        }
        // An end, before which its call did not take effect, or nothing more to try.
        let Some((call, before)) = path.pop() else {
            return Linear::No { explained };
        };
        state = before;
        done.clear(call);
        let ends = history[call].ended.is_some();
        answered += usize::from(ends);
        events.unlift(call, ends);
        event = events.next[call];
    }
    Linear::Unknown
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A register: writes, and reads of what is written.
    struct Register;

    #[derive(Clone, Copy, Debug)]
    enum Access {
        Write(u8),
        Read(u8),
    }

    impl Model for Register {
        type State = u8;
        type Call = Access;

        fn start(&self) -> u8 {
            0
        }

        fn step(&self, state: &u8, call: &Access) -> Option<u8> {
            match *call {
                Access::Write(value) => Some(value),
                Access::Read(value) => (*state == value).then_some(value),
            }
        }
    }

    const LIMITS: Limits = Limits { steps: 100_000 };

    fn call(call: Access, began: u64, ended: impl Into<Option<u64>>) -> Call<Access> {
        Call {
            call,
            began: Duration::from_millis(began),
            ended: ended.into().map(Duration::from_millis),
        }
    }

    #[test]
    fn answers_that_some_order_explains_pass() {
        let history = [
            call(Access::Write(1), 0, 10),
            call(Access::Write(2), 5, 15),
            call(Access::Read(1), 6, 16),
            call(Access::Read(2), 17, 18),
        ];
        assert_eq!(check(&Register, &history, LIMITS), Linear::Yes);
        assert_eq!(check(&Register, &[], LIMITS), Linear::Yes);
    }

    #[test]
    fn a_read_of_the_past_does_not_pass() {
        let history = [
            call(Access::Write(1), 0, 1),
            call(Access::Write(2), 2, 3),
            call(Access::Read(1), 4, 5),
        ];
        let verdict = check(&Register, &history, LIMITS);
        assert_eq!(verdict, Linear::No { explained: 2 });
    }

    #[test]
    fn reads_that_contradict_each_other_do_not_pass() {
        let history = [
            call(Access::Write(1), 0, 9),
            call(Access::Read(1), 1, 2),
            call(Access::Read(0), 3, 4),
        ];
        assert!(matches!(
            check(&Register, &history, LIMITS),
            Linear::No { .. }
        ));
    }

    #[test]
    fn a_call_without_an_answer_may_have_happened_late_or_never() {
        let pending = call(Access::Write(1), 0, None);
        for seen in [0, 1] {
            let history = [pending.clone(), call(Access::Read(seen), 50, 51)];
            assert_eq!(check(&Register, &history, LIMITS), Linear::Yes, "{seen}");
        }
        let late = call(Access::Write(1), 60, None);
        let history = [late, call(Access::Read(1), 50, 51)];
        assert!(matches!(
            check(&Register, &history, LIMITS),
            Linear::No { .. }
        ));
    }

    #[test]
    fn a_search_that_is_cut_short_knows_nothing() {
        let history = [call(Access::Write(1), 0, 1), call(Access::Read(0), 2, 3)];
        let limits = Limits { steps: 1 };
        assert_eq!(check(&Register, &history, limits), Linear::Unknown);
    }

    /// Small histories, by brute force over all orders.
    #[test]
    fn the_search_agrees_with_brute_force() {
        let mut chance = 1_u64;
        let mut draw = |limit: u64| {
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (chance >> 33) % limit
        };
        let mut verdicts = [0, 0];
        for _ in 0..2_000 {
            let history: Vec<_> = (0..5)
                .map(|_| {
                    let value = u8::try_from(draw(3)).unwrap();
                    let access = match draw(2) {
                        0 => Access::Write(value),
                        _ => Access::Read(value),
                    };
                    let began = draw(12);
                    let ended = (draw(5) > 0).then(|| began + 1 + draw(8));
                    call(access, began, ended)
                })
                .collect();
            let expected = explained_by_force(&history, &mut Vec::new(), 0);
            let found = check(&Register, &history, LIMITS) == Linear::Yes;
            assert_eq!(found, expected, "{history:?}");
            verdicts[usize::from(found)] += 1;
        }
        assert!(verdicts[0] > 100 && verdicts[1] > 100, "{verdicts:?}");
    }

    fn explained_by_force(history: &[Call<Access>], taken: &mut Vec<usize>, state: u8) -> bool {
        let open = |at: &usize| !taken.contains(at);
        let left: Vec<_> = (0..history.len()).filter(open).collect();
        if left.iter().all(|&at| history[at].ended.is_none()) {
            return true;
        }
        let first_end = left.iter().filter_map(|&at| history[at].ended).min();
        for at in left {
            // Whoever takes effect next began before any other ended.
            if Some(history[at].began) > first_end {
                continue;
            }
            if let Some(next) = Register.step(&state, &history[at].call) {
                taken.push(at);
                if explained_by_force(history, taken, next) {
                    return true;
                }
                taken.pop();
            }
        }
        false
    }
}
