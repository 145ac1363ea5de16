use std::fmt::Debug;

use async_trait::async_trait;

use crate::admin::StoreAdmin;
use crate::descriptor::Descriptor;
use crate::error::Result;
use crate::id::{AttemptId, SessionId};
use crate::outcome::{
    Grant, InsertOutcome, KeptAlive, LockInfo, LockOutcome, Page, Revocation, SessionLease,
};
use crate::request::{
    InsertRequest, KeepAliveRequest, OpenSessionRequest, PageRequest, RevokeRequest, WaitRequest,
};
use crate::text::{KeyPrefix, LockKey};
use crate::token::FencingToken;

/// A place where locks are kept.
///
/// Implement it to bring a further store; `parity-tests` proves the implementation. Applications
/// use a client instead: sessions kept alive, guards, waiting.
///
/// # Contract
///
/// Each clause below bears an id, under the method that it binds, and `parity-tests` has scenarios
/// by these ids. For all methods:
///
/// - **ALL-1** Every operation that was begun runs to its end, whether or not its future is
///   dropped, and ends within a time limit of the store's own.
/// - **ALL-2** A failure to reach the store, a missing leader, or a missing answer is an error and
///   never an outcome: not `None`, not `Held`, not `false` (INV-05).
/// - **ALL-3** An error's effect is `None` only where the store can prove it.
/// - **ALL-4** A destructive operation compares and destroys in one atomic step, and touches nothing
///   but what it names (INV-06).
/// - **ALL-5** What has ended stays ended, whatever arrives late, twice or out of order (INV-07).
///
/// # Errors
///
/// Any method may answer `Unavailable`, `NotLeader`, `Denied`, `Incompatible` and `Protocol`; the
/// tables name what is particular to one. Kinds and effects are those of
/// [`ErrorKind`](crate::ErrorKind) and [`Effect`](crate::Effect).
#[async_trait]
pub trait LockStore: Debug + Send + Sync + 'static {
    /// What this store is and what it can do.
    fn descriptor(&self) -> Descriptor;

    /// Opens a session: `async fn open_session(&self, request: OpenSessionRequest) -> Result<SessionLease>`.
    ///
    /// # Contract
    ///
    /// - **OPEN-1** Repeated with the same id, it answers with the same session, and `remaining`
    ///   counts from a renewal that is confirmed.
    /// - **OPEN-2** The ttl may be lengthened, never shortened; the answer has the real one.
    /// - **OPEN-3** An id is never used again: after its close it is `SessionGone`.
    /// - **OPEN-4** A session belongs to the store object that opened it, until another
    ///   [adopts](Self::adopt_session) it; another's id is `InvalidRequest`.
    ///
    /// # Errors
    ///
    /// | kind | effect | when |
    /// |---|---|---|
    /// | `SessionGone` | `None` | the id was closed before |
    /// | `InvalidRequest` | `None` | another store object opened it |
    /// | `Exhausted` | `Unknown` | the store is full |
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: left to expire after its ttl, unless
    /// closed. Queue place: none.
    async fn open_session(&self, request: OpenSessionRequest) -> Result<SessionLease>;

    /// Takes over a session that another store object has opened: `async fn adopt_session(&self, session: SessionId) -> Result<Option<SessionLease>>`.
    ///
    /// How a lock is handed from one process to another. Whoever had the session stops using it
    /// before: it neither renews nor closes it any more, and asks for nothing under it.
    ///
    /// `None` is definite: the session is gone, and everything under it.
    ///
    /// # Contract
    ///
    /// - **ADOPT-1** The session is renewed, and belongs to this store object from now on; its grants
    ///   and places stand, with the same tokens. `remaining` counts from that renewal.
    /// - **ADOPT-2** A session that is gone is never revived.
    /// - **ADOPT-3** Repeated, or for a session of this store object's own, it is fine.
    ///
    /// # Errors
    ///
    /// | kind | effect | when |
    /// |---|---|---|
    /// | `Unavailable`, `NotLeader` | either | with `Unknown`: repeat it |
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: left to expire after its ttl, unless
    /// closed. Queue place: kept.
    async fn adopt_session(&self, session: SessionId) -> Result<Option<SessionLease>>;

    /// Renews a session and its grants in one call: `async fn keep_alive(&self, request: KeepAliveRequest) -> Result<Option<KeptAlive>>`.
    ///
    /// `None` is definite: the session is gone, and everything under it.
    ///
    /// # Contract
    ///
    /// - **KEEP-1** The deadline behind `remaining` counts from before the confirmed renewal was
    ///   sent (INV-10).
    /// - **KEEP-2** `gone` names exactly those of the request's grants that no longer stand, each on a
    ///   definite answer of the store.
    /// - **KEEP-3** A grant or place of the session that neither the request nor a call in flight
    ///   accounts for is ended (INV-09). In flight is what was at work at any time since the renewal
    ///   was first polled; so a caller who asks for locks on other threads lets none begin between
    ///   making the request and that.
    /// - **KEEP-4** A session that is gone is never revived.
    ///
    /// # Errors
    ///
    /// | kind | effect | when |
    /// |---|---|---|
    /// | `Unavailable`, `NotLeader` | `Unknown` | nothing was confirmed; the old deadline stands |
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: nothing to compensate. Queue place: kept.
    async fn keep_alive(&self, request: KeepAliveRequest) -> Result<Option<KeptAlive>>;

    /// Closes a session: `async fn close_session(&self, session: SessionId) -> Result<()>`.
    ///
    /// # Contract
    ///
    /// - **CLOSE-1** Every grant and place under it ends with it (INV-02).
    /// - **CLOSE-2** Repeated, or for a session long gone, it is fine.
    ///
    /// # Errors
    ///
    /// | kind | effect | when |
    /// |---|---|---|
    /// | `Unavailable`, `NotLeader` | `Unknown` | repeat it, or let the ttl do it |
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: it runs to its end, at the latest the ttl
    /// ends the session. Queue place: lost with the session.
    async fn close_session(&self, session: SessionId) -> Result<()>;

    /// Tries to take a lock, at once: `async fn try_insert(&self, request: InsertRequest) -> Result<InsertOutcome>`.
    ///
    /// # Contract
    ///
    /// - **INSERT-1** At most one grant of a key stands at any moment (INV-01).
    /// - **INSERT-2** Tokens of a key rise in grant order, and none is at or below the key's floor
    ///   (INV-03, INV-04).
    /// - **INSERT-3** Repeated with the same attempt it finds what the first call did: the same
    ///   grant with the same token, or the same place.
    /// - **INSERT-4** It never barges past a queue.
    /// - **INSERT-5** An attempt that was abandoned, or whose grant has ended after the caller was
    ///   told of it, is `Ended` and is never granted again. One whose answer was lost and whose grant
    ///   somebody ended unseen may be granted anew, with a higher token.
    /// - **INSERT-6** The attempt decides, not session or owner: another attempt of the same session
    ///   is told `Held`.
    /// - **INSERT-7** With [`Queue::Join`](crate::Queue::Join) a refused attempt has a place; places
    ///   are granted in the order in which they were taken (INV-08).
    /// - **INSERT-8** Under a session that is gone nothing is granted.
    ///
    /// # Errors
    ///
    /// | kind | effect | when |
    /// |---|---|---|
    /// | `SessionGone` | `None` | the session does not exist |
    /// | `FloorViolated` | `None` | the store's counter is behind the floor; nothing is held |
    /// | `Exhausted` | `Unknown` | the store is full |
    /// | `Unavailable`, `NotLeader` | either | with `Unknown`: repeat with the same attempt, or abandon it |
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: compensated by `abandon`, or by the next
    /// `keep_alive` that does not list the attempt. Queue place: kept until then.
    async fn try_insert(&self, request: InsertRequest) -> Result<InsertOutcome>;

    /// Waits for a reason to try again: `async fn await_release(&self, request: WaitRequest) -> Result<()>`.
    ///
    /// It returns when the grant it saw has ended, when the attempt is next, or when its own session
    /// is gone. A hint: correctness never depends on it, and callers look again on a timer.
    ///
    /// # Contract
    ///
    /// - **WAIT-1** What ended between the refusal and this call wakes it as well.
    /// - **WAIT-2** It writes nothing.
    ///
    /// # Errors
    ///
    /// | kind | effect | when |
    /// |---|---|---|
    /// | any | `None` | it cannot watch now; look again on the timer |
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: the watch ends. Queue place: kept.
    async fn await_release(&self, request: WaitRequest) -> Result<()>;

    /// Renews one grant: `async fn extend(&self, key: &LockKey, token: FencingToken) -> Result<Option<Grant>>`.
    ///
    /// `None` is definite: this grant has ended.
    ///
    /// # Contract
    ///
    /// - **EXTEND-1** The same token, and an expiry no earlier than before.
    /// - **EXTEND-2** It never revives and never creates: once the grant has ended it is `None` for
    ///   good, also when the key is free.
    /// - **EXTEND-3** Calls side by side on one grant all succeed.
    ///
    /// # Errors
    ///
    /// | kind | effect | when |
    /// |---|---|---|
    /// | `Unavailable`, `NotLeader` | `Unknown` | nothing was confirmed; the old deadline stands |
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: nothing to compensate. Queue place: none.
    async fn extend(&self, key: &LockKey, token: FencingToken) -> Result<Option<Grant>>;

    /// Ends exactly the grant that the token names: `async fn delete_if_owner(&self, key: &LockKey, token: FencingToken) -> Result<bool>`.
    ///
    /// # Contract
    ///
    /// - **DELETE-1** `true` when this call ended that grant; a repeat is `false`, and so is a call
    ///   for a grant that no longer stands.
    /// - **DELETE-2** No other grant, of whatever session, is touched.
    ///
    /// # Errors
    ///
    /// | kind | effect | when |
    /// |---|---|---|
    /// | `Unavailable`, `NotLeader` | either | with `Unknown`: repeat; `false` then means that it is gone |
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: it runs to its end. Queue place: none.
    async fn delete_if_owner(&self, key: &LockKey, token: FencingToken) -> Result<bool>;

    /// Gives an attempt up: `async fn abandon(&self, key: &LockKey, session: SessionId, attempt: AttemptId) -> Result<()>`.
    ///
    /// # Contract
    ///
    /// - **ABANDON-1** When it returns, the attempt holds nothing and queues nothing, and never will,
    ///   late arrivals included.
    /// - **ABANDON-2** Repeated, or for an attempt never seen, it is fine.
    ///
    /// # Errors
    ///
    /// | kind | effect | when |
    /// |---|---|---|
    /// | `Unavailable`, `NotLeader` | `Unknown` | repeat it; the store object sends nothing more for the attempt |
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: it runs to its end. Queue place: lost.
    async fn abandon(&self, key: &LockKey, session: SessionId, attempt: AttemptId) -> Result<()>;

    /// Tells what is known of a key: `async fn read(&self, key: &LockKey) -> Result<LockInfo>`.
    ///
    /// Not authoritative: it may come from a follower or standby and be out of date when it
    /// arrives. Decide nothing by it.
    ///
    /// # Contract
    ///
    /// - **READ-1** It changes nothing, tokens included.
    ///
    /// # Errors
    ///
    /// | kind | effect | when |
    /// |---|---|---|
    /// | any | `None` | it only reads |
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    async fn read(&self, key: &LockKey) -> Result<LockInfo>;

    /// Lists the locks that are held: `async fn list(&self, prefix: &KeyPrefix, page: PageRequest) -> Result<Page<LockInfo>>`.
    ///
    /// In the store's own stable order. `floor` and `waiter_count` may be left out.
    ///
    /// # Contract
    ///
    /// - **LIST-1** Exactly the user's keys that start with the prefix, byte for byte.
    /// - **LIST-2** What stands throughout all pages is listed exactly once.
    ///
    /// # Errors
    ///
    /// | kind | effect | when |
    /// |---|---|---|
    /// | `InvalidRequest` | `None` | a page token that this store did not make, or a limit of 0 |
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    async fn list(&self, prefix: &KeyPrefix, page: PageRequest) -> Result<Page<LockInfo>>;

    /// Ends a grant from outside: `async fn revoke(&self, request: RevokeRequest) -> Result<LockOutcome>`.
    ///
    /// # Contract
    ///
    /// - **REVOKE-1** The grant ends, the key's floor rises above its token, and the record is
    ///   written, all in one atomic step.
    /// - **REVOKE-2** Repeated with the same id it answers the first outcome.
    /// - **REVOKE-3** A target that no longer stands: nothing changes.
    /// - **REVOKE-4** `Whoever` on a free key raises the floor.
    /// - **REVOKE-5** Every later grant of the key is above the new floor.
    ///
    /// # Errors
    ///
    /// | kind | effect | when |
    /// |---|---|---|
    /// | `Exhausted` | `Unknown` | the store is full |
    /// | `Unavailable`, `NotLeader` | either | with `Unknown`: repeat with the same id |
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: it runs to its end; repeat with the same
    /// id to learn the outcome. Queue place: none.
    async fn revoke(&self, request: RevokeRequest) -> Result<LockOutcome>;

    /// Lists the revocations of a key, newest first: `async fn revocations(&self, key: &LockKey, page: PageRequest) -> Result<Page<Revocation>>`.
    ///
    /// # Contract
    ///
    /// - **RECORDS-1** Every revoke that changed something has exactly one record.
    ///
    /// # Errors
    ///
    /// | kind | effect | when |
    /// |---|---|---|
    /// | `InvalidRequest` | `None` | a page token that this store did not make, or a limit of 0 |
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    async fn revocations(&self, key: &LockKey, page: PageRequest) -> Result<Page<Revocation>>;

    /// Clears what is dead, at most `limit` entries: `async fn reap_expired(&self, limit: u32) -> Result<u32>`.
    ///
    /// Fewer than `limit` says that nothing is left for now. Stores that expire by themselves
    /// ([`Expiry::ByItself`](crate::Expiry::ByItself)) answer 0 and do nothing.
    ///
    /// # Contract
    ///
    /// - **REAP-1** Nothing that lives is touched, and no token order is disturbed.
    ///
    /// # Errors
    ///
    /// | kind | effect | when |
    /// |---|---|---|
    /// | `Unavailable`, `NotLeader` | `Unknown` | some of it may be done |
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: nothing to compensate. Queue place: none.
    async fn reap_expired(&self, limit: u32) -> Result<u32>;

    /// What operators need, where the store has it.
    fn admin(&self) -> Option<&dyn StoreAdmin>;
}
