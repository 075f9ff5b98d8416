//! [`VectorContext`]: what one request needs to read nodes, documents and elements of a vector store.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;

use super::VectorError;
use super::json::JsonObject;
use crate::array::{Array, ArrayError, NodeOpener, OpenNode, Plan, ReadContext, ReadLimits, Reader};
use crate::chunk::{AxisRange, Elements, Subset};
use crate::codec::CodecLimits;
use crate::cpu::ComputePool;
use crate::hierarchy::{HierarchyError, Node};
use crate::key::NodePath;
use crate::metadata::{Attributes, GroupMetadata, MetadataLimits, ZarrFormat, parse_attributes};
use crate::store::{ByteRange, DirListing, SharedStore, StoreError};

/// How many times a read is attempted when the stored values change during it.
const MAX_ATTEMPTS: usize = 3;

/// The services and limits with which one request reads.
#[derive(Clone, Debug)]
pub struct VectorContext {
    /// The mount's name, which is part of cache keys.
    pub mount: Arc<str>,
    /// Opens nodes.
    pub opener: NodeOpener,
    /// Reads elements.
    pub reader: Reader,
    /// The pool on which payloads are decoded.
    pub cpu: ComputePool,
    /// The largest cost of one read.
    pub read_limits: ReadLimits,
    /// The limits on metadata documents.
    pub metadata_limits: MetadataLimits,
    /// The limits on the output of codecs.
    pub codec_limits: CodecLimits,
    /// Collects the timings and counts of the request's reads.
    pub read_context: Arc<ReadContext>,
}

/// Elements in the parts in which they were read, and whether any of their chunks is stored.
pub(super) struct CellData {
    pub(super) parts: Vec<Elements>,
    pub(super) is_stored: bool,
}

impl CellData {
    /// Fixed-size elements, concatenated.
    pub(super) fn into_bytes(self) -> Bytes {
        let mut parts = self.parts.into_iter();
        let (Some(first), second) = (parts.next(), parts.next()) else { return Bytes::new() };
        let Some(second) = second else { return first.into_items() };
        let mut items = BytesMut::from(first.items().as_ref());
        items.extend_from_slice(second.items());
        parts.for_each(|part| items.extend_from_slice(part.items()));
        items.freeze()
    }

    /// Variable-length elements, each a slice of the buffer into which it was read.
    pub(super) fn into_elements(self) -> Vec<Bytes> {
        let own = |part: &Elements| -> Vec<Bytes> {
            part.variable_elements()
                .map(|text| if text.is_empty() { Bytes::new() } else { part.heap().slice_ref(text) })
                .collect()
        };
        self.parts.iter().flat_map(own).collect()
    }
}

impl VectorContext {
    /// The store of the mount.
    pub(super) fn store(&self) -> &SharedStore {
        self.opener.hierarchy().store()
    }

    /// The node at a path, if there is one.
    pub(super) async fn node(&self, path: &NodePath) -> Result<Option<Arc<OpenNode>>, VectorError> {
        match self.opener.find(path).await {
            Err(ArrayError::Hierarchy(HierarchyError::NoSuchNode { .. })) => Ok(None),
            found => Ok(found?),
        }
    }

    /// The array at a path; `None` if there is no node, or a group.
    pub(super) async fn array(&self, path: &NodePath) -> Result<Option<Arc<Array>>, VectorError> {
        match self.node(path).await? {
            Some(opened) if matches!(opened.node, Node::Array(_)) => Ok(Some(Arc::clone(opened.array()?))),
            _ => Ok(None),
        }
    }

    /// The metadata of the group at a path; `None` if there is no node, or an array.
    pub(super) async fn group(&self, path: &NodePath) -> Result<Option<Arc<GroupMetadata>>, VectorError> {
        Ok(match self.node(path).await?.map(|opened| opened.node.clone()) {
            Some(Node::Group(group)) => Some(group),
            Some(Node::Array(_)) | None => None,
        })
    }

    /// Attributes as a JSON object. Shared with other readers of the same document.
    pub(super) async fn parse_attributes(
        &self,
        attributes: &Attributes,
    ) -> Result<Arc<JsonObject>, VectorError> {
        let (bytes, attributes) = (attributes.text().len() as u64, attributes.clone());
        Ok(self.cpu.run_document(bytes, move || attributes.object()).await?)
    }

    /// The attributes of a group merged with those of the `.zattrs` beside it, which take precedence; and the names of
    /// the members that differ.
    pub(super) async fn merged_attributes(
        &self,
        path: &NodePath,
        group: &GroupMetadata,
    ) -> Result<(Arc<JsonObject>, Vec<String>), VectorError> {
        let attributes = self.parse_attributes(&group.attributes).await?;
        if group.zarr_format != ZarrFormat::V3 {
            return Ok((attributes, Vec::new()));
        }
        let Some(beside) = self.read_zattrs(path).await? else { return Ok((attributes, Vec::new())) };
        let (mut attributes, mut conflicting_members) = (Arc::unwrap_or_clone(attributes), Vec::new());
        for (name, value) in beside {
            if let Some(other) = attributes.insert(name.clone(), value)
                && attributes.get(&name) != Some(&other)
            {
                conflicting_members.push(name);
            }
        }
        Ok((Arc::new(attributes), conflicting_members))
    }

    /// The members of `.zattrs`, if there is one.
    async fn read_zattrs(&self, path: &NodePath) -> Result<Option<JsonObject>, VectorError> {
        let key = path.prefix().key(".zattrs")?;
        let failed = |source| VectorError::Store { key: key.to_string(), source };
        let Some(value) = self.store().get(&key, ByteRange::Whole, None).await.map_err(failed)? else {
            return Ok(None);
        };
        let text = value.bytes(self.metadata_limits.document_bytes as u64).await.map_err(failed)?;
        let limits = self.metadata_limits;
        let parsed =
            self.cpu.run_document(text.len() as u64, move || parse_attributes(&text, &limits)).await?;
        parsed.map(Some).map_err(|source| HierarchyError::Metadata { key, source }.into())
    }

    /// The keys and prefixes directly below a path; `None` if the store cannot list.
    pub(super) async fn list_dir(&self, path: &NodePath) -> Result<Option<DirListing>, VectorError> {
        match self.store().list_dir(path.prefix()).await {
            Ok(listing) => Ok(Some(listing)),
            Err(StoreError::NotListable) => Ok(None),
            Err(source) => Err(VectorError::Store { key: path.prefix().to_string(), source }),
        }
    }

    /// The sorted names below a path that may be nodes; `None` if the store cannot list.
    pub(super) async fn child_names(&self, path: &NodePath) -> Result<Option<Vec<String>>, VectorError> {
        let listing = self.list_dir(path).await?;
        Ok(listing.map(|listing| {
            let names = listing.prefixes.iter().filter_map(|prefix| NodePath::parse(prefix.as_str()).ok());
            names.map(|below| below.name().to_owned()).filter(|name| !name.starts_with("__")).collect()
        }))
    }

    /// The elements of a box of an array. Repeats the read when values change during it.
    pub(super) async fn read_elements(
        &self,
        array: &Arc<Array>,
        subset: Subset,
    ) -> Result<CellData, ArrayError> {
        let plan = Plan::new(array, subset, &self.read_limits)?;
        let mut tries = 1;
        loop {
            match self.try_read_elements(&plan).await {
                Err(error) if error.is_changed() && tries < MAX_ATTEMPTS => tries += 1,
                outcome => return outcome,
            }
        }
    }

    async fn try_read_elements(&self, plan: &Plan) -> Result<CellData, ArrayError> {
        let snapshot = self.reader.snapshot(plan, &self.read_context).await?;
        let is_stored = snapshot.versions().any(|version| version.is_some());
        let stream = self.reader.elements(snapshot, 0..plan.response_bytes(), &self.read_context);
        Ok(CellData { parts: stream.try_collect().await?, is_stored })
    }

    /// The elements of a range of the first dimension, and all of the others.
    pub(super) async fn read_rows(
        &self,
        array: &Arc<Array>,
        rows: Range<u64>,
    ) -> Result<CellData, ArrayError> {
        let shape = &array.metadata().shape;
        let mut axes: Vec<AxisRange> = shape.iter().map(|&length| AxisRange::full(length)).collect();
        if let Some(first) = axes.first_mut() {
            let end = rows.end.min(first.count);
            *first = first.part(rows.start.min(end), end.saturating_sub(rows.start));
        }
        self.read_elements(array, Subset(axes)).await
    }
}
