//! The clocks of clients.

use std::time::Duration;

use super::{Dose, Fault, Stage};

const LONGEST: Duration = Duration::from_secs(20);
/// What clients must bear, in parts per million.
pub(crate) const HONEST_RATE: i64 = 10_000;
/// What they need not bear: only the resource holds then.
const FAR_OFF: [i64; 3] = [100_000, 300_000, 900_000];

async fn go_wrong(stage: &Stage, fault: Fault, rate: i64) {
    let Some(seat) = stage.seat() else { return };
    let (wrong, right) = (|| seat.set_clock_rate(rate), || seat.set_clock_rate(0));
    stage
        .lasts(fault, &seat.lane(), LONGEST, wrong, right)
        .await;
}

pub(super) async fn drift(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let rate = HONEST_RATE / [1, 10, 100][stage.below(3) % 3];
        let sign = if stage.below(2) == 0 { 1 } else { -1 };
        go_wrong(&stage, Fault::ClockDrifts, sign * rate).await;
    }
}

pub(super) async fn fast(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let rate = FAR_OFF[stage.below(3) % 3];
        go_wrong(&stage, Fault::ClockFast, rate).await;
    }
}

pub(super) async fn slow(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let rate = -FAR_OFF[stage.below(3) % 3];
        go_wrong(&stage, Fault::ClockSlow, rate).await;
    }
}

pub(super) async fn stall(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        go_wrong(&stage, Fault::ClockStalls, -1_000_000).await;
    }
}

pub(super) async fn jump(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let Some(seat) = stage.seat() else { return };
        stage.happened(Fault::ClockJumps, &seat.lane());
        seat.jump_clock(stage.up_to(dose.ttl * 2));
    }
}

pub(super) async fn wall(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let Some(seat) = stage.seat() else { return };
        stage.happened(Fault::WallClockStepped, &seat.lane());
        let hours = i64::try_from(stage.below(72)).unwrap_or(0);
        let seconds = (hours - 36) * 3600;
        stage
            .chronicle
            .processes()
            .step_wall_clock(seat.name(), seconds);
    }
}
