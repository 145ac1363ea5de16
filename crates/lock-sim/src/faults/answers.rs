//! What members answer.

use std::time::Duration;

use super::{Dose, Fault, Stage};
use crate::record::Lane;

const LONGEST: Duration = Duration::from_secs(10);
/// Of what a full store refuses, per mille: measured were 6 of 48.
const REFUSED_BUT_DONE: u16 = 125;

pub(super) async fn full(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let fill = |full: bool| {
            stage.cluster.set_conditions(|conditions| {
                conditions.full = full;
                conditions.refused_but_done = REFUSED_BUT_DONE;
            });
        };
        stage
            .lasts(
                Fault::StoreFull,
                &Lane::Server,
                LONGEST,
                || fill(true),
                || fill(false),
            )
            .await;
    }
}

pub(super) async fn slow(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let slowness = stage.up_to(dose.ttl);
        let slow = |slowness| {
            stage
                .cluster
                .set_conditions(|conditions| conditions.slowness = slowness);
        };
        stage
            .lasts(
                Fault::SlowStore,
                &Lane::Server,
                LONGEST,
                || slow(slowness),
                || slow(Duration::ZERO),
            )
            .await;
    }
}
