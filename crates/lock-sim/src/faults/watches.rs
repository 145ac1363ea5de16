//! What watches show.

use std::time::Duration;

use super::{Dose, Fault, Stage};
use crate::cluster::MEMBERS;
use crate::record::Lane;

const LONGEST: Duration = Duration::from_secs(12);

pub(super) async fn compaction(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        stage.happened(Fault::Compaction, &Lane::Server);
        stage.cluster.compact().await;
    }
}

/// A follower falls out of touch, whose watchers hear nothing of it.
pub(super) async fn stranded(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let leader = stage.cluster.leader().unwrap_or(0);
        let member = (leader + 1 + stage.below(MEMBERS - 1)) % MEMBERS;
        let lane = Lane::Member(u32::try_from(member).unwrap_or(u32::MAX));
        stage
            .lasts(
                Fault::WatchStranded,
                &lane,
                LONGEST,
                || stage.cluster.cut_off(member, Duration::ZERO),
                || stage.cluster.reconnect(member),
            )
            .await;
    }
}
