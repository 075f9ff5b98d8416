//! [`CopiedVersions`]: which values of the source were copied, and at which versions.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use crate::store::{BudgetExceeded, MemoryBudget, Reservation, Version};

/// The memory of each, in a set that is half full.
const BYTES_EACH: u64 = 32;

/// The values that were copied: a hash of the key and the version of each, which takes little memory.
#[derive(Debug)]
pub(super) struct CopiedVersions {
    hasher: RandomState,
    known: HashSet<u64>,
    memory: Reservation,
}

impl CopiedVersions {
    /// Nothing yet.
    pub(super) fn new(budget: &Arc<dyn MemoryBudget>) -> Self {
        let memory = Reservation::new(Some(budget));
        Self { hasher: RandomState::new(), known: HashSet::new(), memory }
    }

    /// Adds a value.
    ///
    /// # Errors
    /// [`BudgetExceeded`].
    pub(super) fn insert(&mut self, relative: &str, version: &Version) -> Result<(), BudgetExceeded> {
        self.memory.grow(BYTES_EACH)?;
        self.known.insert(self.hash(relative, version));
        Ok(())
    }

    /// Whether a value was copied at this version, as far as the backend's metadata shows.
    pub(super) fn has(&self, relative: &str, version: &Version) -> bool {
        self.known.contains(&self.hash(relative, version))
    }

    fn hash(&self, relative: &str, version: &Version) -> u64 {
        self.hasher.hash_one((relative, version.backend_tag()))
    }
}
