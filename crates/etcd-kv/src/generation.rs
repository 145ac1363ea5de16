use bytes::Bytes;

use crate::error::{Applied, KvError, KvErrorKind};
use crate::key::{Consistency, PutRequest};
use crate::store::MetadataStore;
use crate::txn::{Compare, Txn};

/// A node's fencing generation: how often it was fenced, 0 for a node that never was.
///
/// # Errors
///
/// `Protocol` when what is stored is not a decimal number; otherwise those of
/// [`MetadataStore::get`].
///
/// # Cancel safety
///
/// Cancel safe: it only reads.
pub async fn generation<M: MetadataStore + ?Sized>(store: &M, node: &str) -> Result<u64, KvError> {
    let found = store.get(key(node), Consistency::Linearizable).await?.kv;
    let Some(kv) = found else { return Ok(0) };
    let text = std::str::from_utf8(&kv.value).ok();
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        let message = format!("the generation of {node} is not a number: {:?}", kv.value);
        KvError::new(KvErrorKind::Protocol, Applied::No, message)
    })
}

/// Raises a node's generation by one if it is `expected`; `true` when this call raised it.
///
/// # Errors
///
/// `InvalidArgument` when `expected` is the highest number; otherwise those of
/// [`MetadataStore::txn`].
///
/// # Cancel safety
///
/// The generation may be raised although the future was dropped.
pub async fn bump_generation<M: MetadataStore + ?Sized>(
    store: &M,
    node: &str,
    expected: u64,
) -> Result<bool, KvError> {
    let Some(next) = expected.checked_add(1) else {
        let message = format!("no generation above {expected}");
        return Err(KvError::new(
            KvErrorKind::InvalidArgument,
            Applied::No,
            message,
        ));
    };
    // A comparison of the value never holds for a missing key, so absence is compared instead.
    let unchanged = match expected {
        0 => Compare::create_revision(key(node), 0),
        _ => Compare::value(key(node), expected.to_string()),
    };
    let put = PutRequest::new(key(node), next.to_string());
    Ok(store
        .txn(Txn::when([unchanged]).then([put.into()]))
        .await?
        .succeeded)
}

fn key(node: &str) -> Bytes {
    format!("gen:{node}").into()
}
