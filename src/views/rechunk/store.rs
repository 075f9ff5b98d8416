//! [`RechunkStore`]: a rechunked hierarchy as a store (Zarr core 3.1, "Abstract store interface").
//!
//! Documents of both format versions and chunks by the keys of both are there at once; the listing has those of v3 alone,
//! but for arrays whose type has no word there. Consolidated metadata is made where the stored hierarchy has some.
//! Writes are refused.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use super::budget::RechunkBudget;
use super::chunk::Chunk;
use super::rechunked::Rechunked;
use super::spec::RechunkSpec;
use super::{document_v2, document_v3, list, named};
use crate::array::{NodeOpener, OpenNode, ReadLimits, Reader};
use crate::cache::EncodedCache;
use crate::codec::CodecLimits;
use crate::cpu::ComputePool;
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::{Consolidated, Hierarchy, HierarchyError, Node};
use crate::key::{NodePath, StoreKey, StorePrefix};
use crate::metadata::{GroupMetadata, MetadataLimits, ZarrFormat};
use crate::store::{
    BudgetExceeded, ByteRange, DirEntries, ListEntry, MemoryBudget, Reservation, SharedStore, Store,
    StoreError, StoreKind, Value, ValueBody, ValueInfo, Version,
};
use crate::views::error::{ViewError, failed};
use crate::views::nodes::{Nodes, StoredArray};
use crate::views::view::resolve;

pub(super) const ZARR_JSON: &str = "zarr.json";
pub(super) const ZARRAY: &str = ".zarray";
pub(super) const ZGROUP: &str = ".zgroup";
pub(super) const ZATTRS: &str = ".zattrs";
pub(super) const ZMETADATA: &str = ".zmetadata";

/// What may be asked of it.
#[derive(Clone, Copy, Debug)]
pub struct RechunkLimits {
    /// What the elements of one chunk may cost.
    pub read: ReadLimits,
    /// What documents may be.
    pub metadata: MetadataLimits,
    /// What codecs may be asked to make.
    pub codec: CodecLimits,
}

impl RechunkLimits {
    /// What codecs may be asked to make of chunks that are answers.
    pub(super) fn codec(&self) -> CodecLimits {
        CodecLimits { chunk_bytes: self.codec.chunk_bytes.min(self.read.max_response_size), ..self.codec }
    }
}

/// Rechunks the hierarchy of one mount by any recipe. Clones share what they remember.
#[derive(Clone, Debug)]
pub struct Rechunker {
    mount: Arc<str>,
    opener: NodeOpener,
    reader: Reader,
    cpu: ComputePool,
    encoded: EncodedCache,
    limits: RechunkLimits,
    room: RechunkBudget,
}

impl Rechunker {
    /// Rechunks what `opener` opens and `reader` reads; what is made is remembered in `encoded`.
    #[must_use]
    pub fn new(
        mount: Arc<str>,
        opener: NodeOpener,
        reader: Reader,
        cpu: ComputePool,
        encoded: EncodedCache,
        limits: RechunkLimits,
        room: RechunkBudget,
    ) -> Self {
        Self { mount, opener, reader, cpu, encoded, limits, room }
    }

    /// The hierarchy by a recipe.
    #[must_use]
    pub fn store(&self, recipe: RechunkSpec) -> RechunkStore {
        let text = recipe.to_string().into();
        let inner = Arc::new(Inner { shared: self.clone(), recipe, text });
        RechunkStore { inner, consolidates: true, room: None }
    }

    /// The mount's name.
    pub(super) fn mount(&self) -> &Arc<str> {
        &self.mount
    }

    /// What reads elements.
    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Where chunks are encoded.
    pub(super) fn cpu(&self) -> &ComputePool {
        &self.cpu
    }

    /// What was made.
    pub(super) fn encoded(&self) -> &EncodedCache {
        &self.encoded
    }

    /// The limits.
    pub(super) fn limits(&self) -> &RechunkLimits {
        &self.limits
    }

    /// What chunks in the making take.
    pub(super) fn room(&self) -> &RechunkBudget {
        &self.room
    }
}

/// A rechunked hierarchy, and whether its groups have consolidated metadata where those that are stored do.
#[derive(Clone, Debug)]
pub struct RechunkStore {
    inner: Arc<Inner>,
    consolidates: bool,
    /// The room of the request that it is for.
    room: Option<Arc<dyn MemoryBudget>>,
}

#[derive(Debug)]
struct Inner {
    shared: Rechunker,
    recipe: RechunkSpec,
    text: Arc<str>,
}

/// What a key is.
enum RechunkEntry {
    /// Nothing.
    Nothing,
    /// A document that is made.
    Made(Bytes, ValueInfo),
    /// Consolidated metadata that was made, which takes of the request's room as long as it is held.
    Consolidated(Consolidated),
    /// What is stored under the key.
    Stored,
    /// A chunk that is to be made.
    Chunk(Arc<Chunk>),
}

impl RechunkEntry {
    fn made(text: Bytes, version: Version) -> Self {
        let info = info_of(&text, version);
        Self::Made(text, info)
    }
}

impl RechunkStore {
    /// What is the same for every recipe.
    pub(super) fn shared(&self) -> &Rechunker {
        &self.inner.shared
    }

    /// The recipe as a text.
    pub(super) fn recipe_text(&self) -> &Arc<str> {
        &self.inner.text
    }

    /// The nodes of the rechunked hierarchy, for making consolidated metadata of them.
    #[must_use]
    pub fn hierarchy(&self) -> Hierarchy {
        let alone = Self { inner: Arc::clone(&self.inner), consolidates: false, room: None };
        self.shared().opener.hierarchy().over(Arc::new(alone), self.recipe_text())
    }

    /// What opens the stored nodes.
    pub(super) fn opener(&self) -> &NodeOpener {
        &self.shared().opener
    }

    /// The store below.
    pub(super) fn below(&self) -> &SharedStore {
        self.shared().opener.hierarchy().store()
    }

    /// The stored array that is nearest to a prefix, at it or above.
    pub(super) async fn above(&self, prefix: &StorePrefix) -> Result<Option<StoredArray>, StoreError> {
        Nodes::new(self.shared().opener.clone()).above(prefix).await
    }

    /// What the recipe makes of an array.
    pub(super) fn rechunked(&self, path: &NodePath, opened: &OpenNode) -> Result<Rechunked, StoreError> {
        let array = opened.array().map_err(failed)?;
        let made = Rechunked::of(array, &self.inner.recipe, &self.shared().limits.codec());
        made.map_err(|source| failed(ViewError::Rechunk { path: path.clone(), source }))
    }

    async fn shows(&self, key: &StoreKey) -> Result<RechunkEntry, StoreError> {
        if matches!(key.name(), ZARR_JSON | ZARRAY | ZGROUP | ZATTRS | ZMETADATA) {
            return self.document(key).await;
        }
        if let Some(named) = named::chunk(&self.shared().opener, key).await.map_err(failed)? {
            let chunk = self.chunk(named)?;
            return Ok(chunk.map_or(RechunkEntry::Nothing, |chunk| RechunkEntry::Chunk(Arc::new(chunk))));
        }
        Ok(match self.above(&key.parent()).await? {
            None => RechunkEntry::Stored,
            // A stored chunk, or what belongs to one.
            Some(_) => RechunkEntry::Nothing,
        })
    }

    /// A document of a node.
    async fn document(&self, key: &StoreKey) -> Result<RechunkEntry, StoreError> {
        let Ok(path) = NodePath::parse(key.parent().as_str()) else { return Ok(RechunkEntry::Nothing) };
        let opened = named::node(&self.shared().opener, &path).await.map_err(failed)?;
        let Some(opened) = opened else { return Ok(RechunkEntry::Nothing) };
        match (&opened.node, key.name()) {
            (Node::Group(_), ZARRAY) | (Node::Array(_), ZGROUP | ZMETADATA) => {
                return Ok(RechunkEntry::Nothing);
            }
            (Node::Group(group), ZMETADATA) => {
                let is_made = self.is_consolidated(&path, group).await?;
                let made = if is_made { self.zmetadata(&path).await? } else { None };
                return Ok(made.map_or(RechunkEntry::Nothing, RechunkEntry::Consolidated));
            }
            (Node::Group(group), ZARR_JSON) if self.is_consolidated(&path, group).await? => {
                if let Some(made) = self.inline(&path).await? {
                    return Ok(RechunkEntry::Consolidated(made));
                }
            }
            _ => {}
        }
        let rechunked = match &opened.node {
            Node::Array(_) => Some(self.rechunked(&path, &opened)?),
            Node::Group(_) => None,
        };
        let (cpu, name) = (self.shared().cpu.clone(), key.name().to_owned());
        let form = format!("{} {name}", self.recipe_text());
        let versions = opened.located.versions().map(Option::<&Version>::cloned).collect();
        let making = Box::pin(async move {
            let bytes = opened.located.document_bytes();
            let make = move || {
                let text = text_of(&opened.node, rechunked.as_ref(), &name)?;
                let version = Version::of_text(text.as_bytes());
                Some((text.into(), version))
            };
            Ok(cpu.run_document(bytes, make).await?)
        });
        let made = self.opener().text(&path, &form, versions, making).await.map_err(failed)?;
        Ok(made.map_or(RechunkEntry::Nothing, |(text, version)| RechunkEntry::made(text, version)))
    }

    /// What something takes of the request's room: nothing yet.
    pub(super) fn lot(&self) -> Reservation {
        Reservation::of(self.room.as_ref())
    }

    fn room(&self) -> Arc<dyn MemoryBudget> {
        self.room.clone().unwrap_or_else(|| Arc::new(Unbounded))
    }

    /// A group's `zarr.json` with consolidated metadata.
    async fn inline(&self, path: &NodePath) -> Result<Option<Consolidated>, StoreError> {
        made(self.hierarchy().make_inline(path, true, false, self.room()).await)
    }

    /// A group's `.zmetadata`.
    async fn zmetadata(&self, path: &NodePath) -> Result<Option<Consolidated>, StoreError> {
        made(self.hierarchy().make_zmetadata(path, self.room()).await)
    }

    /// Whether consolidated metadata is stored of a group.
    async fn is_consolidated(&self, path: &NodePath, group: &GroupMetadata) -> Result<bool, StoreError> {
        if !self.consolidates || group.is_consolidated || group.zarr_format != ZarrFormat::V2 {
            return Ok(self.consolidates && group.is_consolidated);
        }
        let Ok(key) = path.prefix().key(ZMETADATA) else { return Ok(false) };
        Ok(self.below().head(&key).await?.is_some())
    }
}

/// The text of a document of this name of a node, and of what the recipe makes of it if it is an array; `None` if there is
/// none.
fn text_of(node: &Node, rechunked: Option<&Rechunked>, name: &str) -> Option<String> {
    match (node, rechunked) {
        (Node::Group(group), _) => Some(match name {
            ZARR_JSON => group.to_text(),
            ZATTRS => group.attributes.text().to_owned(),
            _ => document_v2::zgroup().to_string(),
        }),
        (Node::Array(_), None) => None,
        (Node::Array(array), Some(rechunked)) => match name {
            ZARR_JSON => rechunked.is_in_v3().then(|| document_v3::zarr_json(rechunked)),
            ZARRAY => document_v2::zarray(rechunked).map(|zarray| zarray.to_string()),
            _ => rechunked.dtype().map(|_| document_v2::zattrs(array).text().to_owned()),
        },
    }
}

/// Room that nobody counts.
#[derive(Debug)]
struct Unbounded;

impl MemoryBudget for Unbounded {
    fn reserve(&self, _bytes: u64) -> Result<(), BudgetExceeded> {
        Ok(())
    }

    fn release(&self, _bytes: u64) {}

    fn client(&self) -> u64 {
        0
    }
}

/// Consolidated metadata that was made; `None` if it cannot be, because of what the hierarchy is: its nodes can be opened
/// one by one.
fn made(made: Result<Option<Consolidated>, HierarchyError>) -> Result<Option<Consolidated>, StoreError> {
    match made {
        Err(error)
            if matches!(
                error.class(),
                ErrorClass::TooLarge | ErrorClass::Unsupported | ErrorClass::InvalidMetadata
            ) =>
        {
            tracing::debug!(%error, "consolidated metadata of a rechunked group cannot be made");
            Ok(None)
        }
        Err(HierarchyError::Store { source, .. }) => Err(source),
        Err(error) => Err(failed(crate::array::ArrayError::from(error))),
        Ok(made) => Ok(made),
    }
}

fn info_of(text: &Bytes, version: Version) -> ValueInfo {
    ValueInfo { size: text.len() as u64, version, modified: None }
}

/// A range of what was made.
fn part(
    bytes: &Bytes,
    info: ValueInfo,
    range: ByteRange,
    if_match: Option<&Version>,
) -> Result<Value, StoreError> {
    let range = resolve(&info, range, if_match)?;
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    let body = ValueBody::Bytes(bytes.slice(place(range.start)..place(range.end)));
    Ok(Value { info, range, body })
}

#[async_trait]
impl Store for RechunkStore {
    fn kind(&self) -> StoreKind {
        self.below().kind()
    }

    fn freshness_horizon(&self, began: Instant) -> Instant {
        self.below().freshness_horizon(began)
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        match self.shows(key).await? {
            RechunkEntry::Nothing => Ok(None),
            RechunkEntry::Made(_, info) => Ok(Some(info)),
            RechunkEntry::Consolidated(made) => Ok(Some(info_of(&made.text, made.version))),
            RechunkEntry::Stored => self.below().head(key).await,
            RechunkEntry::Chunk(chunk) => {
                let made = chunk.make(self.shared()).await.map_err(failed)?;
                Ok(made.map(|(_, info)| info))
            }
        }
    }

    fn version<'a>(
        &'a self,
        key: &'a StoreKey,
    ) -> Option<BoxFuture<'a, Result<Option<ValueInfo>, StoreError>>> {
        Some(Box::pin(async move {
            match self.shows(key).await? {
                RechunkEntry::Nothing => Ok(None),
                RechunkEntry::Made(_, info) => Ok(Some(info)),
                RechunkEntry::Consolidated(made) => Ok(Some(info_of(&made.text, made.version))),
                RechunkEntry::Stored => self.below().head(key).await,
                RechunkEntry::Chunk(chunk) => chunk.look(self.shared()).await.map_err(failed),
            }
        }))
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        match self.shows(key).await? {
            RechunkEntry::Nothing => Ok(None),
            RechunkEntry::Made(text, info) => part(&text, info, range, if_match).map(Some),
            RechunkEntry::Consolidated(Consolidated { text, version }) => {
                let info = info_of(&text, version);
                let Value { info, range, body } = part(&text, info, range, if_match)?;
                // A stream, as it is counted already what is held of it.
                let body = match self.room {
                    Some(_) => ValueBody::Stream(body.into_stream()),
                    None => body,
                };
                Ok(Some(Value { info, range, body }))
            }
            RechunkEntry::Stored => self.below().get(key, range, if_match).await,
            RechunkEntry::Chunk(chunk) => {
                // What is of another version need not be made.
                if let Some(version) = if_match
                    && let Some(info) = chunk.look(self.shared()).await.map_err(failed)?
                    && info.version != *version
                {
                    return Err(StoreError::VersionChanged);
                }
                match chunk.make(self.shared()).await.map_err(failed)? {
                    None => Ok(None),
                    Some((bytes, info)) => part(&bytes, info, range, if_match).map(Some),
                }
            }
        }
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        list::list_dir(self.clone(), prefix.clone(), after.to_owned())
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        list::list_prefix(self.clone(), prefix.clone(), after.cloned())
    }

    fn with_budget(&self, room: &Arc<dyn MemoryBudget>) -> Option<SharedStore> {
        Some(Arc::new(Self { room: Some(Arc::clone(room)), ..self.clone() }))
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.below().check().await
    }
}
