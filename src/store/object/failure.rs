//! What the backends' errors mean to a store.
//!
//! Their texts name hosts, buckets and paths, so they are only ever sources. Absence is "not found" and nothing
//! else; whether "forbidden" may mean it, too, is for the operator to say.

use std::error::Error as StdError;
use std::sync::Arc;

use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};

use crate::store::StoreError;

/// The status that the backend answered with, if it answered with a failure.
///
/// The crate keeps the type of that error to itself, so this reads its text, from the beginning; a test has a
/// server give every answer.
pub(super) fn status(error: &Error) -> Option<u16> {
    chain(error).find_map(|cause| {
        let text = cause.to_string();
        if text.starts_with("Server returned error response: ") {
            // S3's "200 OK" with an error in its body: it is busy.
            return Some(503);
        }
        text.strip_prefix("Server returned non-2xx status code: ")?.get(..3)?.parse().ok()
    })
}

/// Whether no answer came at all, or only a part of one.
pub(super) fn is_transport(error: &Error) -> bool {
    chain(error).any(<dyn StdError>::is::<HttpError>)
}

/// Whether the request never left, as there was no connection.
pub(super) fn is_not_sent(error: &Error) -> bool {
    chain(error).any(|cause| {
        cause.downcast_ref::<HttpError>().is_some_and(|http| http.kind() == HttpErrorKind::Connect)
    })
}

/// The failure that an error of a backend means, where the caller sees no special meaning in it.
pub(super) fn failure(error: Error) -> StoreError {
    let timed_out = |kind: HttpErrorKind| kind == HttpErrorKind::Timeout;
    let by_status = status(&error);
    let by_clock = chain(&error)
        .any(|cause| cause.downcast_ref::<HttpError>().is_some_and(|http| timed_out(http.kind())));
    let what = match (&error, by_status) {
        (Error::NotSupported { .. } | Error::NotImplemented { .. }, _) => {
            return StoreError::NotSupported("this operation");
        }
        (_, Some(429 | 503)) => StoreError::Busy,
        (_, Some(408 | 504)) => StoreError::TimedOut,
        (_, Some(507)) => StoreError::StorageFull,
        _ if by_clock => StoreError::TimedOut,
        _ => StoreError::Backend,
    };
    what(Arc::new(error))
}

/// The failure of a write without a condition.
pub(super) fn write_failure(error: Error) -> StoreError {
    match status(&error) {
        // S3's word for "others are writing this just now, ask again": nothing was decided.
        Some(409) => StoreError::Busy(Arc::new(error)),
        _ => failure(error),
    }
}

fn chain(error: &Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    std::iter::successors(Some(error as &(dyn StdError + 'static)), |cause| (*cause).source())
}
