//! Between clients and members.

use std::time::Duration;

use sim_runtime::Faults as Steering;

use super::{Dose, Fault, Stage};
use crate::record::What;
use crate::seat::Seat;

/// Longer than most sessions live.
const LONGEST: Duration = Duration::from_secs(9);

fn chosen(stage: &Stage, seat: &Seat) -> Vec<Steering> {
    let links = seat.links();
    // All of them, or only one.
    match stage.below(links.len() + 2).checked_sub(2) {
        None => links.to_vec(),
        Some(one) => links.get(one).cloned().into_iter().collect(),
    }
}

pub(super) async fn partition(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let Some(seat) = stage.seat() else { return };
        let links = chosen(&stage, seat);
        let cut = || links.iter().for_each(Steering::partition);
        let heal = || links.iter().for_each(Steering::heal);
        stage
            .lasts(Fault::Partition, &seat.lane(), LONGEST, cut, heal)
            .await;
    }
}

pub(super) async fn one_way(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let Some(seat) = stage.seat() else { return };
        let links = chosen(&stage, seat);
        let requests = stage.below(2) == 0;
        let cut = || {
            links.iter().for_each(|link| match requests {
                true => link.cut_requests(),
                false => link.cut_replies(),
            });
        };
        let heal = || links.iter().for_each(Steering::heal);
        stage
            .lasts(Fault::OneWayPartition, &seat.lane(), LONGEST, cut, heal)
            .await;
    }
}

pub(super) async fn swizzle(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let Some(seat) = stage.seat() else { return };
        let lane = seat.lane();
        let name = Fault::Swizzle.name();
        stage.chronicle.note(&lane, What::FaultBegan(name));
        let mut cut = Vec::new();
        for link in seat.links() {
            link.partition();
            cut.push(link.clone());
            stage.sleep(stage.up_to(LONGEST / 4)).await;
        }
        while !cut.is_empty() {
            cut.remove(stage.below(cut.len())).heal();
            stage.sleep(stage.up_to(LONGEST / 4)).await;
        }
        stage.chronicle.note(&lane, What::FaultEnded(name));
    }
}

pub(super) async fn streams(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let Some(seat) = stage.seat() else { return };
        stage.happened(Fault::StreamsBroken, &seat.lane());
        seat.links().iter().for_each(Steering::reset_streams);
    }
}
