//! People with access to the store.

use std::sync::Arc;
use std::time::Duration;

use etcd_kv::{DeleteRequest, MetadataStore};
use lock_spi::{
    LockKey, LockStore, Namespace, Owner, Reason, RevocationId, RevokeRequest, RevokeTarget,
};
use sim_runtime::{Faulty, Weather};
use store_etcd::{EtcdConfig, EtcdLockStore};

use super::{Dose, Fault, Stage};
use crate::cluster::{Endpoints, MEMBERS, Member, NAMESPACE, lock_name};
use crate::record::{Lane, What};

const AGAIN: Duration = Duration::from_millis(700);

/// A store object close to the cluster, with a good network between.
pub(super) async fn office(stage: &Stage) -> EtcdLockStore<Endpoints> {
    // Invariant: the name of the namespace is valid.
    let config = EtcdConfig::new(Namespace::new(NAMESPACE).expect("a valid namespace"));
    loop {
        let links = (0..MEMBERS).map(|index| {
            let member = Member::new(stage.cluster.clone(), index, Lane::Operator);
            Faulty::new(member, Arc::clone(&stage.runtime), Weather::calm())
        });
        let server = Endpoints::new(links.collect(), 0);
        let open = EtcdLockStore::open(server, Arc::clone(&stage.runtime), config.clone());
        match open.await {
            Ok(store) => return store,
            Err(_) => stage.sleep(AGAIN).await,
        }
    }
}

pub(super) async fn revoke(stage: Stage, dose: Dose) {
    let store = office(&stage).await;
    while stage.another(&dose).await {
        let Some(key) = stage.keys.get(stage.below(stage.keys.len())).cloned() else {
            return;
        };
        // Invariant: the keys, names and reasons of a run are valid.
        let target = match (stage.below(2), stage.cluster.witness().standing(&key)) {
            (1, Some(token)) => RevokeTarget::Grant(token),
            _ => RevokeTarget::Whoever,
        };
        let request = RevokeRequest {
            key: LockKey::new(&*key).expect("a valid key"),
            target,
            id: RevocationId::random(&*stage.runtime),
            by: Owner::new("operator").expect("a valid owner"),
            reason: Reason::new("drawn").expect("a valid reason"),
        };
        stage.happened(Fault::Revoked, &Lane::Operator);
        if let Err(error) = store.revoke(request).await {
            let words = format!("could not revoke {key:?}: {error}");
            stage.chronicle.note(&Lane::Operator, What::Note(words));
        }
    }
}

pub(super) async fn delete(stage: Stage, dose: Dose) {
    while stage.another(&dose).await {
        let Some(key) = stage.keys.get(stage.below(stage.keys.len())) else {
            return;
        };
        if stage.cluster.witness().standing(key).is_none() {
            continue;
        }
        stage.happened(Fault::LockDeleted, &Lane::Operator);
        let request = DeleteRequest::key(lock_name(key));
        let delete = stage.cluster.store().delete(request);
        drop(stage.chronicle.on_behalf(&Lane::Operator, delete).await);
    }
}
