//! What a random run does, and how it looks from outside.

use etcd_kv::{
    Compare, CompareOp, DeleteRequest, DeleteResponse, KeepAliveResponse, KeyRange, KvErrorKind,
    Lease, LeaseGrant, LeaseId, Op, Order, PutRequest, PutResponse, RangeRequest, RangeResponse,
    Target, TimeToLive, Txn, TxnResponse, WatchRequest, WatchResponse,
};
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{collection, option, sample};

/// One step of a run. Streams are named by the order in which they were opened.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Advance { ticks: u64 },
    CloseKeepAlive(usize),
    CloseWatch(usize),
    Compact(i64),
    Delete(DeleteRequest),
    KeepAlive { id: LeaseId, period: u64 },
    LeaseGrant { id: LeaseId, ttl: i64 },
    LeaseKeepAliveOnce(LeaseId),
    LeaseRevoke(LeaseId),
    LeaseTimeToLive(LeaseId),
    Put(PutRequest),
    Range(RangeRequest),
    ReadKeepAlive(usize),
    ReadWatch(usize),
    Txn(Txn),
    Watch(WatchRequest),
}

/// What a step answered.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    Deleted(DeleteResponse),
    Done,
    Events(Vec<Result<WatchResponse, KvErrorKind>>),
    Granted(LeaseGrant),
    KeptAlive(Vec<KeepAliveResponse>),
    Left(TimeToLive),
    Put(PutResponse),
    Ranged(RangeResponse),
    Refused(KvErrorKind),
    Txn(TxnResponse),
}

impl Step {
    /// Puts the present revision in the place of [`PRESENT`], and others in relation to it.
    pub(crate) fn relative_to(mut self, present: i64) -> Self {
        let relative = |revision: &mut i64| *revision += present - PRESENT;
        let range = |request: &mut RangeRequest| request.revision.iter_mut().for_each(relative);
        match &mut self {
            Self::Compact(revision) => relative(revision),
            Self::Range(request) => range(request),
            Self::Txn(txn) => {
                for compare in &mut txn.when {
                    if let Target::CreateRevision(revision) | Target::ModRevision(revision) =
                        &mut compare.target
                    {
                        relative(revision);
                    }
                }
                for op in txn.then.iter_mut().chain(&mut txn.otherwise) {
                    if let Op::Range(request) = op {
                        range(request);
                    }
                }
            }
            Self::Watch(request) => request.start.iter_mut().for_each(relative),
            _ => {}
        }
        self
    }
}

/// What stands for the present revision in a step; steps are drawn before it is known.
const PRESENT: i64 = 20;

/// Steps about few keys, few leases and recent revisions, so that they meet.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => put().prop_map(Step::Put),
        4 => delete().prop_map(Step::Delete),
        6 => range().prop_map(Step::Range),
        8 => txn().prop_map(Step::Txn),
        3 => (lease_id(), -1..4_i64).prop_map(|(id, ttl)| Step::LeaseGrant { id, ttl }),
        1 => lease_id().prop_map(Step::LeaseRevoke),
        1 => lease_id().prop_map(Step::LeaseKeepAliveOnce),
        1 => lease_id().prop_map(Step::LeaseTimeToLive),
        1 => (lease_id(), 1..250_u64).prop_map(|(id, period)| Step::KeepAlive { id, period }),
        2 => (0..3_usize).prop_map(Step::ReadKeepAlive),
        1 => (0..3_usize).prop_map(Step::CloseKeepAlive),
        3 => (0..220_u64).prop_map(|ticks| Step::Advance { ticks }),
        1 => revision().prop_map(Step::Compact),
        4 => watch().prop_map(Step::Watch),
        6 => (0..8_usize).prop_map(Step::ReadWatch),
        1 => (0..16_usize).prop_map(Step::CloseWatch),
    ]
}

fn key() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        60 => sample::select(vec!["a", "aa", "ab", "b", "b\u{7f}", "c"]),
        1 => Just(""),
    ]
}

fn key_range() -> impl Strategy<Value = KeyRange> {
    prop_oneof![
        4 => key().prop_map(KeyRange::key),
        3 => key().prop_map(KeyRange::prefix),
        1 => sample::select(vec![&b""[..], b"\xff"]).prop_map(KeyRange::prefix),
        2 => (key(), key()).prop_map(|(start, end)| KeyRange::Span {
            start: start.into(),
            end: end.into(),
        }),
    ]
}

fn value() -> impl Strategy<Value = &'static str> {
    sample::select(vec!["", "1", "2", "10"])
}

fn lease_id() -> impl Strategy<Value = LeaseId> {
    (1..4_i64).prop_map(LeaseId)
}

fn revision() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => PRESENT - 6..PRESENT + 3,
        1 => 0..PRESENT,
    ]
}

fn put() -> impl Strategy<Value = PutRequest> {
    let lease = prop_oneof![
        6 => Just(Lease::Detached),
        3 => lease_id().prop_map(Lease::Attached),
        1 => Just(Lease::Kept),
    ];
    (key(), value(), lease, any::<bool>()).prop_map(|(key, value, lease, prev_kv)| PutRequest {
        lease,
        prev_kv,
        ..PutRequest::new(key, value)
    })
}

fn delete() -> impl Strategy<Value = DeleteRequest> {
    (key_range(), any::<bool>()).prop_map(|(range, prev_kv)| DeleteRequest { range, prev_kv })
}

fn range() -> impl Strategy<Value = RangeRequest> {
    let order = sample::select(vec![Order::Key, Order::CreateRevision, Order::NewestFirst]);
    let shape = (order, any::<bool>(), any::<bool>());
    let limit = option::of(0..4_u32);
    let revision = option::of(revision());
    (key_range(), limit, revision, shape).prop_map(|(range, limit, revision, shape)| {
        let (order, keys_only, count_only) = shape;
        RangeRequest {
            limit,
            revision,
            order,
            keys_only,
            count_only,
            ..RangeRequest::new(range)
        }
    })
}

fn txn() -> impl Strategy<Value = Txn> {
    let branch = || {
        let op = prop_oneof![
            3 => put().prop_map(Op::from),
            1 => delete().prop_map(Op::from),
            2 => range().prop_map(Op::from),
        ];
        collection::vec(op, 0..4)
    };
    let when = collection::vec(compare(), 0..3);
    (when, branch(), branch())
        .prop_map(|(when, then, otherwise)| Txn::when(when).then(then).otherwise(otherwise))
}

fn compare() -> impl Strategy<Value = Compare> {
    let target = prop_oneof![
        revision().prop_map(Target::CreateRevision),
        option::of(lease_id()).prop_map(Target::Lease),
        revision().prop_map(Target::ModRevision),
        value().prop_map(|value| Target::Value(value.into())),
        (0..4_i64).prop_map(Target::Version),
    ];
    let op = sample::select(vec![
        CompareOp::Equal,
        CompareOp::Greater,
        CompareOp::Less,
        CompareOp::NotEqual,
    ]);
    (key_range(), target, op).prop_map(|(range, target, op)| Compare { range, target, op })
}

fn watch() -> impl Strategy<Value = WatchRequest> {
    let start = option::of(revision());
    (key_range(), start, any::<bool>()).prop_map(|(range, start, prev_kv)| WatchRequest {
        range,
        start,
        prev_kv,
    })
}
