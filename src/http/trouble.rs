//! What is wrong with a backend, in short words for operators and callers: no hosts, buckets or paths, and no chain of causes.

use std::error::Error;

use crate::store::{StoreError, trouble};

/// What is wrong, by the store's failure that an error comes from; its own text where it comes from none.
pub(crate) fn trouble_of(error: &(dyn Error + 'static)) -> String {
    store_failure(error).map_or_else(|| error.to_string(), trouble)
}

/// The store's failure that an error comes from.
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
