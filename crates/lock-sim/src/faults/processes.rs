//! The processes of clients.

use std::time::Duration;

use super::{Dose, Fault, Stage};

/// How long a process is gone.
const GONE: Duration = Duration::from_secs(4);

pub(super) async fn paused(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let Some(seat) = stage.seat() else { return };
        let longest = dose.ttl * 2;
        stage
            .lasts(
                Fault::ClientPaused,
                &seat.lane(),
                longest,
                || seat.pause(),
                || seat.resume(),
            )
            .await;
    }
}

pub(super) async fn crashed(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let Some(seat) = stage.seat() else { return };
        if seat.is_down() {
            continue;
        }
        stage.happened(Fault::ClientCrashed, &seat.lane());
        seat.crash();
        stage.sleep(stage.up_to(GONE)).await;
        if seat.is_down() {
            seat.start();
        }
    }
}
