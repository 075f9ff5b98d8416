//! Short descriptions of backend failures for operators and clients, without hosts, buckets, paths and causes.

use std::error::Error;

use crate::store::{StoreError, trouble};

/// The description of the store error that caused an error; the text of the error itself if no store error did.
pub(crate) fn trouble_of(error: &(dyn Error + 'static)) -> String {
    store_failure(error).map_or_else(|| error.to_string(), trouble)
}

/// The store error that caused an error.
pub(crate) fn store_failure<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a StoreError> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(failure) = cause.downcast_ref::<StoreError>() {
            return Some(failure);
        }
        next = cause.source();
    }
    None
}
