//! [`ShownNode`]: what the view shows at a path.
//!
//! An array of two dimensions or more is an image: a group with level 0, the array itself, and coarser levels. So is an
//! image of the store with too few levels. All other groups, and all other arrays, are as they are stored: arrays with
//! fewer dimensions, those that are levels of an image, and those that cannot be opened.

use std::sync::Arc;
use std::time::Instant;

use super::build_cost::{build_limits, fits_in_build};
use super::image::{Image, ImageParts};
use super::pyramids::Pyramids;
use super::spec::PyramidSpec;
use crate::array::{ArrayError, NodeOpener, OpenNode, ReadLimits};
use crate::chunk::{AxisRange, ChunkAxis};
use crate::conventions::OmeImage;
use crate::hierarchy::Node;
use crate::key::NodePath;
use crate::metadata::{ChunkKeyEncodingMetadata, GroupMetadata, ZarrFormat};
use crate::views::error::ViewError;
use crate::views::image_finder::ImageFinder;
use crate::views::rechunk::{RechunkSpec, RechunkedArray, find_node};

/// The most stored chunks that a chunk of a level is made of.
const MAX_SOURCES: u128 = 1 << 18;

/// What the view shows at a path.
#[derive(Debug)]
pub(super) enum ShownNode {
    /// A group.
    Group(Arc<OpenNode>),
    /// The group of an image.
    Image(Arc<Image>),
    /// An array.
    Array(PyramidArray),
}

/// An array of the view.
#[derive(Debug)]
pub(super) struct PyramidArray {
    /// Its path in the view.
    pub(super) path: NodePath,
    /// The stored array.
    pub(super) source: Arc<OpenNode>,
    /// The path of that.
    pub(super) stored_at: NodePath,
    /// The image that it is a level of, and which.
    pub(super) level: Option<(Arc<Image>, usize)>,
    /// The format whose documents and chunks are the stored ones.
    pub(super) as_stored: Option<ZarrFormat>,
}

impl PyramidArray {
    /// The name in caches of what a recipe makes of it: with all that the elements depend on beside the array itself.
    pub(super) fn recipe(&self, spec: &PyramidSpec) -> Arc<str> {
        match &self.level {
            None => format!("pyramid {}", spec.recipe).into(),
            Some((image, level)) => recipe_of_level(&spec.recipe.to_string(), image, *level),
        }
    }

    /// The image whose axes the stored `zarr.json` must name and does not, if this is its level 0.
    pub(super) fn renamed_by(&self) -> Option<&Arc<Image>> {
        let (image, _) = self.level.as_ref().filter(|(_, level)| *level == 0)?;
        let named = image.array.metadata().dimension_names.as_deref();
        let is_named = named.is_some_and(|names| names == image.axis_names());
        (self.as_stored == Some(ZarrFormat::V3) && !is_named).then_some(image)
    }

    /// Applies a recipe to it.
    ///
    /// # Errors
    /// The recipe cannot be applied; the array cannot be used.
    pub(super) fn rechunked(
        &self,
        pyramids: &Pyramids,
        recipe: &RechunkSpec,
    ) -> Result<RechunkedArray, ViewError> {
        let array = self.source.array()?;
        let shown = self.level.as_ref().map(|(image, level)| image.shown(*level)).transpose()?;
        let limits = pyramids.rechunker.limits().codec();
        RechunkedArray::showing(array, shown, recipe, &limits)
            .map_err(|source| ViewError::Rechunk { path: self.path.clone(), source })
    }
}

/// The name in caches of a level of an image, under a recipe.
pub(super) fn recipe_of_level(recipe: &str, image: &Image, level: usize) -> Arc<str> {
    let steps = image.levels.steps.get(..level).unwrap_or_default();
    format!("pyramid {recipe} by {} in {steps:?}", image.method.name()).into()
}

/// Finds the nodes of the view.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nodes<'a> {
    pub(super) pyramids: &'a Pyramids,
    pub(super) spec: &'a PyramidSpec,
    /// When the lookup began that needs the nodes: what it found since then is not requested again.
    pub(super) began: Instant,
}

impl Nodes<'_> {
    fn opener(&self) -> &NodeOpener {
        self.pyramids.rechunker.opener()
    }

    /// The view shows all that is stored: routes check what callers may read before they use it.
    fn finder(&self) -> ImageFinder<'_> {
        ImageFinder::new(self.opener(), self.pyramids.rechunker.cpu(), &|_: &NodePath| true, self.began)
    }

    /// What is at a path; `None` if nothing is.
    ///
    /// # Errors
    /// Documents that cannot be read; an array that is no image.
    pub(super) async fn find(&self, path: &NodePath) -> Result<Option<ShownNode>, ViewError> {
        if let Some(parent) = path.parent()
            && let Some(opened) = self.opener().open_cached(&parent, self.began).await?
            && let Some(image) = self.image(&parent, &opened, Some(path.name())).await?
            && let Some(level) = image.level_of(path.name())
        {
            let source = Arc::clone(&image.source);
            let stored_at = image.array.path().clone();
            let as_stored = if level == 0 { self.as_stored(&source) } else { None };
            let level = Some((image, level));
            return Ok(Some(ShownNode::Array(PyramidArray {
                path: path.clone(),
                source,
                stored_at,
                level,
                as_stored,
            })));
        }
        let Some(opened) = find_node(self.opener(), path, self.began).await? else { return Ok(None) };
        if let Some(image) = self.image(path, &opened, None).await? {
            return Ok(Some(ShownNode::Image(image)));
        }
        Ok(Some(match &opened.node {
            Node::Group(_) => ShownNode::Group(opened),
            Node::Array(_) => ShownNode::Array(PyramidArray {
                path: path.clone(),
                as_stored: self.as_stored(&opened),
                source: opened,
                stored_at: path.clone(),
                level: None,
            }),
        }))
    }

    /// The format whose documents and chunks of an array are shown as they are stored; `None` if the data type is changed, or
    /// if the keys of the stored chunks could be those of the other format.
    fn as_stored(&self, opened: &OpenNode) -> Option<ZarrFormat> {
        let Node::Array(metadata) = &opened.node else { return None };
        if self.spec.recipe.data_types.target(&metadata.data_type).is_some() || opened.dependent.is_some() {
            return None;
        }
        match (metadata.zarr_format, &metadata.chunk_key_encoding) {
            (ZarrFormat::V3, ChunkKeyEncodingMetadata::Default(_)) => Some(ZarrFormat::V3),
            (ZarrFormat::V2, _) => Some(ZarrFormat::V2),
            _ => None,
        }
    }

    /// The image that a stored node is shown as; `None` if it is shown as it is stored. With a `name`, only if that may be one
    /// of its levels.
    async fn image(
        &self,
        path: &NodePath,
        opened: &Arc<OpenNode>,
        name: Option<&str>,
    ) -> Result<Option<Arc<Image>>, ViewError> {
        match &opened.node {
            Node::Array(metadata) => {
                let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
                if metadata.shape.len() < 2 || !name.is_none_or(is_number) {
                    return Ok(None);
                }
                self.image_of_array(path, opened).await
            }
            Node::Group(group) => {
                let ends_in_digit = |name: &str| name.ends_with(|c: char| c.is_ascii_digit());
                if !name.is_none_or(ends_in_digit) {
                    return Ok(None);
                }
                self.image_of_group(path, opened, group).await
            }
        }
    }

    async fn image_of_array(
        &self,
        path: &NodePath,
        opened: &Arc<OpenNode>,
    ) -> Result<Option<Arc<Image>>, ViewError> {
        // An array that cannot be decoded is shown as it is stored: reading it returns the error.
        let Ok(array) = opened.array() else { return Ok(None) };
        let found = self.finder().above(path).await?;
        if found.level.is_some() {
            return Ok(None);
        }
        let above = found.nodes.first().and_then(|above| above.node().cloned());
        let (source, array) = (Arc::clone(opened), Arc::clone(array));
        let parts = ImageParts { path, source, array, group: None, above, labels: None, ome: None };
        let image = Image::new(parts, self.spec)?;
        self.bounded(image).map(|image| Some(Arc::new(image)))
    }

    async fn image_of_group(
        &self,
        path: &NodePath,
        opened: &Arc<OpenNode>,
        group: &Arc<GroupMetadata>,
    ) -> Result<Option<Arc<Image>>, ViewError> {
        if !["ome", "multiscales"].iter().any(|name| group.attributes.contains_key(name)) {
            return Ok(None);
        }
        let metadata = Arc::clone(group);
        let parse = move || {
            let image = OmeImage::parse(&metadata.attributes)?;
            super::ome::takes_levels(&metadata.attributes, image.axes.len()).then_some(image)
        };
        let Some(ome) = self.read_attributes(Some(opened), parse).await? else { return Ok(None) };
        let (ome, list) = self.finder().with_list(path, ome).await?;
        let list = list.and_then(|list| list.node().cloned());
        let Some((last, _)) = ome.levels.last() else { return Ok(None) };
        let Ok(at) = NodePath::parse(&format!("{}{last}", path.prefix())) else { return Ok(None) };
        let Some(source) = find_node(self.opener(), &at, self.began).await? else { return Ok(None) };
        let Ok(array) = source.array().map(Arc::clone) else { return Ok(None) };
        let rank = array.metadata().shape.len();
        if rank < 2 || rank != ome.axes.len() {
            return Ok(None);
        }
        let group = Some(Arc::clone(opened));
        let parts = ImageParts { path, source, array, group, above: None, labels: list, ome: Some(&ome) };
        // An image that breaks the rules is shown as it is stored.
        let Ok(image) = Image::new(parts, self.spec) else { return Ok(None) };
        let image = self.bounded(image)?;
        Ok((image.names.len() > 1).then(|| Arc::new(image)))
    }

    /// Reads the attributes of a node, in the pool if they are long.
    async fn read_attributes<T: Send + 'static>(
        &self,
        node: Option<&OpenNode>,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ViewError> {
        let bytes = node.map_or(0, |node| node.located.document_bytes());
        Ok(self.pyramids.rechunker.cpu().run_document(bytes, read).await.map_err(ArrayError::from)?)
    }

    /// The same image without levels whose chunks are made of too much; if requested, of those that are computed on request
    /// only.
    fn bounded(&self, image: Image) -> Result<Image, ViewError> {
        let limits = self.pyramids.rechunker.limits().codec();
        let rechunked = |level| {
            RechunkedArray::showing(&image.array, Some(image.shown(level)?), &self.spec.recipe, &limits)
                .map_err(|source| ViewError::Rechunk { path: image.path.clone(), source })
        };
        let (mut count, mut finer) = (1, None);
        while count < image.names.len() {
            let level = rechunked(count)?;
            let step = image.levels.steps.get(count - 1).map(Vec::as_slice).unwrap_or_default();
            let is_within = match (self.cost(&level), &finer) {
                (LevelCost::Direct, _) => true,
                (LevelCost::TooLarge, _) => false,
                _ if self.spec.only_direct => false,
                (LevelCost::Readable, None) => true,
                (LevelCost::Readable, Some(_)) if image.array.metadata().data_type.is_variable() => true,
                (_, Some(finer)) => fits_in_build(&level, finer, step, count),
                (LevelCost::Cascaded, None) => false,
            };
            if !is_within {
                break;
            }
            (count, finer) = (count + 1, Some(level));
        }
        Ok(image.truncated(count))
    }

    /// What every chunk of a level costs at most.
    fn cost(&self, level: &RechunkedArray) -> LevelCost {
        let (stored, decoded) = (level.array().grid().axes(), level.array().decoded_axes());
        if most_touched(level, stored, |touched| touched.chunks.into()) > MAX_SOURCES {
            return LevelCost::TooLarge;
        }
        let item = level.array().metadata().data_type.element_bytes() as u128;
        let bytes = most_touched(level, decoded, |touched| touched.elements).saturating_mul(item);
        let chunks = most_touched(level, decoded, |touched| touched.chunks.into());
        let limits = self.pyramids.rechunker.limits().read;
        let is_within = |limits: &ReadLimits, most: u64| {
            bytes <= most.min(limits.max_decoded_size).into() && chunks <= limits.max_chunks.into()
        };
        if is_within(&limits, self.pyramids.options.direct_size) {
            LevelCost::Direct
        } else if is_within(&build_limits(&limits), u64::MAX) {
            LevelCost::Readable
        } else {
            LevelCost::Cascaded
        }
    }
}

/// What every chunk of a level costs at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LevelCost {
    /// It is computed on request.
    Direct,
    /// It can be read from the stored chunks in the background.
    Readable,
    /// It can only be built from the level before.
    Cascaded,
    /// It is made of too many stored chunks.
    TooLarge,
}

/// How much of these axes a chunk of a level touches at most: the product over the axes of the largest of its first chunks,
/// which have every offset to the stored chunks that there is in regular grids of common sizes, and of one more chunk.
fn most_touched(
    level: &RechunkedArray,
    axes: &[ChunkAxis],
    measure: impl Fn(crate::chunk::TouchedChunkTotals) -> u128,
) -> u128 {
    let factors = level.factors();
    let each = axes.iter().zip(level.grid()).zip(factors).map(|((axis, shown), factor)| {
        let length = shown.edge().unwrap_or(1).saturating_mul(factor).min(axis.length());
        let edge = axis.largest_edge().max(1);
        let is_aligned = axis.edge().is_some_and(|edge| length.is_multiple_of(edge.max(1)));
        let reach = if is_aligned || length == axis.length() { length } else { length.saturating_add(edge) };
        let count = reach.min(axis.length());
        measure(axis.touched(&AxisRange { start: 0, count, step: 1, keep: true }))
    });
    each.fold(1, u128::saturating_mul)
}
