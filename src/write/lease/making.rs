//! The lease of a path at which a node is being made, whose record has a mark.
//!
//! Who makes a node takes the lease with the mark before it checks that there is no node, and nothing below the path, and keeps it
//! until the node is there. Who stores a node's documents without the lease, as it found no record, checks for the mark afterwards. So one
//! of two always sees the other. If the node is not made in the end and values of it may be stored, the mark stays.
//!
//! A record that began with a creation is erased at its end, so that there is none before the first append to an array. Its numbers of
//! takeovers begin again then. That is safe, because no task but this one has had the lease: no other one can have a change of a document
//! in flight that a number would have to keep away. A record that was there before is never erased.

use super::array_lease::{ArrayLease, MAX_WAIT, RecordBefore, is_alone};
use super::error::LeaseError;
use super::record::{LEASE, LeaseOwner, LeasePlace, LeaseRecord};
use crate::key::NodePath;
use crate::store::Store;
use crate::units::Clock;

impl ArrayLease {
    /// Takes the lease to make a node at its path.
    ///
    /// # Errors
    /// As [`ArrayLease::take`].
    pub(in crate::write) async fn take_to_make(
        store: &dyn Store,
        path: &NodePath,
        owner: &LeaseOwner,
        clock: Clock,
    ) -> Result<Self, LeaseError> {
        Self::take_as(
            store,
            path,
            owner,
            clock,
            (MAX_WAIT, |record: &mut LeaseRecord| record.is_making = true),
        )
        .await
    }

    /// Whether a node is being made at a path, or was not made in the end and may have left values.
    ///
    /// # Errors
    /// A failure of the backend.
    pub(in crate::write) async fn has_mark(store: &dyn Store, path: &NodePath) -> Result<bool, LeaseError> {
        let found = LeasePlace::of(store, path).await?.read().await?;
        Ok(found.is_some_and(|(record, _version)| record.is_making))
    }

    /// Whether another owner than this one is making a node at a path just now.
    ///
    /// # Errors
    /// A failure of the backend.
    pub(in crate::write) async fn is_making(
        store: &dyn Store,
        path: &NodePath,
        owner: &LeaseOwner,
        clock: Clock,
    ) -> Result<bool, LeaseError> {
        let found = LeasePlace::of(store, path).await?.read().await?;
        let is_alone = is_alone(store);
        Ok(found.is_some_and(|(record, _version)| {
            record.is_making && record.is_held_from(owner, is_alone, clock(), LEASE)
        }))
    }

    /// Ends the lease of a node that is stored now, or of a path where all is erased: nothing was appended to either.
    pub(in crate::write) async fn end_made(mut self) {
        self.record.is_making = false;
        self.record.clear_appends();
        self.is_unsettled = false;
        self.end().await;
    }

    /// Ends the lease of a node that is not made, with the mark if values of it may be stored.
    pub(in crate::write) async fn end_unmade(mut self, has_stored: bool) {
        if has_stored {
            self.release().await;
        } else {
            self.record.is_making = self.before == RecordBefore::Marked;
            self.end().await;
        }
    }

    /// Erases a record that began with this lease, and releases any other.
    async fn end(self) {
        // Shortly before the end of the lease, another task may take it while the erasure is on its way.
        if self.before == RecordBefore::Absent && self.has_time() {
            // What stays is the record of a lease that ends by itself.
            drop(self.place.erase(&self.version).await);
        } else {
            self.release().await;
        }
    }
}
