//! [`LineLease`]: the lease of an array as the task at the head of its line has it, from one batch to the next.

use tokio::time::Instant;

use crate::key::NodePath;
use crate::write::lease::{ArrayLease, LeaseOwner};
use crate::write::{ArrayWriter, NodeWriteError, NodeWriter};

/// The lease of an array between batches, if there is one, and who takes it.
pub(super) struct LineLease {
    writer: ArrayWriter,
    owner: LeaseOwner,
    lease: Option<ArrayLease>,
}

impl LineLease {
    /// No lease yet.
    pub(super) fn new(writer: ArrayWriter) -> Self {
        Self { owner: writer.new_owner(), writer, lease: None }
    }

    /// Takes the lease for a batch: the one that is there, or one from the backend.
    ///
    /// # Errors
    /// [`NodeWriteError::Lease`].
    pub(super) async fn take(
        &mut self,
        nodes: &NodeWriter,
        path: &NodePath,
    ) -> Result<ArrayLease, NodeWriteError> {
        match self.lease.take() {
            Some(lease) => Ok(lease),
            None => nodes.take_lease(path, &self.owner).await,
        }
    }

    /// Keeps the lease for the next batch, unless something of this one may still arrive: a change of the document comes to nothing when the
    /// lease is taken again, and elements have arrived when it has ended, which another owner waits for.
    pub(super) fn keep(&mut self, lease: ArrayLease) {
        if lease.has_broken_off {
            self.owner = self.writer.new_owner();
        } else if !lease.is_unsettled {
            self.lease = Some(lease);
        }
    }

    /// Gives the lease back. Returns whether there was one.
    pub(super) async fn release(&mut self) -> bool {
        let Some(lease) = self.lease.take() else { return false };
        lease.release().await;
        true
    }

    /// How many keys were used, if it is there.
    pub(super) fn keys_used(&self) -> Option<u64> {
        self.lease.as_ref().map(ArrayLease::keys_used)
    }

    /// When it was taken, if it is there.
    pub(super) fn taken(&self) -> Option<Instant> {
        self.lease.as_ref().map(ArrayLease::taken)
    }
}
