//! [`NodeCreation`]: an array that is made with its values: they are stored first, and its document last.
//!
//! The lease of the path is held meanwhile, so that no other node is made there. `erasure` says what happens if something above it is
//! erased.

use futures::stream::TryStreamExt;

use super::documents::NodeDocuments;
use super::error::NodeWriteError;
use super::writer::NodeWriter;
use crate::key::{NodePath, StoreKey};
use crate::store::StoreError;
use crate::write::lease::{ArrayLease, LeaseError};
use crate::write::uncached::as_stored;

/// A node that is being made at a path.
#[derive(Debug)]
pub struct NodeCreation {
    nodes: NodeWriter,
    path: NodePath,
    /// The lease of the path; `None` if the backend has none.
    lease: Option<ArrayLease>,
}

/// The values that were stored for a new node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewValues {
    /// Their number.
    pub count: u64,
    /// One of them; `None` if there is none.
    pub sample: Option<StoreKey>,
}

impl NodeWriter {
    /// Begins to make an array at a path.
    ///
    /// # Errors
    /// [`NodeWriteError::Exists`], [`NodeWriteError::NotEmpty`]; [`LeaseError::Making`] if another one is being made there; a failure
    /// of the backend. Nothing was stored.
    pub async fn begin(self, path: &NodePath) -> Result<NodeCreation, NodeWriteError> {
        let lease = self.take_lease_to_make(path).await;
        let lease = match lease {
            Err(LeaseError::NoConditions | LeaseError::Record(StoreError::ReadOnly)) => None,
            taken => Some(taken?),
        };
        let creation = NodeCreation { nodes: self, path: path.clone(), lease };
        match creation.nodes.check_empty(path).await {
            Ok(()) => Ok(creation),
            Err(error) => {
                creation.abandon(false).await;
                Err(error)
            }
        }
    }

    /// The number of values below a path, or of the first ones if there are more than `limit`; `None` if the backend does not list keys.
    pub(super) async fn count_below(&self, path: &NodePath, limit: u64) -> Result<Option<u64>, StoreError> {
        let mut listing = as_stored(&**self.store()).list_prefix(path.prefix(), None);
        let mut count = 0_u64;
        loop {
            match listing.try_next().await {
                Ok(Some(_entry)) if count <= limit => count = count.saturating_add(1),
                Ok(_) => return Ok(Some(count)),
                Err(StoreError::NotListable) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

impl NodeCreation {
    /// Does a part of the work while no other node is made at the path.
    ///
    /// # Errors
    /// [`NodeWriteError::Lease`]: the work has broken off, and what it has begun may still arrive.
    pub async fn hold<T>(&mut self, work: impl Future<Output = T>) -> Result<T, NodeWriteError> {
        match &mut self.lease {
            Some(lease) => Ok(lease.hold(work).await?),
            None => Ok(work.await),
        }
    }

    /// Ends a creation whose values could not be stored. `has_stored` says whether some of them may be.
    pub async fn abandon(self, has_stored: bool) {
        if let Some(lease) = self.lease {
            lease.end_unmade(has_stored).await;
        }
    }

    /// Stores the documents of the node, after the groups above it, whose values are stored.
    ///
    /// # Errors
    /// [`NodeWriteError::ValuesChanged`] if others have erased or stored values of the node: it is not made;
    /// [`NodeWriteError::Exists`] if another client has made one meanwhile; [`NodeWriteError::Incomplete`]; a failure of the backend.
    pub async fn finish(
        mut self,
        documents: &NodeDocuments,
        values: &NewValues,
    ) -> Result<(), NodeWriteError> {
        let outcome = self.store(documents, values).await;
        if let Some(lease) = self.lease.take() {
            match &outcome {
                Ok(()) => lease.end_made().await,
                Err(error) if error.is_settled() => lease.end_unmade(values.count > 0).await,
                // The lease ends by itself, and its mark stays.
                Err(_) => {}
            }
        }
        outcome?;
        self.nodes.restore_groups_above(&self.path, documents.format, documents.own_name()).await?;
        self.nodes.add_copies(&self.path, documents).await
    }

    async fn store(&mut self, documents: &NodeDocuments, values: &NewValues) -> Result<(), NodeWriteError> {
        let (nodes, path) = (&self.nodes, &self.path);
        let changed = || NodeWriteError::ValuesChanged { path: path.clone() };
        let listed = nodes.count_below(path, values.count).await;
        let listed = listed.map_err(|source| NodeWriteError::Store { key: path.to_string(), source })?;
        if listed.is_some_and(|listed| listed != values.count) {
            return Err(changed());
        }
        nodes.make_groups_above(path, documents.format, &mut false).await?;
        if let Some(lease) = &mut self.lease {
            lease.check().await?;
        }
        let epoch = self.lease.as_ref().and_then(ArrayLease::epoch_if_used);
        let stored = nodes.store_documents(path, &documents.marked(epoch)).await?;
        // Who has taken the path over meanwhile may have erased these values, and stored others of the same keys.
        let held = match &mut self.lease {
            Some(lease) => lease.check().await.map_err(NodeWriteError::from),
            None => Ok(()),
        };
        let outcome = match (held, &values.sample) {
            (Err(lost), _) => Err(lost),
            (Ok(()), Some(sample)) => nodes.is_stored(sample).await,
            (Ok(()), None) => Ok(true),
        };
        if !matches!(outcome, Ok(true)) {
            nodes.revoke(stored).await;
        }
        if outcome? { Ok(()) } else { Err(changed()) }
    }
}
