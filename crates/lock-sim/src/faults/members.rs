//! Members of the cluster, and who leads them.

use std::time::Duration;

use super::{Dose, Fault, Stage};
use crate::cluster::MEMBERS;
use crate::record::Lane;

const LONGEST: Duration = Duration::from_secs(9);
/// How long a leader that was deposed answers keepalives: a second or two, or, when its disk hangs,
/// for as long as a lease lives (measured).
const DEPOSED: [Duration; 3] = [
    Duration::from_millis(1300),
    Duration::from_millis(1600),
    Duration::from_millis(7000),
];

fn lane(member: usize) -> Lane {
    Lane::Member(u32::try_from(member).unwrap_or(u32::MAX))
}

pub(super) async fn restart(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let member = stage.below(MEMBERS);
        let stop = || stage.cluster.stop(member);
        let start = || stage.cluster.reconnect(member);
        stage
            .lasts(Fault::MemberRestarts, &lane(member), LONGEST, stop, start)
            .await;
    }
}

pub(super) async fn restart_all(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        stage.happened(Fault::ClusterRestarts, &Lane::Server);
        stage.cluster.restart_all();
    }
}

/// The leader steps aside; whoever follows it is in touch at once.
pub(super) async fn leader_changes(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        if let Some(leader) = stage.cluster.leader() {
            stage.happened(Fault::LeaderChanges, &lane(leader));
            stage.cluster.stop(leader);
            stage.cluster.reconnect(leader);
        }
    }
}

/// A member sees the past, and its clients with it.
pub(super) async fn cut_off(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let member = stage.below(MEMBERS);
        let cut = || stage.cluster.cut_off(member, Duration::ZERO);
        let heal = || stage.cluster.reconnect(member);
        stage
            .lasts(Fault::MemberCutOff, &lane(member), LONGEST, cut, heal)
            .await;
    }
}

pub(super) async fn deposed(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let Some(leader) = stage.cluster.leader() else {
            continue;
        };
        let answers_for = DEPOSED.get(stage.below(3)).copied().unwrap_or_default();
        stage.cluster.cut_off(leader, answers_for);
        stage.sleep(answers_for + stage.up_to(LONGEST)).await;
        stage.cluster.reconnect(leader);
    }
}

/// The leader is lost, and those who pass keepalives on do not notice for a while.
pub(super) async fn misled(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let Some(leader) = stage.cluster.leader() else {
            continue;
        };
        stage.cluster.stop(leader);
        stage.cluster.mislead(dose.ttl + stage.up_to(dose.ttl));
        stage.sleep(stage.up_to(LONGEST)).await;
        stage.cluster.reconnect(leader);
    }
}

pub(super) async fn majority_lost(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let first = stage.below(MEMBERS);
        let lost = [first, (first + 1) % MEMBERS];
        let cut = || {
            for member in lost {
                stage.cluster.cut_off(member, Duration::ZERO);
            }
        };
        let heal = || {
            lost.into_iter()
                .for_each(|member| stage.cluster.reconnect(member))
        };
        stage
            .lasts(Fault::MajorityLost, &Lane::Server, LONGEST, cut, heal)
            .await;
    }
}
