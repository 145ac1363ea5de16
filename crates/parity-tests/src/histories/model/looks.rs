//! What readers are promised.

use std::collections::BTreeMap;

use lock_spi::{Expiry, SessionId};

use super::super::answer::Answer;
use super::world::World;
use super::{Judged, Rules};

impl World {
    pub(super) fn read(
        &self,
        key: u8,
        rules: &Rules<'_>,
        session_id: &mut dyn FnMut(u8) -> SessionId,
    ) -> Judged {
        let known = self.keys.get(&key);
        let expected = Answer::Info {
            floor: known.and_then(|known| known.floor),
            waiting: known.and_then(|known| u32::try_from(known.queue.len()).ok()),
            holder: self.held(key, session_id),
        };
        let fits = match (rules.answer, &expected) {
            (
                Answer::Info {
                    floor,
                    waiting,
                    holder,
                },
                Answer::Info {
                    floor: known_floor,
                    waiting: known_waiting,
                    holder: known_holder,
                },
            ) => {
                let count = waiting.unwrap_or(known_waiting.unwrap_or(0));
                floor == known_floor
                    && holder == known_holder
                    && count == known_waiting.unwrap_or(0)
            }
            _ => false,
        };
        rules.expect(fits, || format!("{expected:?}"))
    }

    pub(super) fn list(
        &self,
        rules: &Rules<'_>,
        session_id: &mut dyn FnMut(u8) -> SessionId,
    ) -> Judged {
        let held = self.keys.iter().filter(|(_, known)| known.holder.is_some());
        let expected: BTreeMap<_, _> = held
            .map(|(key, _)| (*key, self.held(*key, session_id)))
            .collect();
        let fits = match rules.answer {
            Answer::Listed(listed) => {
                let once: BTreeMap<_, _> = listed.iter().cloned().collect();
                once.len() == listed.len() && once == expected
            }
            _ => false,
        };
        rules.expect(fits, || format!("listed once each: {expected:?}"))
    }

    pub(super) fn records(&self, key: u8, rules: &Rules<'_>) -> Judged {
        let known = self.keys.get(&key).map(|known| known.records.clone());
        let expected = Answer::Records(known.unwrap_or_default());
        rules.expect(*rules.answer == expected, || format!("{expected:?}"))
    }

    pub(super) fn reap(rules: &Rules<'_>) -> Judged {
        let nothing = rules.capabilities.expiry == Expiry::ByItself;
        let fits = match rules.answer {
            Answer::Reaped(cleared) => !nothing || *cleared == 0,
            _ => false,
        };
        rules.expect(fits, || "what was cleared".to_owned())
    }
}
