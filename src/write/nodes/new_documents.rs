//! The documents of new nodes: [`NodeWriter`] checks the place of a node, makes the groups above it, and stores its documents.

use std::sync::Arc;

use futures::stream::StreamExt;

use super::changed_node::ChangedNode;
use super::consolidated_copies::CopyChange;
use super::documents::{META, NodeDocuments, ZARR_JSON, ZARRAY, ZGROUP};
use super::error::NodeWriteError;
use super::new_node::LikeArray;
use super::stored_document::{ancestors, document_key};
use super::writer::NodeWriter;
use crate::array::{Array, OpenNode};
use crate::hierarchy::Node;
use crate::key::{NodePath, StoreKey};
use crate::metadata::ZarrFormat;
use crate::store::{StoreError, Version, WriteCondition};
use crate::write::lease::{ArrayLease, LeaseError, LeaseOwner};
use crate::write::uncached::as_stored;

/// The documents of a node that were stored, and their versions if the backend reports them.
pub(super) type StoredDocuments = Vec<(StoreKey, Option<Version>)>;

impl NodeWriter {
    /// Checks that a node can be created at a path, and binds it if it is an array. `may_make` says whether the caller may
    /// make a group.
    ///
    /// # Errors
    /// [`NodeWriteError::Exists`], [`NodeWriteError::BelowArray`], [`NodeWriteError::NoGroupAbove`], [`NodeWriteError::Unreadable`].
    pub async fn check_new(
        &self,
        path: &NodePath,
        documents: &NodeDocuments,
        may_make: impl Fn(&NodePath) -> bool,
    ) -> Result<Option<Array>, NodeWriteError> {
        self.check_place(path, may_make).await?;
        let Some(array) = documents.array() else { return Ok(None) };
        let array = self.opener.bind(path, array).map_err(NodeWriteError::Unreadable)?;
        Ok(Some(array))
    }

    /// The array at a path, for a new one that takes from it what is not said.
    ///
    /// # Errors
    /// [`NodeWriteError::Node`] for a group; a failure of the backend.
    pub async fn like(&self, path: &NodePath, opened: &OpenNode) -> Result<LikeArray, NodeWriteError> {
        let metadata = Arc::clone(opened.array()?.shared_metadata());
        let zarray = if metadata.zarr_format == ZarrFormat::V2 {
            self.read(&document_key(path, ZARRAY)?).await?
        } else {
            None
        };
        Ok(LikeArray { metadata, zarray })
    }

    /// Checks that there is no node at a path, and that the nodes above it are groups, or can be made.
    ///
    /// # Errors
    /// [`NodeWriteError::Invalid`] for a name that no new node may have; [`NodeWriteError::Exists`], [`NodeWriteError::BelowArray`],
    /// [`NodeWriteError::NoGroupAbove`].
    pub(super) async fn check_place(
        &self,
        path: &NodePath,
        may_make: impl Fn(&NodePath) -> bool,
    ) -> Result<(), NodeWriteError> {
        path.check_names().map_err(|error| NodeWriteError::Invalid(error.to_string()))?;
        if self.find(path).await?.is_some() {
            return Err(NodeWriteError::Exists { path: path.clone() });
        }
        for above in ancestors(path) {
            match self.find(&above).await?.as_deref() {
                Some(OpenNode { node: Node::Array(_), .. }) => {
                    return Err(NodeWriteError::BelowArray { array: above });
                }
                None if !may_make(&above) => return Err(NodeWriteError::NoGroupAbove { group: above }),
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    /// Checks that there is no document of a node at a path now.
    ///
    /// # Errors
    /// [`NodeWriteError::Exists`]; a failure of the backend.
    pub(super) async fn check_no_document(&self, path: &NodePath) -> Result<(), NodeWriteError> {
        for name in [ZARR_JSON, ZARRAY, ZGROUP, META] {
            if self.is_stored(&document_key(path, name)?).await? {
                return Err(NodeWriteError::Exists { path: path.clone() });
            }
        }
        Ok(())
    }

    /// Checks that nothing is stored below the path of a new array: what is left of another one would be read as chunks of it.
    ///
    /// # Errors
    /// [`NodeWriteError::Exists`], [`NodeWriteError::NotEmpty`]; a failure of the backend.
    pub(super) async fn check_empty(&self, path: &NodePath) -> Result<(), NodeWriteError> {
        let failed = |source| NodeWriteError::Store { key: path.prefix().as_str().to_owned(), source };
        match as_stored(&**self.store()).list_dir_after(path.prefix(), "").next().await {
            None => Ok(()),
            Some(Ok(_)) => {
                self.check_no_document(path).await?;
                Err(NodeWriteError::NotEmpty { path: path.clone() })
            }
            Some(Err(StoreError::NotListable)) => self.check_no_document(path).await,
            Some(Err(source)) => Err(failed(source)),
        }
    }

    /// The same, where values may be those of an array that is being made.
    ///
    /// # Errors
    /// As [`NodeWriter::check_empty`]; [`LeaseError::Making`].
    async fn check_empty_or_made(&self, path: &NodePath) -> Result<(), NodeWriteError> {
        let outcome = self.check_empty(path).await;
        if matches!(outcome, Err(NodeWriteError::NotEmpty { .. })) {
            self.check_not_made(path, &self.writer.new_owner()).await?;
        }
        outcome
    }

    /// Checks that no node is being made at a path just now.
    ///
    /// # Errors
    /// [`LeaseError::Making`]; a failure of the backend.
    pub(super) async fn check_not_made(
        &self,
        path: &NodePath,
        owner: &LeaseOwner,
    ) -> Result<(), NodeWriteError> {
        match ArrayLease::is_making(&**self.store(), path, owner, self.writer.clock()).await {
            Ok(true) => Err(LeaseError::Making.into()),
            Ok(false) | Err(LeaseError::NoConditions | LeaseError::Record(StoreError::ReadOnly)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether there is a value with this key now.
    ///
    /// # Errors
    /// A failure of the backend.
    pub(super) async fn is_stored(&self, key: &StoreKey) -> Result<bool, NodeWriteError> {
        let found = as_stored(&**self.store()).head(key).await;
        Ok(found.map_err(|source| NodeWriteError::store(key, source))?.is_some())
    }

    /// Stores the documents of a new node, after the groups above it.
    ///
    /// # Errors
    /// [`NodeWriteError::Exists`] if another client has made it meanwhile; [`NodeWriteError::NotEmpty`];
    /// [`LeaseError::Making`](crate::write::LeaseError::Making) if another one is making it; a failure of the backend.
    pub async fn create(&self, path: &NodePath, documents: &NodeDocuments) -> Result<(), NodeWriteError> {
        if documents.array().is_some() {
            self.check_empty_or_made(path).await?;
        }
        self.make_groups_above(path, documents.format, &mut false).await?;
        self.store_new(path, documents).await?;
        self.restore_groups_above(path, documents.format, documents.own_name()).await
    }

    /// Makes the groups above a node that do not exist, and sets `has_made` if there were any.
    ///
    /// # Errors
    /// A failure of the backend; some of the groups may be there then.
    pub(super) async fn make_groups_above(
        &self,
        path: &NodePath,
        format: ZarrFormat,
        has_made: &mut bool,
    ) -> Result<(), NodeWriteError> {
        for above in ancestors(path) {
            if self.find(&above).await?.is_none() {
                *has_made |= self.make_group(&above, format).await?;
            }
        }
        Ok(())
    }

    /// Makes those groups above a node again that were erased while it was made, unless the node with this document was erased as well.
    ///
    /// # Errors
    /// [`NodeWriteError::Incomplete`].
    pub(super) async fn restore_groups_above(
        &self,
        path: &NodePath,
        format: ZarrFormat,
        document: &str,
    ) -> Result<(), NodeWriteError> {
        for above in ancestors(path) {
            let restored = self.restore_group(&above, format, (path, document)).await;
            restored.map_err(|error| error.after_storing("a group above it could not be made again"))?;
        }
        Ok(())
    }

    async fn restore_group(
        &self,
        group: &NodePath,
        format: ZarrFormat,
        (path, document): (&NodePath, &str),
    ) -> Result<(), NodeWriteError> {
        for name in [ZARR_JSON, ZGROUP] {
            if self.is_stored(&document_key(group, name)?).await? {
                return Ok(());
            }
        }
        if self.is_stored(&document_key(path, document)?).await? {
            self.make_group(group, format).await?;
        }
        Ok(())
    }

    /// Makes a group. Returns whether another client has not made it meanwhile.
    async fn make_group(&self, path: &NodePath, format: ZarrFormat) -> Result<bool, NodeWriteError> {
        match self.store_new(path, &NodeDocuments::of_group_above(format)).await {
            Ok(()) => Ok(true),
            Err(NodeWriteError::Exists { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Stores a new node, to which nothing was appended yet: the keys of appends to a node that was there before are free again.
    async fn store_new(&self, path: &NodePath, documents: &NodeDocuments) -> Result<(), NodeWriteError> {
        if let Some(lease) = self.take_lease_if_used(path).await? {
            let outcome = self.store_alone(path, &documents.marked(lease.epoch_if_used())).await;
            match &outcome {
                Ok(()) => lease.end_made().await,
                Err(error) if error.is_settled() => lease.release().await,
                // The lease ends by itself.
                Err(_) => {}
            }
            outcome?;
        } else {
            let stored = self.store_documents(path, documents).await?;
            let outcome = self.check_not_begun(path).await;
            if outcome.is_err() {
                self.revoke(stored).await;
            }
            outcome?;
        }
        self.add_copies(path, documents).await
    }

    /// Stores the documents of a node under the lease of its path.
    async fn store_alone(&self, path: &NodePath, documents: &NodeDocuments) -> Result<(), NodeWriteError> {
        if documents.array().is_some() {
            self.check_empty(path).await?;
        }
        self.store_documents(path, documents).await.map(drop)
    }

    /// Checks that no creation of a node at the path has begun, which may have stored values.
    async fn check_not_begun(&self, path: &NodePath) -> Result<(), NodeWriteError> {
        match ArrayLease::has_mark(&**self.store(), path).await {
            Ok(true) => Err(LeaseError::Making.into()),
            Ok(false) | Err(LeaseError::NoConditions | LeaseError::Record(StoreError::ReadOnly)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds the documents of a new node to consolidated metadata that is stored above it.
    pub(super) async fn add_copies(
        &self,
        path: &NodePath,
        documents: &NodeDocuments,
    ) -> Result<(), NodeWriteError> {
        let change = CopyChange::Stored(documents.texts.clone());
        self.update_copies(&[ChangedNode::new(path, documents.format, change)]).await
    }

    /// Stores the documents of a node, each on the condition that there is none. What was stored is revoked where another
    /// client has created the node in the meantime.
    pub(super) async fn store_documents(
        &self,
        path: &NodePath,
        documents: &NodeDocuments,
    ) -> Result<StoredDocuments, NodeWriteError> {
        let mut stored = Vec::new();
        for (name, text) in &documents.texts {
            let key = document_key(path, name)?;
            match self.set(&key, text, WriteCondition::IfAbsent).await {
                Ok(version) => stored.push((key, version)),
                Err(error) => {
                    self.revoke(stored).await;
                    return Err(match error {
                        NodeWriteError::ConditionFailed => NodeWriteError::Exists { path: path.clone() },
                        error => error,
                    });
                }
            }
        }
        // Two clients that create nodes of both formats store different keys. Each of them sees the other's, or one does.
        let of_other: &[&str] =
            if documents.format == ZarrFormat::V3 { &[ZARRAY, ZGROUP] } else { &[ZARR_JSON] };
        for name in of_other {
            if self.is_stored(&document_key(path, name)?).await? {
                self.revoke(stored).await;
                return Err(NodeWriteError::Exists { path: path.clone() });
            }
        }
        Ok(stored)
    }

    /// Erases documents as far as they are still those that were stored.
    pub(super) async fn revoke(&self, stored: StoredDocuments) {
        for (key, version) in stored.into_iter().rev() {
            let Some(version) = version.as_ref().and_then(Version::pin) else { continue };
            // What cannot be erased is refused by the next creation, which says so.
            let condition = WriteCondition::IfVersion(version.clone());
            drop(self.store().erase(&key, condition).await);
        }
    }
}
