//! [`Context`]: what one request reads a vector store with: nodes, documents and elements, through the rooms below.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;

use super::VectorError;
use super::json::Object;
use crate::array::{Array, ArrayError, NodeOpener, OpenNode, Plan, ReadContext, ReadLimits, Reader};
use crate::chunk::{AxisRange, Elements, Subset};
use crate::codec::CodecLimits;
use crate::cpu::ComputePool;
use crate::hierarchy::{HierarchyError, Node};
use crate::key::NodePath;
use crate::metadata::{Attributes, GroupMetadata, MetadataLimits, ZarrFormat, parse_attributes};
use crate::store::{ByteRange, DirListing, SharedStore, StoreError};

/// How often what changes while it is read is read again.
const TRIES: usize = 3;

/// What one request reads with.
#[derive(Clone, Debug)]
pub struct Context {
    /// The mount's name, which keeps what is remembered of mounts apart.
    pub mount: Arc<str>,
    /// Opens nodes.
    pub opener: NodeOpener,
    /// Reads elements.
    pub reader: Reader,
    /// Where payloads are decoded.
    pub cpu: ComputePool,
    /// What one read may cost.
    pub read: ReadLimits,
    /// What documents may be.
    pub metadata: MetadataLimits,
    /// What codecs may be asked to make.
    pub codec: CodecLimits,
    /// What the request's reads are traced by.
    pub trace: Arc<ReadContext>,
}

/// Elements, in as many parts as they were put together in, and whether any chunk of them is stored.
pub(super) struct Cells {
    pub(super) parts: Vec<Elements>,
    pub(super) is_stored: bool,
}

impl Cells {
    /// The items, one behind the other.
    pub(super) fn into_items(self) -> Bytes {
        let mut parts = self.parts.into_iter();
        let (Some(first), second) = (parts.next(), parts.next()) else { return Bytes::new() };
        let Some(second) = second else { return first.into_items() };
        let mut items = BytesMut::from(first.items().as_ref());
        items.extend_from_slice(second.items());
        parts.for_each(|part| items.extend_from_slice(part.items()));
        items.freeze()
    }

    /// Elements of variable length, each on its own and sharing what it was read into.
    pub(super) fn into_texts(self) -> Vec<Bytes> {
        let own = |part: &Elements| -> Vec<Bytes> {
            part.variable_elements()
                .map(|text| if text.is_empty() { Bytes::new() } else { part.heap().slice_ref(text) })
                .collect()
        };
        self.parts.iter().flat_map(own).collect()
    }
}

impl Context {
    /// The store.
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

    /// The array at a path, if there is one.
    pub(super) async fn array(&self, path: &NodePath) -> Result<Option<Arc<Array>>, VectorError> {
        match self.node(path).await? {
            Some(opened) if matches!(opened.node, Node::Array(_)) => Ok(Some(Arc::clone(opened.array()?))),
            _ => Ok(None),
        }
    }

    /// The attributes of the group at a path, if there is one.
    pub(super) async fn group(&self, path: &NodePath) -> Result<Option<Arc<GroupMetadata>>, VectorError> {
        Ok(match self.node(path).await?.map(|opened| opened.node.clone()) {
            Some(Node::Group(group)) => Some(group),
            Some(Node::Array(_)) | None => None,
        })
    }

    /// What attributes say.
    pub(super) async fn object(&self, attributes: &Attributes) -> Result<Arc<Object>, VectorError> {
        let (bytes, attributes) = (attributes.text().len() as u64, attributes.clone());
        Ok(self.cpu.run_document(bytes, move || attributes.object()).await?)
    }

    /// The attributes of a group with those of the `.zattrs` beside it, which win; and the names of those that differ.
    pub(super) async fn merged(
        &self,
        path: &NodePath,
        group: &GroupMetadata,
    ) -> Result<(Arc<Object>, Vec<String>), VectorError> {
        let attributes = self.object(&group.attributes).await?;
        if group.zarr_format != ZarrFormat::V3 {
            return Ok((attributes, Vec::new()));
        }
        let Some(beside) = self.zattrs(path).await? else { return Ok((attributes, Vec::new())) };
        let (mut attributes, mut disagreements) = (Arc::unwrap_or_clone(attributes), Vec::new());
        for (name, value) in beside {
            if let Some(other) = attributes.insert(name.clone(), value)
                && attributes.get(&name) != Some(&other)
            {
                disagreements.push(name);
            }
        }
        Ok((Arc::new(attributes), disagreements))
    }

    /// What a `.zattrs` says, if there is one.
    async fn zattrs(&self, path: &NodePath) -> Result<Option<Object>, VectorError> {
        let key = path.prefix().key(".zattrs")?;
        let failed = |source| VectorError::Store { key: key.to_string(), source };
        let Some(value) = self.store().get(&key, ByteRange::Whole, None).await.map_err(failed)? else {
            return Ok(None);
        };
        let text = value.bytes(self.metadata.document_bytes as u64).await.map_err(failed)?;
        let limits = self.metadata;
        let parsed =
            self.cpu.run_document(text.len() as u64, move || parse_attributes(&text, &limits)).await?;
        parsed.map(Some).map_err(|source| HierarchyError::Metadata { key, source }.into())
    }

    /// What stands directly below a path; `None` if the store cannot list.
    pub(super) async fn list(&self, path: &NodePath) -> Result<Option<DirListing>, VectorError> {
        match self.store().list_dir(path.prefix()).await {
            Ok(listing) => Ok(Some(listing)),
            Err(StoreError::NotListable) => Ok(None),
            Err(source) => Err(VectorError::Store { key: path.prefix().to_string(), source }),
        }
    }

    /// The names of what stands below a path and may be nodes, sorted.
    pub(super) async fn names(&self, path: &NodePath) -> Result<Option<Vec<String>>, VectorError> {
        let listing = self.list(path).await?;
        Ok(listing.map(|listing| {
            let names = listing.prefixes.iter().filter_map(|prefix| NodePath::parse(prefix.as_str()).ok());
            names.map(|below| below.name().to_owned()).filter(|name| !name.starts_with("__")).collect()
        }))
    }

    /// The elements of a box of an array.
    pub(super) async fn elements(&self, array: &Arc<Array>, subset: Subset) -> Result<Cells, ArrayError> {
        let plan = Plan::new(array, subset, &self.read)?;
        let mut tries = 1;
        loop {
            match self.attempt(&plan).await {
                Err(error) if error.is_changed() && tries < TRIES => tries += 1,
                outcome => return outcome,
            }
        }
    }

    async fn attempt(&self, plan: &Plan) -> Result<Cells, ArrayError> {
        let snapshot = self.reader.snapshot(plan, &self.trace).await?;
        let is_stored = snapshot.versions().any(|version| version.is_some());
        let stream = self.reader.elements(snapshot, 0..plan.response_bytes(), &self.trace);
        Ok(Cells { parts: stream.try_collect().await?, is_stored })
    }

    /// All elements of an array with so many dimensions, of a range of the first of them.
    pub(super) async fn rows(&self, array: &Arc<Array>, rows: Range<u64>) -> Result<Cells, ArrayError> {
        let shape = &array.metadata().shape;
        let mut axes: Vec<AxisRange> = shape.iter().map(|&length| AxisRange::full(length)).collect();
        if let Some(first) = axes.first_mut() {
            let end = rows.end.min(first.count);
            *first = first.part(rows.start.min(end), end.saturating_sub(rows.start));
        }
        self.elements(array, Subset(axes)).await
    }
}
