//! What is stored.

use std::time::Duration;

use lock_spi::{LockStore, RecoverRequest, RecoveryId};

use super::{Dose, Fault, Stage, operators};
use crate::record::{Lane, What};

/// Between making a backup and restoring it.
const LONGEST_AGE: Duration = Duration::from_secs(15);
/// Between restoring it and recovering.
const LONGEST_HESITATION: Duration = Duration::from_secs(5);
/// Between two tries of an operator.
const AGAIN: Duration = Duration::from_millis(700);

/// A backup is made, later restored, and then an operator recovers the namespace: above everything
/// that anybody knows, and held off until every session of before is over.
pub(super) async fn restored(stage: Stage, dose: Dose) {
    if !stage.another(&dose).await {
        return;
    }
    stage.cluster.back_up();
    stage.sleep(stage.up_to(LONGEST_AGE)).await;
    let operator = Lane::Operator;
    let name = Fault::BackupRestored.name();
    stage.chronicle.note(&operator, What::FaultBegan(name));
    stage.cluster.restore();
    stage.sleep(stage.up_to(LONGEST_HESITATION)).await;
    let store = operators::office(&stage).await;
    let request = RecoverRequest {
        id: RecoveryId::random(&*stage.runtime),
        above: stage.cluster.witness().highest(),
        hold_off: dose.ttl * 2,
    };
    let Some(admin) = store.admin() else { return };
    loop {
        match admin.recover(request.clone()).await {
            Ok(recovery) if recovery.closed_for.is_zero() => break,
            Ok(recovery) => stage.sleep(recovery.closed_for).await,
            Err(_) => stage.sleep(AGAIN).await,
        }
    }
    stage.chronicle.note(&operator, What::FaultEnded(name));
}
