//! Conditional and partial reads of one value, with as few backend requests as possible.
//!
//! Without conditions a read is one `get`. `If-Match` with one tag, which clients send with each further read of a
//! shard, is also one `get`: the store checks the tag, unless it may serve an earlier version under its tag. Any other condition starts with a `head`. It is the cheapest
//! operation of a store, local or remote, and it answers the common revalidation (304) without opening a body only to
//! discard it. A `get` that follows is pinned to the version for which the conditions were evaluated.

use axum::http::HeaderMap;

use crate::http::conditions::{Conditions, Verdict};
use crate::http::range;
use crate::key::StoreKey;
use crate::store::{ByteRange, Store, StoreError, Value, ValueInfo};

/// Maximum number of attempts for a value that changes between `head` and `get`.
const TRIES: usize = 3;

/// The outcome of a conditional GET.
#[derive(Debug)]
pub(crate) enum GetOutcome {
    /// The backend says that the key does not exist.
    Absent,
    /// 304.
    NotModified(ValueInfo),
    /// 412.
    Failed,
    /// 416: the value has this many bytes.
    Unsatisfiable(u64),
    /// 200 with the whole value.
    Whole(Value),
    /// 206 with a part of it.
    Part(Value),
}

/// The outcome of a conditional HEAD.
#[derive(Debug)]
pub(crate) enum HeadOutcome {
    /// The backend says that the key does not exist.
    Absent,
    /// 304.
    NotModified(ValueInfo),
    /// 412.
    Failed,
    /// 200.
    Found(ValueInfo),
}

/// Evaluates the conditions of a HEAD request against the current value.
///
/// # Errors
/// Any failure of the store.
pub(crate) async fn head(
    store: &dyn Store,
    key: &StoreKey,
    conditions: &Conditions,
) -> Result<HeadOutcome, StoreError> {
    // Some stores know the version of a generated value without generating it.
    if !conditions.is_empty()
        && let Some(version) = store.version(key)
        && let Some(info) = version.await?
    {
        match conditions.for_read(&info.version, info.modified) {
            Verdict::Proceed => {}
            Verdict::NotModified => return Ok(HeadOutcome::NotModified(info)),
            Verdict::Failed => return Ok(HeadOutcome::Failed),
        }
    }
    let Some(info) = store.head(key).await? else { return Ok(HeadOutcome::Absent) };
    Ok(match conditions.for_read(&info.version, info.modified) {
        Verdict::Proceed => HeadOutcome::Found(info),
        Verdict::NotModified => HeadOutcome::NotModified(info),
        Verdict::Failed => HeadOutcome::Failed,
    })
}

/// Reads a value or a part of it, as GET does.
///
/// # Errors
/// Any failure of the store.
pub(crate) async fn get(
    store: &dyn Store,
    key: &StoreKey,
    headers: &HeaderMap,
) -> Result<GetOutcome, StoreError> {
    let conditions = Conditions::from_headers(headers);
    let asked = range::requested(headers);
    let if_range = asked != ByteRange::Whole && headers.contains_key(axum::http::header::IF_RANGE);
    if conditions.is_empty() && !if_range {
        return match store.get(key, asked, None).await {
            Err(StoreError::RangeNotSatisfiable { size }) => Ok(GetOutcome::Unsatisfiable(size)),
            got => got?.map_or(Ok(GetOutcome::Absent), |value| checked(value, asked)),
        };
    }
    let checks_tags = !store.capabilities().serves_pinned;
    if let Some(version) = conditions.sole_match().filter(|_| !if_range && checks_tags) {
        match store.get(key, asked, Some(&version)).await {
            Err(StoreError::VersionChanged) => return Ok(GetOutcome::Failed),
            // The condition takes precedence over the range, and the store may have checked the range first.
            Err(StoreError::RangeNotSatisfiable { .. }) => {}
            got => return got?.map_or(Ok(GetOutcome::Absent), |value| checked(value, asked)),
        }
    }
    for _ in 0..TRIES {
        let info = match head(store, key, &conditions).await? {
            HeadOutcome::Absent => return Ok(GetOutcome::Absent),
            HeadOutcome::NotModified(info) => return Ok(GetOutcome::NotModified(info)),
            HeadOutcome::Failed => return Ok(GetOutcome::Failed),
            HeadOutcome::Found(info) => info,
        };
        let range = if range::if_range_holds(headers, &info.version) { asked } else { ByteRange::Whole };
        if range.resolve(info.size).is_none() {
            return Ok(GetOutcome::Unsatisfiable(info.size));
        }
        // A weak version does not identify the bytes, so a read cannot be pinned to it.
        let pinned = Some(&info.version).filter(|version| version.is_strong());
        match store.get(key, range, pinned).await {
            Err(StoreError::VersionChanged | StoreError::RangeNotSatisfiable { .. }) | Ok(None) => {}
            got => return got?.map_or(Ok(GetOutcome::Absent), |value| checked(value, range)),
        }
    }
    Err(StoreError::VersionChanged)
}

/// Rejects a value whose range differs from the requested one.
fn checked(value: Value, asked: ByteRange) -> Result<GetOutcome, StoreError> {
    if asked.resolve(value.info.size).as_ref() != Some(&value.range) {
        return Err(StoreError::WrongLength);
    }
    Ok(if asked == ByteRange::Whole { GetOutcome::Whole(value) } else { GetOutcome::Part(value) })
}
