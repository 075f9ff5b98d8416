//! [`as_stored`]: the store below all caches.

use crate::store::Store;

/// The innermost of the stores that wrap each other. What it reads is what the backend has now, where a cache may respond with
/// what it had a moment ago: a decision to erase follows from it.
pub(super) fn as_stored(mut store: &dyn Store) -> &dyn Store {
    while let Some(inner) = store.inner() {
        store = inner;
    }
    store
}
