//! [`Validations`]: when encoded chunks were last found current.
//!
//! Finding out takes a lookup of each stored chunk that a chunk is made of. Where the freshness of the mount allows older
//! checks ([`Shortcuts::freshness_horizon`](crate::store::Shortcuts::freshness_horizon)), one serves all requests of that time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::cache::EncodedKey;
use crate::hierarchy::Located;
use crate::store::Version;

/// The most chunks of all mounts of which it is known: a few MiB. Above that, all are dropped.
const MAX_CHUNKS: usize = 4096;

/// When chunks were found current. Clones share it.
#[derive(Clone, Debug, Default)]
pub(in crate::views) struct Validations(Arc<Mutex<HashMap<EncodedKey, Validation>>>);

#[derive(Debug)]
struct Validation {
    /// The documents of the array that the chunk was made from.
    documents: Located,
    version: Option<Version>,
    /// When the check began.
    at: Instant,
}

impl Validations {
    /// Whether a check that began at `horizon` or later found this version of a chunk current, with these documents.
    pub(in crate::views) fn is_current(
        &self,
        key: &EncodedKey,
        documents: &Located,
        version: Option<&Version>,
        horizon: Instant,
    ) -> bool {
        self.all().get(key).is_some_and(|known| {
            known.at >= horizon && known.version.as_ref() == version && known.documents == *documents
        })
    }

    /// Records that a check, which began at `at`, found this version of a chunk current.
    pub(in crate::views) fn record(
        &self,
        key: &EncodedKey,
        documents: &Located,
        version: Option<&Version>,
        at: Instant,
    ) {
        let mut all = self.all();
        if all.len() >= MAX_CHUNKS && !all.contains_key(key) {
            all.clear();
        }
        let known = Validation { documents: documents.clone(), version: version.cloned(), at };
        all.insert(key.clone(), known);
    }

    /// No code panics while it holds the lock.
    fn all(&self) -> MutexGuard<'_, HashMap<EncodedKey, Validation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
