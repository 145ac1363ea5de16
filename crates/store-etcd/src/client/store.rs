use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_client::{CompactionOptions, LeaseGrantOptions, LeaseTimeToLiveOptions};
use etcd_kv::{
    Consistency, DeleteRequest, DeleteResponse, GetResponse, Header, KeepAliveResponse,
    KeepAliveStream, KvError, LeaseGrant, LeaseId, MetadataStore, PutRequest, PutResponse,
    RangeRequest, RangeResponse, TimeToLive, Txn, TxnResponse, WatchRequest, WatchStream,
};
use futures_util::{StreamExt, stream};
use lock_spi::{Result, Runtime};

use super::config::ClientConfig;
use super::endpoints::{Call, Endpoints};
use super::watch::Watches;
use super::{requests, responses};
use crate::error::from_kv;

/// A real cluster, as a [`MetadataStore`]. Clones share their connections.
///
/// It runs on tokio, and must be used inside the tokio runtime that it was connected in.
///
/// - **Time.** Every call ends within the time limit of its configuration.
/// - **Members.** A member that does not answer is not the caller's problem: reads and renewals are
///   asked elsewhere, and so is everything else that provably was not sent or not applied.
/// - **Leaders.** A member without a leader refuses at once. Serializable reads alone are answered
///   by it.
/// - **Connections** on which nothing is answered any more, though new ones would work, are replaced
///   after one time limit of silence.
/// - **Watches** share one stream, which is opened for the first of them and closed a while after the
///   last. All end with an error when it breaks or gives no sign of life. Whoever needs one makes a
///   new one, and the first to do so opens a new stream, at a member that answers. Who reads a watch
///   slowly holds up nobody: what it has not read is kept.
///
/// # Examples
///
/// ```no_run
/// # async fn open() -> Result<(), lock_spi::Error> {
/// use std::sync::Arc;
/// use lock_spi::{Runtime, TokioRuntime};
/// use store_etcd::{EtcdClient, EtcdConfig, EtcdLockStore};
///
/// let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
/// let config = "etcd://etcd-1,etcd-2,etcd-3".parse()?;
/// let etcd = EtcdClient::connect(config, Arc::clone(&runtime)).await?;
/// let store = EtcdLockStore::open(etcd, runtime, EtcdConfig::default()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct EtcdClient {
    endpoints: Arc<Endpoints>,
    runtime: Arc<dyn Runtime>,
    watches: Arc<Watches>,
}

impl EtcdClient {
    /// Connects to a cluster: to all members that can be reached, and later to the others.
    ///
    /// # Errors
    ///
    /// None of them has an effect.
    ///
    /// - `InvalidRequest` for a certificate that cannot be read, and a user without a password.
    /// - `Incompatible` for the servers 3.5.0 to 3.5.6, unless they are allowed.
    /// - `Denied` when the cluster refuses user and password, and when no member can be reached
    ///   because certificates do not fit: theirs, or this client's.
    /// - `Unavailable` when no member can be reached. So is it told when one side speaks TLS and the
    ///   other does not, which looks as if the server were going down.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is left behind.
    pub async fn connect(config: ClientConfig, runtime: Arc<dyn Runtime>) -> Result<Self> {
        let endpoints = Endpoints::new(&config, Arc::clone(&runtime))?;
        endpoints.connect().await.map_err(from_kv)?;
        let endpoints = Arc::new(endpoints);
        let patience = (config.request_timeout, config.watch_silence);
        let watches = Watches::new(Arc::clone(&endpoints), Arc::clone(&runtime), patience);
        Ok(Self {
            endpoints,
            runtime,
            watches: Arc::new(watches),
        })
    }
}

#[async_trait]
impl MetadataStore for EtcdClient {
    async fn get(&self, key: Bytes, consistency: Consistency) -> Result<GetResponse, KvError> {
        let request = RangeRequest {
            consistency,
            ..RangeRequest::key(key)
        };
        let RangeResponse { header, kvs, .. } = self.range(request).await?;
        Ok(GetResponse {
            header,
            kv: kvs.into_iter().next(),
        })
    }

    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, KvError> {
        let consistency = request.consistency;
        let (key, options) = requests::get(request);
        let answer = self.endpoints.call(Call::Read, |member| {
            let (key, options) = (key.clone(), options.clone());
            let mut client = member.kv(consistency);
            async move { client.get(key, Some(options)).await }
        });
        responses::range(answer.await?.0)
    }

    async fn put(&self, request: PutRequest) -> Result<PutResponse, KvError> {
        let (key, value, options) = requests::put(request);
        let answer = self.endpoints.call(Call::Write, |member| {
            let (key, value, options) = (key.clone(), value.clone(), options.clone());
            let mut client = member.kv(Consistency::Linearizable);
            async move { client.put(key, value, Some(options)).await }
        });
        responses::put(answer.await?.0)
    }

    async fn delete(&self, request: DeleteRequest) -> Result<DeleteResponse, KvError> {
        let (key, options) = requests::delete(request);
        let answer = self.endpoints.call(Call::Write, |member| {
            let (key, options) = (key.clone(), options.clone());
            let mut client = member.kv(Consistency::Linearizable);
            async move { client.delete(key, Some(options)).await }
        });
        responses::delete(answer.await?.0)
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, KvError> {
        let kind = match requests::is_read_only(&txn) {
            true => Call::Read,
            false => Call::Write,
        };
        let consistency = match requests::is_serializable(&txn) {
            true => Consistency::Serializable,
            false => Consistency::Linearizable,
        };
        let txn = requests::txn(txn);
        let answer = self.endpoints.call(kind, |member| {
            let txn = txn.clone();
            let mut client = member.kv(consistency);
            async move { client.txn(txn).await }
        });
        responses::txn(answer.await?.0)
    }

    async fn lease_grant(&self, id: LeaseId, ttl: i64) -> Result<LeaseGrant, KvError> {
        let answer = self.endpoints.call(Call::Write, |member| {
            let mut client = member.lease();
            let options = LeaseGrantOptions::new().with_id(id.0);
            async move { client.grant(ttl, Some(options)).await }
        });
        responses::lease_grant(answer.await?.0)
    }

    async fn lease_keep_alive_once(&self, id: LeaseId) -> Result<KeepAliveResponse, KvError> {
        let answer = self.endpoints.call(Call::Renewal, |member| {
            let (client, streams) = (member.lease(), Arc::clone(&member.keep_alives));
            async move { streams.renew(client, id.0).await }
        });
        match answer.await? {
            Some(answer) => responses::keep_alive(answer),
            None => Ok(KeepAliveResponse {
                header: Header::default(),
                id,
                ttl: 0,
            }),
        }
    }

    async fn lease_keep_alive(
        &self,
        id: LeaseId,
        period: Duration,
    ) -> Result<KeepAliveStream, KvError> {
        let first = self.lease_keep_alive_once(id).await?;
        let later = stream::unfold(Some(self.clone()), move |client| async move {
            let client = client?;
            client.runtime.sleep(period).await;
            let answer = client.lease_keep_alive_once(id).await;
            let goes_on = answer.is_ok().then_some(client);
            Some((answer, goes_on))
        });
        Ok(KeepAliveStream::new(stream::iter([Ok(first)]).chain(later)))
    }

    async fn lease_time_to_live(&self, id: LeaseId) -> Result<TimeToLive, KvError> {
        let answer = self.endpoints.call(Call::Read, |member| {
            let mut client = member.lease();
            let options = LeaseTimeToLiveOptions::new().with_keys();
            async move { client.time_to_live(id.0, Some(options)).await }
        });
        responses::time_to_live(answer.await?.0)
    }

    async fn lease_revoke(&self, id: LeaseId) -> Result<(), KvError> {
        let answer = self.endpoints.call(Call::Write, |member| {
            let mut client = member.lease();
            async move { client.revoke(id.0).await }
        });
        answer.await.map(drop)
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream, KvError> {
        self.watches.watch(request).await
    }

    async fn compact(&self, revision: i64) -> Result<(), KvError> {
        let answer = self.endpoints.call(Call::Write, |member| {
            let mut client = member.kv(Consistency::Linearizable);
            let options = CompactionOptions::new();
            async move { client.compact(revision, Some(options)).await }
        });
        answer.await.map(drop)
    }
}
