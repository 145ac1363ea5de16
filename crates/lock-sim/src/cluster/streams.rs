//! Watches at a member, which may fall out of touch, end, and tell too little or too much.

use std::collections::VecDeque;

use etcd_kv::{Applied, EventKind, KvError, KvErrorKind, WatchResponse, WatchStream};
use futures_util::{StreamExt, stream};

use super::member::Member;
use super::members::Touch;
use crate::bugs::ClusterBug;
use crate::faults::Fault;

type Message = Result<WatchResponse, KvError>;

/// A watch that stands at a member.
struct Standing {
    member: Member,
    stream: WatchStream,
    /// Which of the lives of the member's process it belongs to.
    life: u64,
    again: VecDeque<WatchResponse>,
}

/// What a watch at a member shows.
pub(super) fn served(member: Member, stream: WatchStream) -> WatchStream {
    let life = member.cluster.members().lives(member.index);
    let standing = Standing {
        member,
        stream,
        life,
        again: VecDeque::new(),
    };
    let messages = stream::unfold(Some(standing), |standing| async {
        let mut standing = standing?;
        let message = standing.next().await?;
        let ended = message.is_err();
        Some((message, (!ended).then_some(standing)))
    });
    WatchStream::new(messages)
}

impl Standing {
    async fn next(&mut self) -> Option<Message> {
        let cluster = self.member.cluster.clone();
        let mut changes = cluster.0.changes.subscribe();
        loop {
            changes.mark_unchanged();
            let (touch, life) = {
                let members = cluster.members();
                (
                    members.touch(self.member.index),
                    members.lives(self.member.index),
                )
            };
            if life != self.life {
                return Some(Err(ended(KvErrorKind::Unavailable, "the member stopped")));
            }
            let in_touch = matches!(touch, Touch::Full);
            let silent = cluster.conditions().silent_watches;
            let notices_at = match touch {
                Touch::Lost { notices_at } if !silent => notices_at,
                _ => None,
            };
            let now = cluster.now();
            if notices_at.is_some_and(|at| at <= now) {
                return Some(Err(ended(KvErrorKind::NoLeader, "no leader")));
            }
            if in_touch && let Some(message) = self.again.pop_front() {
                return Some(Ok(message));
            }
            let notice = async {
                match notices_at {
                    Some(at) => cluster.0.runtime.sleep(at.saturating_sub(now)).await,
                    None => std::future::pending().await,
                }
            };
            let message = tokio::select! {
                biased;
                changed = changes.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return None,
                },
                () = notice => continue,
                message = self.stream.next(), if in_touch => message?,
            };
            match message {
                Ok(message) => {
                    if let Some(message) = self.pass_on(message) {
                        return Some(message);
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// What a message becomes; `None` if nothing.
    fn pass_on(&mut self, mut message: WatchResponse) -> Option<Message> {
        let (dropped, repeated, compacted) = {
            let conditions = self.member.cluster.conditions();
            (
                conditions.dropped_events,
                conditions.repeated_events,
                conditions.compacted_watches,
            )
        };
        let met = |fault: Fault| {
            let chronicle = &self.member.cluster.0.chronicle;
            chronicle.happened(&self.member.client, fault.name());
        };
        if self.member.cluster.0.bug == Some(ClusterBug::LosesWatchEvents) {
            message
                .events
                .retain(|event| event.kind != EventKind::Delete);
        }
        if self.member.happens(dropped) {
            met(Fault::WatchDropsEvents);
            return None;
        }
        if self.member.happens(compacted) {
            met(Fault::WatchCompacted);
            let compact_revision = message.header.revision;
            let kind = KvErrorKind::Compacted { compact_revision };
            return Some(Err(ended(kind, "required revision has been compacted")));
        }
        if self.member.happens(repeated) {
            met(Fault::WatchRepeatsEvents);
            self.again.push_back(message.clone());
        }
        Some(Ok(message))
    }
}

fn ended(kind: KvErrorKind, words: &'static str) -> KvError {
    KvError::new(kind, Applied::Unknown, words)
}
