//! The documents of arrays whose lease this server has: [`NodeWriter`] reads them, settles what another server left, and replaces
//! them by those of another shape.

use std::sync::Arc;

use super::array_document::{ArrayDocument, check_kind};
use super::changed_node::ChangedNode;
use super::error::NodeWriteError;
use super::mark::marked;
use super::patch::NodePatch;
use super::stored_document::{array_of, condition, document_key, main_document};
use super::writer::NodeWriter;
use crate::array::{Array, OpenNode};
use crate::key::NodePath;
use crate::metadata::{ArrayMetadata, ChunkGridMetadata};
use crate::store::StoreError;
use crate::write::lease::{ArrayLease, LeaseError, LeaseOwner};
use crate::write::pause::{ATTEMPTS, pause};

impl NodeWriter {
    /// Takes the lease of the array at a path.
    ///
    /// # Errors
    /// [`NodeWriteError::Lease`].
    pub(in crate::write) async fn take_lease(
        &self,
        path: &NodePath,
        owner: &LeaseOwner,
    ) -> Result<ArrayLease, NodeWriteError> {
        Ok(ArrayLease::take(&**self.store(), path, owner, self.writer.clock()).await?)
    }

    /// Takes the lease of a path to make a node there.
    ///
    /// # Errors
    /// [`LeaseError`].
    pub(super) async fn take_lease_to_make(&self, path: &NodePath) -> Result<ArrayLease, LeaseError> {
        let owner = self.writer.new_owner();
        ArrayLease::take_to_make(&**self.store(), path, &owner, self.writer.clock()).await
    }

    /// Takes the lease of a path that has a record; `None` if nothing was, or nothing can be.
    ///
    /// # Errors
    /// [`NodeWriteError::Lease`].
    pub(super) async fn take_lease_if_used(
        &self,
        path: &NodePath,
    ) -> Result<Option<ArrayLease>, NodeWriteError> {
        let owner = self.writer.new_owner();
        match ArrayLease::take_if_used(&**self.store(), path, &owner, self.writer.clock()).await {
            Err(LeaseError::NoConditions | LeaseError::Record(StoreError::ReadOnly)) => Ok(None),
            taken => Ok(taken?),
        }
    }

    /// Takes the lease of the array at a path, and settles what another owner has left.
    ///
    /// # Errors
    /// As [`NodeWriter::settled_document`].
    pub(in crate::write) async fn take_settled(
        &self,
        path: &NodePath,
        opened: &OpenNode,
        owner: &LeaseOwner,
    ) -> Result<(ArrayDocument, ArrayLease), NodeWriteError> {
        self.settled(path, opened, self.take_lease(path, owner).await?).await
    }

    /// As [`NodeWriter::take_settled`] if no other owner has the lease; `None` if one has.
    ///
    /// # Errors
    /// As [`NodeWriter::settled_document`].
    pub(in crate::write) async fn take_settled_if_free(
        &self,
        path: &NodePath,
        opened: &OpenNode,
        owner: &LeaseOwner,
    ) -> Result<Option<(ArrayDocument, ArrayLease)>, NodeWriteError> {
        let clock = self.writer.clock();
        match ArrayLease::take_if_free(&**self.store(), path, owner, clock).await? {
            Some(lease) => self.settled(path, opened, lease).await.map(Some),
            None => Ok(None),
        }
    }

    async fn settled(
        &self,
        path: &NodePath,
        opened: &OpenNode,
        mut lease: ArrayLease,
    ) -> Result<(ArrayDocument, ArrayLease), NodeWriteError> {
        match self.settled_document(path, opened, &mut lease).await {
            Ok(document) => Ok((document, lease)),
            Err(error) => {
                // A mark that is in flight changes nothing, and who takes the lease next begins with another one.
                lease.release().await;
                Err(error)
            }
        }
    }

    /// The document of an array whose lease this server has. If another change of it may still arrive, it is marked first, so
    /// that it does not.
    ///
    /// # Errors
    /// As [`NodeWriter::array_document`].
    pub(in crate::write) async fn settled_document(
        &self,
        path: &NodePath,
        opened: &OpenNode,
        lease: &mut ArrayLease,
    ) -> Result<ArrayDocument, NodeWriteError> {
        if !lease.is_unsettled {
            let document = self.array_document(path, opened).await?;
            lease.invalidate_outside(&document.metadata.shape);
            return Ok(document);
        }
        for attempt in 0..ATTEMPTS {
            pause(attempt).await;
            let document = self.array_document(path, opened).await?;
            let text = marked(&document.stored.text, lease.epoch());
            match self.set(&document.key, &text, condition(&document.key, Some(&document.stored))?).await {
                Ok(_version) => {
                    let document = self.array_document(path, opened).await?;
                    let document = self.finish_step(path, opened, document, lease).await?;
                    lease.settle(&document.metadata.shape);
                    return Ok(document);
                }
                Err(NodeWriteError::ConditionFailed) => {}
                Err(error) => return Err(error),
            }
        }
        Err(NodeWriteError::Contended { key: document_key(path, main_document(opened))? })
    }

    /// Gives an array the shape that it has after the step of a group in which its owner broke off, if the step is decided.
    async fn finish_step(
        &self,
        path: &NodePath,
        opened: &OpenNode,
        document: ArrayDocument,
        lease: &ArrayLease,
    ) -> Result<ArrayDocument, NodeWriteError> {
        let Some((step, append)) = lease.part_of_step() else { return Ok(document) };
        let length = document.metadata.shape.get(append.axis).copied();
        let Ok(group) = NodePath::parse(&step.group) else { return Ok(document) };
        if length != Some(append.start) || !ArrayLease::settle_step(&**self.store(), &group, &step.id).await?
        {
            return Ok(document);
        }
        let mut shape = document.metadata.shape.clone();
        if let Some(length) = shape.get_mut(append.axis) {
            *length = append.stop;
        }
        let text = self.store_shape(&document, shape).await?;
        if let Err(error) = self.update_copies(&[ChangedNode::stored(path, &document, text)]).await {
            // It is not a failure of what this server was asked for, which has not begun.
            tracing::warn!(%error, path = path.as_str(), "the step of another server is finished, but for copies of its documents");
        }
        self.array_document(path, opened).await
    }

    /// The document of an array as it is stored now.
    ///
    /// # Errors
    /// [`NodeWriteError::Unsupported`] for an array that keeps its shape; [`NodeWriteError::ConditionFailed`] if it is gone; a
    /// failure of the backend.
    pub(in crate::write) async fn array_document(
        &self,
        path: &NodePath,
        opened: &OpenNode,
    ) -> Result<ArrayDocument, NodeWriteError> {
        check_kind(opened)?;
        let Ok(array) = opened.array() else {
            return Err(NodeWriteError::Invalid("a group has no shape".to_owned()));
        };
        let (name, key) = (main_document(opened), document_key(path, main_document(opened))?);
        let stored = self.read(&key).await?.ok_or(NodeWriteError::ConditionFailed)?;
        let (text, limits) = (stored.text.clone(), self.limits);
        let parse = move || array_of(name, &text, &limits);
        let metadata = self.cpu.run_document(stored.text.len() as u64, parse).await??;
        // The separator that a document of v2 leaves out was found among the stored keys.
        let chunk_key_encoding = array.metadata().chunk_key_encoding.clone();
        let metadata = Arc::new(ArrayMetadata { chunk_key_encoding, ..metadata });
        if !matches!(metadata.chunk_grid, ChunkGridMetadata::Regular { .. }) {
            return Err(NodeWriteError::Unsupported(
                "an array with chunks of different lengths keeps its shape",
            ));
        }
        Ok(ArrayDocument { name, key, stored, metadata })
    }

    /// An array with the metadata of a document, and another shape.
    ///
    /// # Errors
    /// [`NodeWriteError::Invalid`] for a shape with too many elements; [`NodeWriteError::Node`].
    pub(in crate::write) fn array_of_shape(
        &self,
        path: &NodePath,
        document: &ArrayDocument,
        shape: Vec<u64>,
    ) -> Result<Array, NodeWriteError> {
        let patch = NodePatch { shape: Some(shape), ..NodePatch::default() };
        let shape = patch.shape_of(&document.metadata)?;
        let metadata = Arc::new(ArrayMetadata { shape, ..ArrayMetadata::clone(&document.metadata) });
        Ok(self.opener.bind(path, &metadata)?)
    }

    /// Replaces the document by one with another shape. Returns its text.
    ///
    /// # Errors
    /// [`NodeWriteError::ConditionFailed`] if it is another one by now; a failure of the backend.
    pub(in crate::write) async fn store_shape(
        &self,
        document: &ArrayDocument,
        shape: Vec<u64>,
    ) -> Result<String, NodeWriteError> {
        let patch = NodePatch { shape: Some(shape), ..NodePatch::default() };
        let text = self.applied(document.name, Some(&document.stored), &patch).await?;
        let condition = condition(&document.key, Some(&document.stored))?;
        match self.set(&document.key, &text, condition).await {
            Ok(_version) => Ok(text),
            Err(NodeWriteError::ConditionFailed) => Err(NodeWriteError::ConditionFailed),
            // The failure may have come after the document was stored.
            Err(error) => match self.read(&document.key).await {
                Ok(Some(stored)) if stored.text == text.as_bytes() => Ok(text),
                Ok(_) | Err(_) => Err(error),
            },
        }
    }
}
