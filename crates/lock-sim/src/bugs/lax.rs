//! A cluster as a store sees it whose requests lack what makes them safe.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_kv::{
    Consistency, DeleteRequest, DeleteResponse, GetResponse, Header, KeepAliveResponse,
    KeepAliveStream, KvError, LeaseGrant, LeaseId, MetadataStore, Op, OpResponse, PutRequest,
    PutResponse, RangeRequest, RangeResponse, TimeToLive, Txn, TxnResponse, WatchRequest,
    WatchStream,
};

use super::ServerBug;
use super::edits;

#[derive(Debug)]
pub(super) struct Lax {
    server: Arc<dyn MetadataStore>,
    bug: ServerBug,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// The highest revision in any header.
    revision: i64,
    /// Of the last keepalive that was answered.
    kept: Option<Header>,
    /// What second looks showed when they were first taken.
    looks: Vec<(Txn, TxnResponse)>,
}

impl Lax {
    pub(super) fn new(server: Arc<dyn MetadataStore>, bug: ServerBug) -> Self {
        Self {
            server,
            bug,
            memory: Mutex::default(),
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A header as the store is to see it.
    fn header(&self, header: Header) -> Header {
        if self.bug != ServerBug::IgnoresTheHorizon {
            return header;
        }
        let mut memory = self.memory();
        memory.revision = memory.revision.max(header.revision);
        Header {
            revision: memory.revision,
            ..header
        }
    }

    fn consistency(&self, asked: Consistency) -> Consistency {
        match self.bug {
            ServerBug::ReadsSerializably => Consistency::Serializable,
            _ => asked,
        }
    }

    /// What a second look showed the first time, as if it had been taken after the keepalive.
    fn remembered(&self, txn: &Txn) -> Option<TxnResponse> {
        let memory = self.memory();
        let header = memory.kept?;
        let (_, seen) = memory.looks.iter().find(|(look, _)| look == txn)?;
        Some(TxnResponse {
            header,
            ..seen.clone()
        })
    }

    /// A transaction that only reads, as so many reads at whichever member.
    async fn read_serializably(&self, txn: &Txn) -> Result<TxnResponse, KvError> {
        let mut responses = Vec::new();
        let mut header = Header::default();
        for op in &txn.then {
            if let Op::Range(request) = op {
                let answer = self.range(request.clone()).await?;
                header = answer.header;
                responses.push(OpResponse::Range(answer));
            }
        }
        Ok(TxnResponse {
            header,
            succeeded: true,
            responses,
        })
    }
}

#[async_trait]
impl MetadataStore for Lax {
    async fn get(&self, key: Bytes, consistency: Consistency) -> Result<GetResponse, KvError> {
        let consistency = self.consistency(consistency);
        let answer = self.server.get(key, consistency).await?;
        let header = self.header(answer.header);
        Ok(GetResponse { header, ..answer })
    }

    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, KvError> {
        let consistency = self.consistency(request.consistency);
        let answer = self.server.range(RangeRequest {
            consistency,
            ..request
        });
        let answer = answer.await?;
        let header = self.header(answer.header);
        Ok(RangeResponse { header, ..answer })
    }

    async fn put(&self, request: PutRequest) -> Result<PutResponse, KvError> {
        let answer = self.server.put(request).await?;
        let header = self.header(answer.header);
        Ok(PutResponse { header, ..answer })
    }

    async fn delete(&self, request: DeleteRequest) -> Result<DeleteResponse, KvError> {
        let answer = self.server.delete(request).await?;
        let header = self.header(answer.header);
        Ok(DeleteResponse { header, ..answer })
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, KvError> {
        let reads_only = edits::reads_only(&txn);
        match self.bug {
            ServerBug::ReadsSerializably if reads_only => {
                return self.read_serializably(&txn).await;
            }
            ServerBug::BelievesKeepAlives if edits::is_second_look(&txn) => {
                if let Some(seen) = self.remembered(&txn) {
                    return Ok(seen);
                }
                let answer = self.server.txn(txn.clone()).await?;
                if edits::shows_a_session(&answer) {
                    self.memory().looks.push((txn, answer.clone()));
                }
                return Ok(answer);
            }
            _ => {}
        }
        let answer = self.server.txn(edits::without(self.bug, txn)).await?;
        let header = self.header(answer.header);
        Ok(TxnResponse { header, ..answer })
    }

    async fn lease_grant(&self, id: LeaseId, ttl: i64) -> Result<LeaseGrant, KvError> {
        self.server.lease_grant(id, ttl).await
    }

    async fn lease_keep_alive_once(&self, id: LeaseId) -> Result<KeepAliveResponse, KvError> {
        let answer = self.server.lease_keep_alive_once(id).await?;
        self.memory().kept = Some(answer.header);
        Ok(answer)
    }

    async fn lease_keep_alive(
        &self,
        id: LeaseId,
        period: Duration,
    ) -> Result<KeepAliveStream, KvError> {
        self.server.lease_keep_alive(id, period).await
    }

    async fn lease_time_to_live(&self, id: LeaseId) -> Result<TimeToLive, KvError> {
        self.server.lease_time_to_live(id).await
    }

    async fn lease_revoke(&self, id: LeaseId) -> Result<(), KvError> {
        self.server.lease_revoke(id).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream, KvError> {
        self.server.watch(request).await
    }

    async fn compact(&self, revision: i64) -> Result<(), KvError> {
        self.server.compact(revision).await
    }
}
