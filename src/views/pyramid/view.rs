//! [`PyramidStore`]: a hierarchy of images, and what each of its keys refers to.
//!
//! Documents and chunk keys of both format versions exist at once. Level 0 has the documents and the chunks of the array
//! as they are stored, in the version that it is stored in, but for the names of dimensions. Consolidated metadata is generated where the stored hierarchy
//! has some.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::built_chunk::{BuiltChunk, LevelChunk, LevelChunks};
use super::documents::{group_text, image_text, with_dimension_names};
use super::image::Image;
use super::nodes::{Nodes, PyramidArray, ShownNode};
use super::pyramids::Pyramids;
use super::spec::PyramidSpec;
use crate::array::{ArrayError, OpenNode, RenderedText};
use crate::chunk::ChunkCoords;
use crate::hierarchy::{Consolidated, Hierarchy, Node};
use crate::key::{NodePath, StoreKey};
use crate::metadata::{GroupMetadata, ZarrFormat};
use crate::store::{ByteRange, MemoryBudget, Reservation, SharedStore, StoreError, ValueInfo, Version};
use crate::views::derived_store::document_info;
use crate::views::error::{ViewError, to_store_error};
use crate::views::rechunk::{
    Candidate, DerivedChunk, UnlimitedBudget, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, ZMETADATA,
    absent_if_unsupported, array_text, candidates,
};
use crate::views::view::MAX_ATTEMPTS;

/// A hierarchy of images. Its groups have consolidated metadata where the stored ones do, unless it lists nodes for that
/// metadata itself.
#[derive(Clone, Debug)]
pub struct PyramidStore {
    inner: Arc<Inner>,
    consolidates: bool,
    /// The memory budget of the current request.
    budget: Option<Arc<dyn MemoryBudget>>,
}

#[derive(Debug)]
struct Inner {
    chunks: LevelChunks,
    /// The name of the hierarchy in caches.
    name: Arc<str>,
}

/// What a key refers to.
pub(super) enum PyramidEntry {
    /// No value.
    Absent,
    /// A generated document.
    Document(Bytes, ValueInfo),
    /// Generated consolidated metadata, which stays on the memory budget of the request as long as it is held.
    Consolidated(Consolidated),
    /// The stored value of this key.
    Stored(StoreKey),
    /// A chunk that is encoded on request.
    Derived(Arc<DerivedChunk>),
    /// A chunk that is built in the background.
    Built(Arc<BuiltChunk>),
}

impl Pyramids {
    /// The hierarchy under a spec.
    #[must_use]
    pub fn store(&self, spec: PyramidSpec) -> PyramidStore {
        let name = format!("pyramid {spec}").into();
        let inner = Arc::new(Inner { chunks: LevelChunks { pyramids: self.clone(), spec }, name });
        PyramidStore { inner, consolidates: true, budget: None }
    }
}

impl PyramidStore {
    /// What all pyramids of the mount share.
    pub(super) fn pyramids(&self) -> &Pyramids {
        &self.inner.chunks.pyramids
    }

    /// How the pyramid is built.
    pub(super) fn spec(&self) -> &PyramidSpec {
        &self.inner.chunks.spec
    }

    /// Makes its chunks.
    pub(super) fn chunks(&self) -> &LevelChunks {
        &self.inner.chunks
    }

    /// The same view with elements of the stored types.
    pub(super) fn with_stored_types(&self) -> Self {
        let LevelChunks { pyramids, spec } = self.chunks().with_stored_types();
        pyramids.store(spec)
    }

    /// The nodes of the view, as input for consolidated metadata.
    #[must_use]
    pub fn hierarchy(&self) -> Hierarchy {
        let alone = Self { inner: Arc::clone(&self.inner), consolidates: false, budget: None };
        let stored = self.pyramids().rechunker.opener().hierarchy();
        stored.view_over(Arc::new(alone), &self.inner.name)
    }

    /// The same hierarchy for one request, with its memory budget.
    pub(super) fn with_request_budget(&self, budget: &Arc<dyn MemoryBudget>) -> Self {
        Self { budget: Some(Arc::clone(budget)), ..self.clone() }
    }

    /// Whether it has the memory budget of a request, which counts the bytes it holds.
    pub(super) fn has_budget(&self) -> bool {
        self.budget.is_some()
    }

    /// An empty reservation on the memory budget of the request.
    pub(super) fn request_reservation(&self) -> Reservation {
        Reservation::new(self.budget.as_ref())
    }

    fn budget(&self) -> Arc<dyn MemoryBudget> {
        self.budget.clone().unwrap_or_else(|| Arc::new(UnlimitedBudget))
    }

    /// The underlying store.
    pub(super) fn base_store(&self) -> &SharedStore {
        self.pyramids().rechunker.opener().hierarchy().store()
    }

    /// What is shown at a path.
    pub(super) async fn find(&self, path: &NodePath) -> Result<Option<ShownNode>, ViewError> {
        self.find_since(path, Instant::now()).await
    }

    /// What is shown at a path, for a request that began at `began`.
    async fn find_since(&self, path: &NodePath, began: Instant) -> Result<Option<ShownNode>, ViewError> {
        let nodes = Nodes { pyramids: self.pyramids(), spec: self.spec(), began };
        Box::pin(nodes.find(path)).await
    }

    /// What a key refers to.
    pub(super) async fn lookup(&self, key: &StoreKey) -> Result<PyramidEntry, StoreError> {
        if matches!(key.name(), ZARR_JSON | ZARRAY | ZGROUP | ZATTRS | ZMETADATA) {
            return self.document(key).await;
        }
        let began = Instant::now();
        for Candidate { path, coords } in candidates(key) {
            match self.find_since(&path, began).await.map_err(to_store_error)? {
                Some(ShownNode::Array(array)) => return self.chunk(array, key, coords),
                // The name of a level of an image is a number too.
                Some(ShownNode::Group(_) | ShownNode::Image(_)) | None => {}
            }
        }
        let mut next = NodePath::parse(key.parent().as_str()).ok();
        while let Some(path) = next {
            match self.find_since(&path, began).await.map_err(to_store_error)? {
                Some(ShownNode::Array(array)) => return Ok(stored_chunk(&array, key)),
                // A value beside the levels of an array is one of the array's own.
                Some(ShownNode::Image(image)) if image.is_array() => return Ok(PyramidEntry::Absent),
                Some(ShownNode::Group(_) | ShownNode::Image(_)) => break,
                None => next = path.parent(),
            }
        }
        Ok(PyramidEntry::Stored(key.clone()))
    }

    /// The chunk of an array that a key names.
    fn chunk(
        &self,
        array: PyramidArray,
        key: &StoreKey,
        coords: ChunkCoords,
    ) -> Result<PyramidEntry, StoreError> {
        if let Some(format) = array.as_stored {
            let is_v3_key = below(&array, key).is_some_and(|below| below == "c" || below.starts_with("c/"));
            if is_v3_key == (format == ZarrFormat::V3) {
                return Ok(stored_chunk(&array, key));
            }
        }
        let rank = array.source.array().map_err(to_store_error)?.grid().axes().len();
        // In v2 the key of an array without dimensions has one number, too.
        let coords = if rank == 0 && coords == [0] { Vec::new() } else { coords };
        if rank != coords.len() {
            return Ok(PyramidEntry::Absent);
        }
        Ok(match self.chunks().chunk(array, coords).map_err(to_store_error)? {
            LevelChunk::Absent => PyramidEntry::Absent,
            LevelChunk::Derived(chunk) => PyramidEntry::Derived(chunk),
            LevelChunk::Built(chunk) => PyramidEntry::Built(chunk),
        })
    }

    /// What the key of a document refers to.
    async fn document(&self, key: &StoreKey) -> Result<PyramidEntry, StoreError> {
        let Ok(path) = NodePath::parse(key.parent().as_str()) else { return Ok(PyramidEntry::Absent) };
        let Some(found) = self.find(&path).await.map_err(to_store_error)? else {
            return Ok(PyramidEntry::Absent);
        };
        match found {
            ShownNode::Group(opened) => self.group_document(&path, opened, key.name()).await,
            ShownNode::Image(image) => self.image_document(&path, image, key.name()).await,
            ShownNode::Array(array) => self.array_document(&path, array, key.name()).await,
        }
    }

    async fn group_document(
        &self,
        path: &NodePath,
        opened: Arc<OpenNode>,
        name: &str,
    ) -> Result<PyramidEntry, StoreError> {
        let Node::Group(group) = &opened.node else { return Ok(PyramidEntry::Absent) };
        if let Some(consolidated) = self.consolidated_document(path, group, name).await? {
            return Ok(consolidated);
        }
        let (group, name) = (Arc::clone(group), name.to_owned());
        let versions = opened.located.versions().map(Option::<&Version>::cloned).collect();
        let bytes = opened.located.document_bytes();
        let make = {
            let name = name.clone();
            move || group_text(&group, &name)
        };
        self.text(path, &name, versions, bytes, make).await
    }

    async fn image_document(
        &self,
        path: &NodePath,
        image: Arc<Image>,
        name: &str,
    ) -> Result<PyramidEntry, StoreError> {
        if let Some(Node::Group(group)) = image.group.as_ref().map(|group| &group.node)
            && let Some(consolidated) = self.consolidated_document(path, group, name).await?
        {
            return Ok(consolidated);
        }
        let (versions, bytes) = (image.versions(), image.document_bytes());
        // Whether there is an image, and how many levels, depends on limits too, which do not change while the server runs.
        let make = {
            let name = name.to_owned();
            move || image_text(&image, &name)
        };
        self.text(path, name, versions, bytes, make).await
    }

    async fn array_document(
        &self,
        path: &NodePath,
        array: PyramidArray,
        name: &str,
    ) -> Result<PyramidEntry, StoreError> {
        let is_stored = match array.as_stored {
            Some(ZarrFormat::V3) => name == ZARR_JSON,
            Some(_) => matches!(name, ZARRAY | ZATTRS),
            None => false,
        };
        if is_stored {
            let key = array.stored_at.prefix().key(name);
            if let (Ok(key), Some(image)) = (&key, array.renamed_by()) {
                return self.renamed_document(path, key, image).await;
            }
            return Ok(key.map_or(PyramidEntry::Absent, PyramidEntry::Stored));
        }
        if !matches!(name, ZARR_JSON | ZARRAY | ZATTRS) {
            return Ok(PyramidEntry::Absent);
        }
        let rechunked = array.rechunked(self.pyramids(), &self.spec().recipe).map_err(to_store_error)?;
        let (mut versions, mut bytes): (Vec<_>, _) = (
            array.source.located.versions().map(Option::<&Version>::cloned).collect(),
            array.source.located.document_bytes(),
        );
        if let Some((image, _)) = &array.level {
            (versions, bytes) = (image.versions(), image.document_bytes());
        }
        let make = {
            let name = name.to_owned();
            move || array_text(&rechunked, &name)
        };
        self.text(path, name, versions, bytes, make).await
    }

    /// The stored document of level 0, with the names of the axes.
    async fn renamed_document(
        &self,
        path: &NodePath,
        key: &StoreKey,
        image: &Image,
    ) -> Result<PyramidEntry, StoreError> {
        let mut tries = 1;
        loop {
            let Some(stored) = self.base_store().head(key).await? else { return Ok(PyramidEntry::Absent) };
            match self.renamed(path, key, image, stored).await {
                Err(error) if error.is_changed() && tries < MAX_ATTEMPTS => tries += 1,
                Err(error) => return Err(to_store_error(error)),
                Ok(None) => return Ok(PyramidEntry::Stored(key.clone())),
                Ok(Some((text, version))) => {
                    let info = document_info(&text, version);
                    return Ok(PyramidEntry::Document(text, info));
                }
            }
        }
    }

    /// The stored document of level 0 at this version, with the names of the axes.
    async fn renamed(
        &self,
        path: &NodePath,
        key: &StoreKey,
        image: &Image,
        stored: ValueInfo,
    ) -> Result<Option<RenderedText>, ArrayError> {
        let mut versions = image.versions();
        versions.push(Some(stored.version.clone()));
        let rechunker = &self.pyramids().rechunker;
        let (cpu, limits) = (rechunker.cpu().clone(), rechunker.limits().metadata);
        let (base, names, key) = (Arc::clone(self.base_store()), image.axis_names(), key.clone());
        let document = Box::pin(async move {
            let failed = |source| ArrayError::Store { key: key.clone(), source };
            let value = base.get(&key, ByteRange::Whole, stored.version.pin()).await.map_err(failed)?;
            let value = value.filter(|value| value.info.version == stored.version);
            let value = value.ok_or(StoreError::VersionChanged).map_err(failed)?;
            let document = value.bytes(limits.document_bytes as u64).await.map_err(failed)?;
            let make = move || {
                let text = with_dimension_names(&document, &names, &limits)?;
                let version = Version::from_text(text.as_bytes());
                Some((text.into(), version))
            };
            Ok(cpu.run_document(stored.size, make).await?)
        });
        let form = format!("{} names", self.inner.name);
        rechunker.opener().rendered_text(path, &form, versions, document).await
    }

    /// The document of this name that `make` makes from documents of these versions.
    async fn text(
        &self,
        path: &NodePath,
        name: &str,
        versions: Vec<Option<Version>>,
        bytes: u64,
        make: impl FnOnce() -> Option<String> + Send + 'static,
    ) -> Result<PyramidEntry, StoreError> {
        let cpu = self.pyramids().rechunker.cpu().clone();
        let form = format!("{} {name}", self.inner.name);
        let document = Box::pin(async move {
            let make = move || {
                let text = make()?;
                let version = Version::from_text(text.as_bytes());
                Some((text.into(), version))
            };
            Ok(cpu.run_document(bytes, make).await?)
        });
        let opener = self.pyramids().rechunker.opener();
        let made = opener.rendered_text(path, &form, versions, document).await.map_err(to_store_error)?;
        Ok(made.map_or(PyramidEntry::Absent, |(text, version)| {
            let info = document_info(&text, version);
            PyramidEntry::Document(text, info)
        }))
    }

    /// The consolidated metadata in the document of this name of a group, if it has some.
    async fn consolidated_document(
        &self,
        path: &NodePath,
        group: &GroupMetadata,
        name: &str,
    ) -> Result<Option<PyramidEntry>, StoreError> {
        if !matches!(name, ZARR_JSON | ZMETADATA) || !self.is_consolidated(path, group).await? {
            return Ok(None);
        }
        let (hierarchy, budget) = (self.hierarchy(), self.budget());
        let generated = match name {
            ZARR_JSON => hierarchy.build_inline(path, true, false, budget).await,
            _ => hierarchy.build_zmetadata(path, budget).await,
        };
        Ok(absent_if_unsupported(generated)?.map(PyramidEntry::Consolidated))
    }

    /// Whether a group has stored consolidated metadata.
    async fn is_consolidated(&self, path: &NodePath, group: &GroupMetadata) -> Result<bool, StoreError> {
        if !self.consolidates || group.is_consolidated || group.zarr_format != ZarrFormat::V2 {
            return Ok(self.consolidates && group.is_consolidated);
        }
        let Ok(key) = path.prefix().key(ZMETADATA) else { return Ok(false) };
        Ok(self.base_store().head(&key).await?.is_some())
    }
}

/// A key without the path of an array.
pub(super) fn below<'k>(array: &PyramidArray, key: &'k StoreKey) -> Option<&'k str> {
    key.as_str().strip_prefix(array.path.prefix().as_str())
}

/// The stored chunk that a key of an array names, if chunks of the array are shown as they are stored.
fn stored_chunk(shown: &PyramidArray, key: &StoreKey) -> PyramidEntry {
    let found = below(shown, key).and_then(|below| {
        shown.as_stored?;
        let array = shown.source.array();
        // The chunks of an array that cannot be decoded are shown, whatever their keys are.
        if let Ok(array) = array {
            array.chunk_coords(below)?;
        }
        shown.stored_at.prefix().key(below).ok()
    });
    found.map_or(PyramidEntry::Absent, PyramidEntry::Stored)
}
