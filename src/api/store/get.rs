//! Reading one value under conditions and a range, with as few requests to the backend as can be.
//!
//! Without conditions a read is one `get`. `If-Match` with one tag, which clients send with each further read of a
//! shard, is one `get` as well: the store checks it. Any other condition looks first: `head` is the cheapest thing a
//! store can do, local or remote, it answers the common revalidation (304) without opening a body that would have
//! to be thrown away, and the `get` that may follow is pinned to the version the conditions were tried against.

use axum::http::HeaderMap;

use crate::http::conditions::{Conditions, Verdict};
use crate::http::range;
use crate::key::StoreKey;
use crate::store::{ByteRange, Store, StoreError, Value, ValueInfo};

/// How often a value that changes between the look and the read is tried again.
const TRIES: usize = 3;

/// What a read comes to.
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

/// What a look comes to.
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

/// Looks at a value, as HEAD does.
///
/// # Errors
/// Any failure of the store.
pub(crate) async fn head(
    store: &dyn Store,
    key: &StoreKey,
    conditions: &Conditions,
) -> Result<HeadOutcome, StoreError> {
    // What need not be made for its version is not.
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
    if let Some(version) = conditions.sole_match().filter(|_| !if_range) {
        match store.get(key, asked, Some(&version)).await {
            Err(StoreError::VersionChanged) => return Ok(GetOutcome::Failed),
            // The condition comes before the range, and the store may have looked at the range first.
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
        // A weak version names no bytes, so a read cannot be held to it.
        let pinned = Some(&info.version).filter(|version| version.is_strong());
        match store.get(key, range, pinned).await {
            Err(StoreError::VersionChanged | StoreError::RangeNotSatisfiable { .. }) | Ok(None) => {}
            got => return got?.map_or(Ok(GetOutcome::Absent), |value| checked(value, range)),
        }
    }
    Err(StoreError::VersionChanged)
}

/// Refuses a value whose bytes are not the ones that were asked for.
fn checked(value: Value, asked: ByteRange) -> Result<GetOutcome, StoreError> {
    if asked.resolve(value.info.size).as_ref() != Some(&value.range) {
        return Err(StoreError::WrongLength);
    }
    Ok(if asked == ByteRange::Whole { GetOutcome::Whole(value) } else { GetOutcome::Part(value) })
}
