//! [`RechunkStore`]: a rechunked hierarchy, and what each of its keys refers to.
//!
//! Documents and chunk keys of both format versions exist at once. Consolidated metadata is generated where the stored
//! hierarchy has some.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::derived_chunk::DerivedChunk;
use super::rechunked_array::RechunkedArray;
use super::rechunker::Rechunker;
use super::resolve_key::NamedChunk;
use super::spec::RechunkSpec;
use super::{document_v2, document_v3, resolve_key};
use crate::array::{ArrayError, NodeOpener, OpenNode};
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::{Consolidated, Hierarchy, HierarchyError, Node};
use crate::key::{NodePath, StoreKey, StorePrefix};
use crate::metadata::{GroupMetadata, ZarrFormat};
use crate::store::{BudgetExceeded, MemoryBudget, Reservation, SharedStore, StoreError, ValueInfo, Version};
use crate::views::derived_store::document_info;
use crate::views::error::{ViewError, to_store_error};
use crate::views::node_finder::{NodeFinder, StoredArray};

pub(in crate::views) const ZARR_JSON: &str = "zarr.json";
pub(in crate::views) const ZARRAY: &str = ".zarray";
pub(in crate::views) const ZGROUP: &str = ".zgroup";
pub(in crate::views) const ZATTRS: &str = ".zattrs";
pub(in crate::views) const ZMETADATA: &str = ".zmetadata";

/// A rechunked hierarchy. Its groups have consolidated metadata where the stored ones do, unless it lists nodes for
/// that metadata itself.
#[derive(Clone, Debug)]
pub struct RechunkStore {
    inner: Arc<Inner>,
    consolidates: bool,
    /// The memory budget of the current request.
    budget: Option<Arc<dyn MemoryBudget>>,
}

#[derive(Debug)]
struct Inner {
    shared: Rechunker,
    recipe: RechunkSpec,
    text: Arc<str>,
}

/// What a key refers to.
pub(super) enum RechunkEntry {
    /// No value.
    Absent,
    /// A generated document.
    Document(Bytes, ValueInfo),
    /// Generated consolidated metadata, which stays on the memory budget of the request as long as it is held.
    Consolidated(Consolidated),
    /// The stored value of the key.
    Stored,
    /// A chunk that is encoded on request.
    Chunk(Arc<DerivedChunk>),
}

impl RechunkEntry {
    fn document(text: Bytes, version: Version) -> Self {
        let info = document_info(&text, version);
        Self::Document(text, info)
    }
}

impl Rechunker {
    /// The hierarchy under a recipe.
    #[must_use]
    pub fn store(&self, recipe: RechunkSpec) -> RechunkStore {
        let text = recipe.to_string().into();
        let inner = Arc::new(Inner { shared: self.clone(), recipe, text });
        RechunkStore { inner, consolidates: true, budget: None }
    }
}

impl RechunkStore {
    /// The services that all recipes share.
    pub(super) fn shared(&self) -> &Rechunker {
        &self.inner.shared
    }

    /// The recipe as text.
    pub(super) fn recipe_text(&self) -> &Arc<str> {
        &self.inner.text
    }

    /// The nodes of the rechunked hierarchy, as input for consolidated metadata.
    #[must_use]
    pub fn hierarchy(&self) -> Hierarchy {
        let alone = Self { inner: Arc::clone(&self.inner), consolidates: false, budget: None };
        self.opener().hierarchy().view_over(Arc::new(alone), self.recipe_text())
    }

    /// The opener of the stored nodes.
    pub(super) fn opener(&self) -> &NodeOpener {
        self.shared().opener()
    }

    /// The same hierarchy for one request, with its memory budget.
    pub(super) fn with_request_budget(&self, budget: &Arc<dyn MemoryBudget>) -> Self {
        Self { budget: Some(Arc::clone(budget)), ..self.clone() }
    }

    /// Whether it has the memory budget of a request, which counts the bytes it holds.
    pub(super) fn has_budget(&self) -> bool {
        self.budget.is_some()
    }

    /// The underlying store.
    pub(super) fn base_store(&self) -> &SharedStore {
        self.opener().hierarchy().store()
    }

    /// The nearest stored array at a prefix or above.
    pub(super) async fn nearest_array(
        &self,
        prefix: &StorePrefix,
    ) -> Result<Option<StoredArray>, StoreError> {
        NodeFinder::new(self.opener().clone()).nearest_array(prefix).await
    }

    /// Applies the recipe to an array.
    pub(super) fn rechunked(&self, path: &NodePath, opened: &OpenNode) -> Result<RechunkedArray, StoreError> {
        let array = opened.array().map_err(to_store_error)?;
        let generated = RechunkedArray::new(array, &self.inner.recipe, &self.shared().limits().codec());
        generated.map_err(|source| to_store_error(ViewError::Rechunk { path: path.clone(), source }))
    }

    pub(super) async fn lookup(&self, key: &StoreKey) -> Result<RechunkEntry, StoreError> {
        if matches!(key.name(), ZARR_JSON | ZARRAY | ZGROUP | ZATTRS | ZMETADATA) {
            return self.document(key).await;
        }
        if let Some(named) = resolve_key::find_chunk(self.opener(), key).await.map_err(to_store_error)? {
            let chunk = self.chunk(named)?;
            return Ok(chunk.map_or(RechunkEntry::Absent, |chunk| RechunkEntry::Chunk(Arc::new(chunk))));
        }
        Ok(match self.nearest_array(&key.parent()).await? {
            None => RechunkEntry::Stored,
            // The key of a stored chunk, or another key inside an array.
            Some(_) => RechunkEntry::Absent,
        })
    }

    /// The chunk that a key names, if it is inside the array.
    ///
    /// # Errors
    /// Reading its elements is over the limits, or the recipe does not apply to the array.
    fn chunk(&self, named: NamedChunk) -> Result<Option<DerivedChunk>, StoreError> {
        let rechunked = self.rechunked(&named.path, &named.opened)?;
        DerivedChunk::new(self.shared(), Arc::clone(self.recipe_text()), rechunked, named)
            .map_err(to_store_error)
    }

    /// What the key of a document refers to.
    async fn document(&self, key: &StoreKey) -> Result<RechunkEntry, StoreError> {
        let Ok(path) = NodePath::parse(key.parent().as_str()) else { return Ok(RechunkEntry::Absent) };
        let opened =
            resolve_key::find_node(self.opener(), &path, Instant::now()).await.map_err(to_store_error)?;
        let Some(opened) = opened else { return Ok(RechunkEntry::Absent) };
        match (&opened.node, key.name()) {
            (Node::Group(_), ZARRAY) | (Node::Array(_), ZGROUP | ZMETADATA) => {
                return Ok(RechunkEntry::Absent);
            }
            (Node::Group(group), ZMETADATA) => {
                let has_stored = self.is_consolidated(&path, group).await?;
                let generated = if has_stored { self.zmetadata(&path).await? } else { None };
                return Ok(generated.map_or(RechunkEntry::Absent, RechunkEntry::Consolidated));
            }
            (Node::Group(group), ZARR_JSON) if self.is_consolidated(&path, group).await? => {
                if let Some(generated) = self.inline_consolidated(&path).await? {
                    return Ok(RechunkEntry::Consolidated(generated));
                }
            }
            _ => {}
        }
        let rechunked = match &opened.node {
            Node::Array(_) => Some(self.rechunked(&path, &opened)?),
            Node::Group(_) => None,
        };
        let (cpu, name) = (self.shared().cpu().clone(), key.name().to_owned());
        let form = format!("{} {name}", self.recipe_text());
        let versions = opened.located.versions().map(Option::<&Version>::cloned).collect();
        let document = Box::pin(async move {
            let bytes = opened.located.document_bytes();
            let make = move || {
                let text = document_text(&opened.node, rechunked.as_ref(), &name)?;
                let version = Version::from_text(text.as_bytes());
                Some((text.into(), version))
            };
            Ok(cpu.run_document(bytes, make).await?)
        });
        let generated =
            self.opener().rendered_text(&path, &form, versions, document).await.map_err(to_store_error)?;
        Ok(generated.map_or(RechunkEntry::Absent, |(text, version)| RechunkEntry::document(text, version)))
    }

    /// An empty reservation on the memory budget of the request.
    pub(super) fn request_reservation(&self) -> Reservation {
        Reservation::new(self.budget.as_ref())
    }

    fn budget(&self) -> Arc<dyn MemoryBudget> {
        self.budget.clone().unwrap_or_else(|| Arc::new(UnlimitedBudget))
    }

    /// A group's `zarr.json` with consolidated metadata.
    async fn inline_consolidated(&self, path: &NodePath) -> Result<Option<Consolidated>, StoreError> {
        absent_if_unsupported(self.hierarchy().build_inline(path, true, false, self.budget()).await)
    }

    /// A group's `.zmetadata`.
    async fn zmetadata(&self, path: &NodePath) -> Result<Option<Consolidated>, StoreError> {
        absent_if_unsupported(self.hierarchy().build_zmetadata(path, self.budget()).await)
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

/// The text of the document of this name of a node; `None` if the node has none. `rechunked` is given for arrays.
fn document_text(node: &Node, rechunked: Option<&RechunkedArray>, name: &str) -> Option<String> {
    match (node, rechunked) {
        (Node::Group(group), _) => Some(match name {
            ZARR_JSON => group.to_text(),
            ZATTRS => group.attributes.text().to_owned(),
            _ => document_v2::zgroup().to_string(),
        }),
        (Node::Array(_), rechunked) => array_text(rechunked?, name),
    }
}

/// The text of the document of this name of an array; `None` if it has none.
pub(in crate::views) fn array_text(rechunked: &RechunkedArray, name: &str) -> Option<String> {
    match name {
        ZARR_JSON => rechunked.has_v3_type().then(|| document_v3::zarr_json(rechunked)),
        ZARRAY => document_v2::zarray(rechunked).map(|zarray| zarray.to_string()),
        _ => rechunked.v2_dtype().map(|_| document_v2::zattrs(rechunked).text().to_owned()),
    }
}

/// A memory budget without a limit.
#[derive(Debug)]
pub(in crate::views) struct UnlimitedBudget;

impl MemoryBudget for UnlimitedBudget {
    fn reserve(&self, _bytes: u64) -> Result<(), BudgetExceeded> {
        Ok(())
    }

    fn release(&self, _bytes: u64) {}

    fn client(&self) -> u64 {
        0
    }
}

/// Generated consolidated metadata; `None` if the hierarchy does not allow it. Its nodes can still be opened one by
/// one.
pub(in crate::views) fn absent_if_unsupported(
    generated: Result<Option<Consolidated>, HierarchyError>,
) -> Result<Option<Consolidated>, StoreError> {
    match generated {
        Err(error)
            if matches!(
                error.class(),
                ErrorClass::TooLarge | ErrorClass::Unsupported | ErrorClass::InvalidMetadata
            ) =>
        {
            tracing::debug!(%error, "consolidated metadata of a rechunked group cannot be generated");
            Ok(None)
        }
        Err(HierarchyError::Store { source, .. }) => Err(source),
        Err(error) => Err(to_store_error(ArrayError::from(error))),
        Ok(generated) => Ok(generated),
    }
}
