//! [`BuiltChunk`]: a chunk of a level that is made of too much to be computed on request.
//!
//! It is made of the chunks of the level before, each of which is computed or built in the same way and cached, so the
//! whole pyramid takes one read of the array, and memory for a few chunks of each level. Its version is a digest of all
//! stored chunks below it. It is checked for each request, unless the store says that an earlier check is good enough.

use std::sync::Arc;
use std::time::Instant;

use futures::future::BoxFuture;
use futures::stream::TryStreamExt;

use super::build_cost::{build_limits, fits_in_build, is_aligned};
use super::builder::BuildRequest;
use super::image::Image;
use super::nodes::{PyramidArray, recipe_of_level};
use super::pyramids::Pyramids;
use super::spec::PyramidSpec;
use crate::array::ArrayError;
use crate::cache::{EncodedChunk, EncodedKey};
use crate::chunk::{AxisRange, ChunkAxis, ChunkCoords, CopyRegion, Elements, ElementsMut, Subset};
use crate::reduce::Reduction;
use crate::store::{StoreError, ValueInfo, Version};
use crate::views::error::ViewError;
use crate::views::rechunk::{
    DerivedChunk, NamedChunk, RechunkedArray, Rechunker, VersionDigest, chunk_info, shrink_to_fit,
};

/// Attempts to build a chunk whose sources change meanwhile.
const MAX_ATTEMPTS: usize = 3;
/// Makes the chunks of arrays of a view.
#[derive(Clone, Debug)]
pub(super) struct LevelChunks {
    pub(super) pyramids: Pyramids,
    pub(super) spec: PyramidSpec,
}

/// A chunk that is not stored.
#[derive(Debug)]
pub(super) enum LevelChunk {
    /// There is none: it is outside of the array.
    Absent,
    /// It is encoded on request.
    Derived(Arc<DerivedChunk>),
    /// It is built in the background.
    Built(Arc<BuiltChunk>),
}

impl LevelChunks {
    /// The same with elements of the stored types.
    pub(super) fn with_stored_types(&self) -> Self {
        let recipe = self.spec.recipe.with_stored_types();
        Self { pyramids: self.pyramids.clone(), spec: PyramidSpec { recipe, ..self.spec.clone() } }
    }

    /// A chunk of a level, or of an array that is encoded by the recipe.
    ///
    /// # Errors
    /// The recipe cannot be applied; reading the elements is over the limits.
    pub(super) fn chunk(&self, array: PyramidArray, coords: ChunkCoords) -> Result<LevelChunk, ViewError> {
        let rechunked = array.rechunked(&self.pyramids, &self.spec.recipe)?;
        if rechunked.subset(&coords).is_none() {
            return Ok(LevelChunk::Absent);
        }
        let recipe = array.recipe(&self.spec);
        let (path, opened) = (array.path.clone(), Arc::clone(&array.source));
        let named = NamedChunk { path, opened, coords: coords.clone() };
        let derived = DerivedChunk::new(&self.pyramids.rechunker, recipe, rechunked, named);
        let Some((image, level)) = array.level.filter(|(_, level)| *level > 0) else {
            return Ok(derived?.map_or(LevelChunk::Absent, |chunk| LevelChunk::Derived(Arc::new(chunk))));
        };
        match derived {
            Ok(Some(chunk)) if chunk.decoded_bytes() <= self.pyramids.options.direct_size => {
                Ok(LevelChunk::Derived(Arc::new(chunk)))
            }
            Ok(None) => Ok(LevelChunk::Absent),
            Ok(Some(_)) | Err(ArrayError::TooLarge { .. }) => {
                let built = BuiltChunk::new(self.clone(), image, level, coords)?;
                Ok(LevelChunk::Built(Arc::new(built)))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// A chunk of a level that is built in the background.
#[derive(Debug)]
pub(super) struct BuiltChunk {
    maker: LevelChunks,
    image: Arc<Image>,
    coords: ChunkCoords,
    key: EncodedKey,
    rechunked: Arc<RechunkedArray>,
    method: BuildMethod,
}

/// How a chunk is built.
#[derive(Debug)]
enum BuildMethod {
    /// From the stored chunks.
    Stored(Arc<DerivedChunk>),
    /// From the chunks of the level before.
    Cascade(Arc<FinerLevel>),
}

/// The level before that of a chunk.
#[derive(Debug)]
struct FinerLevel {
    /// The chunks of stored types: elements are cast after they are reduced.
    maker: LevelChunks,
    image: Arc<Image>,
    level: usize,
    rechunked: RechunkedArray,
    /// The step to the next level.
    step: Arc<Reduction>,
    /// Whether no window goes across chunks.
    is_aligned: bool,
}

/// The array that is shown as a level.
fn level_array(image: &Arc<Image>, level: usize) -> Result<PyramidArray, ArrayError> {
    Ok(PyramidArray {
        path: image.level_path(level).ok_or(ArrayError::Geometry)?,
        source: Arc::clone(&image.source),
        stored_at: image.array.path().clone(),
        level: Some((Arc::clone(image), level)),
        as_stored: None,
    })
}

impl BuiltChunk {
    /// A chunk of a level, which is 1 or more.
    ///
    /// # Errors
    /// [`ViewError::BuildTooLarge`]; the recipe cannot be applied.
    pub(super) fn new(
        maker: LevelChunks,
        image: Arc<Image>,
        level: usize,
        coords: ChunkCoords,
    ) -> Result<Self, ViewError> {
        let array = level_array(&image, level)?;
        let (pyramids, spec) = (&maker.pyramids, &maker.spec);
        let rechunked = array.rechunked(pyramids, &spec.recipe)?;
        let recipe = recipe_of_level(&spec.recipe.to_string(), &image, level);
        let mount = Arc::clone(pyramids.rechunker.mount());
        let key = EncodedKey {
            mount,
            path: array.path.clone(),
            recipe: Arc::clone(&recipe),
            coords: coords.clone(),
        };
        let is_variable = image.array.metadata().data_type.is_variable();
        let method = if level > 1 && !is_variable {
            BuildMethod::Cascade(Arc::new(FinerLevel::new(&maker, &image, level - 1)?))
        } else {
            let opened = Arc::clone(&image.source);
            let named = NamedChunk { path: array.path.clone(), opened, coords: coords.clone() };
            let again = array.rechunked(pyramids, &spec.recipe)?;
            let shared = &pyramids.rechunker;
            let limits = build_limits(&shared.limits().read);
            let derived = DerivedChunk::within(shared, recipe, again, named, &limits)?;
            BuildMethod::Stored(Arc::new(derived.ok_or(ArrayError::Geometry)?))
        };
        if let BuildMethod::Cascade(finer) = &method
            && !fits_in_build(&rechunked, &finer.rechunked, &finer.factors(), level)
        {
            return Err(ViewError::BuildTooLarge { path: key.path });
        }
        Ok(Self { maker, image, coords, key, rechunked: Arc::new(rechunked), method })
    }

    fn rechunker(&self) -> &Rechunker {
        &self.maker.pyramids.rechunker
    }

    /// The earliest time at which a check may have begun for a request of now.
    ///
    /// # Errors
    /// [`ViewError::NotRevalidated`].
    fn horizon(&self) -> Result<Instant, ViewError> {
        let store = self.rechunker().opener().hierarchy().store();
        let began = Instant::now();
        let horizon = store.freshness_horizon(began);
        if !store.capabilities().near && horizon >= began {
            return Err(ViewError::NotRevalidated { path: self.key.path.clone() });
        }
        Ok(horizon)
    }

    /// The size and version of the chunk, if it was built and is current.
    ///
    /// # Errors
    /// As [`BuiltChunk::get`], which this does not begin to build.
    pub(super) async fn current(&self) -> Result<Option<EncodedChunk>, ViewError> {
        let horizon = self.horizon()?;
        let builder = &self.maker.pyramids.builder;
        let encoded = self.rechunker().encoded();
        let latest = || builder.kept(&self.key).or_else(|| encoded.latest(&self.key));
        if latest().is_none() && !encoded.is_on_disk(&self.key) {
            return Ok(None);
        }
        // A check may take many lookups; one serves all requests that began before it.
        let check = builder.check_of(&self.key);
        let _checking = check.lock().await;
        let (validations, documents) = (self.rechunker().validations(), &self.image.source.located);
        let Some(known) = latest() else {
            let checked_at = Instant::now();
            let Some(version) = self.version().await? else { return Ok(None) };
            let Some(known) = encoded.read_disk(&self.key, &version).await else { return Ok(None) };
            validations.record(&self.key, documents, Some(&version), checked_at);
            return Ok(Some(known));
        };
        let version = known.as_ref().map(|(version, _)| version);
        if validations.is_current(&self.key, documents, version, horizon) {
            return Ok(Some(known));
        }
        let checked_at = Instant::now();
        if self.version().await?.as_ref() != version {
            return Ok(None);
        }
        validations.record(&self.key, documents, version, checked_at);
        Ok(Some(known))
    }

    /// The version of the chunk as it is now, built or not, with a size of 0; `None` if no stored chunk exists.
    ///
    /// # Errors
    /// [`ViewError::NotRevalidated`]; failures of the store.
    pub(super) async fn lookup(&self) -> Result<Option<ValueInfo>, ViewError> {
        if let Some(known) = self.current().await? {
            return Ok(Self::info(&known));
        }
        Ok(self.version().await?.map(|version| chunk_info(0, version)))
    }

    /// The encoded chunk; `None` if none of its stored chunks exists.
    ///
    /// # Errors
    /// [`ViewError::BeingBuilt`] until it was built; [`ViewError::NotRevalidated`]; why it cannot be built.
    pub(super) async fn get(self: &Arc<Self>) -> Result<EncodedChunk, ViewError> {
        if let Some(known) = self.current().await? {
            return Ok(known);
        }
        match self.maker.pyramids.builder.request(&self.key, Arc::clone(self).build_for_request()) {
            BuildRequest::Queued => Err(ViewError::BeingBuilt { path: self.key.path.clone() }),
            BuildRequest::Full => Err(ViewError::BuildsFull),
            BuildRequest::Failed(error) => Err(error.into()),
        }
    }

    /// The size and version of an encoded chunk.
    pub(super) fn info(chunk: &EncodedChunk) -> Option<ValueInfo> {
        chunk.as_ref().map(|(version, bytes)| chunk_info(bytes.len(), version.clone()))
    }

    /// The version; `None` if no stored chunk exists.
    async fn version(&self) -> Result<Option<Version>, ArrayError> {
        let reader = self.rechunker().reader();
        if let BuildMethod::Stored(derived) = &self.method {
            return derived.version_now(self.rechunker()).await;
        }
        let subset = self.rechunked.subset(&self.coords).ok_or(ArrayError::Geometry)?;
        let mut digest = VersionDigest::new(&self.key, self.image.source.located.versions());
        let context = reader.read_context(&self.key.mount);
        let mut versions = reader.versions(&self.image.array, &self.rechunked.source(&subset), &context);
        let mut is_stored = false;
        while let Some(version) = versions.try_next().await? {
            // Many versions may be in memory; let other tasks run.
            tokio::task::consume_budget().await;
            is_stored |= version.is_some();
            digest.add(version.as_ref());
        }
        Ok(is_stored.then(|| digest.finish()))
    }

    /// The chunk from a build, or from the cache if that is in time. It is then known to be current, so that the request
    /// for which it was built need not check it again where the store allows that.
    fn build_for_request(self: Arc<Self>) -> BoxFuture<'static, Result<EncodedChunk, ArrayError>> {
        Box::pin(async move {
            let began = Instant::now();
            let built = Arc::clone(&self).cached_or_built().await?;
            let version = built.as_ref().map(|(version, _)| version);
            self.rechunker().validations().record(&self.key, &self.image.source.located, version, began);
            Ok(built)
        })
    }

    /// The chunk from the cache or from a build.
    fn cached_or_built(self: Arc<Self>) -> BoxFuture<'static, Result<EncodedChunk, ArrayError>> {
        Box::pin(async move {
            let shared = self.rechunker().clone();
            if let BuildMethod::Stored(derived) = &self.method {
                let built = derived.get_or_encode(&shared).await.map_err(array_error)?;
                return Ok(built.map(|(bytes, info)| (info.version, bytes)));
            }
            let lookup = || -> BoxFuture<'_, _> { Box::pin(self.version()) };
            let chunk = Arc::clone(&self);
            let build = Box::pin(async move {
                let encoded = chunk.rechunker().encoded();
                encoded.from_disk_or_encode(&chunk.key, chunk.version(), chunk.build()).await
            });
            shared.encoded().get(&self.key, lookup, build).await
        })
    }

    /// Builds the chunk, while its sources stay the same.
    async fn build(&self) -> Result<EncodedChunk, ArrayError> {
        for _ in 0..MAX_ATTEMPTS {
            let Some(before) = self.version().await? else { return Ok(None) };
            let shape = self.rechunked.subset(&self.coords).ok_or(ArrayError::Geometry)?.shape();
            let elements = self.reduced().await?;
            let rechunked = Arc::clone(&self.rechunked);
            let encoded = self.rechunker().cpu().run(move || rechunked.encode(elements, &shape)).await?;
            let encoded = encoded.map_err(|source| ArrayError::ChunkCodecs {
                path: self.key.path.clone(),
                coords: self.coords.clone(),
                shape: self.rechunked.chunk_shape.clone(),
                source,
            })?;
            if self.version().await?.as_ref() == Some(&before) {
                return Ok(Some((before, shrink_to_fit(encoded))));
            }
        }
        Err(self.changed())
    }

    /// The failure of a build whose sources changed at each attempt.
    fn changed(&self) -> ArrayError {
        match self.key.path.prefix().key("zarr.json") {
            Ok(key) => ArrayError::Store { key, source: StoreError::VersionChanged },
            Err(_) => ArrayError::Geometry,
        }
    }

    /// The elements of the part of the chunk inside the array.
    async fn reduced(&self) -> Result<Elements, ArrayError> {
        let BuildMethod::Cascade(finer) = &self.method else { return Err(ArrayError::Geometry) };
        let subset = self.rechunked.subset(&self.coords).ok_or(ArrayError::Geometry)?;
        if finer.is_aligned { finer.by_chunks(&subset).await } else { finer.at_once(&subset).await }
    }
}

/// The failure of an array that is behind one of a view.
fn array_error(error: ViewError) -> ArrayError {
    match error {
        ViewError::Array(error) => error,
        _ => ArrayError::Geometry,
    }
}

impl FinerLevel {
    fn new(maker: &LevelChunks, image: &Arc<Image>, level: usize) -> Result<Self, ViewError> {
        let maker = maker.with_stored_types();
        let rechunked = level_array(image, level)?.rechunked(&maker.pyramids, &maker.spec.recipe)?;
        let factors = image.levels.steps.get(level).cloned().unwrap_or_default();
        let is_aligned = is_aligned(&rechunked, &factors);
        let step = image.reduction(vec![factors])?;
        Ok(Self { maker, image: Arc::clone(image), level, rechunked, step, is_aligned })
    }

    fn rechunker(&self) -> &Rechunker {
        &self.maker.pyramids.rechunker
    }

    fn item_bytes(&self) -> usize {
        self.image.array.metadata().data_type.element_bytes()
    }

    /// The factors from this level to the next, one for each dimension.
    fn factors(&self) -> Vec<u64> {
        self.step.factors(self.rechunked.grid().len())
    }

    /// A box of the next level, reduced chunk by chunk: no window goes across chunks of this one.
    async fn by_chunks(&self, subset: &Subset) -> Result<Elements, ArrayError> {
        let next = self.image.levels.shapes.get(self.level + 1).ok_or(ArrayError::Geometry)?;
        // What each chunk of this level is reduced to is a chunk of a grid over the next one.
        let pieces: Vec<ChunkAxis> = self
            .rechunked
            .grid()
            .iter()
            .zip(self.factors())
            .zip(next)
            .map(|((axis, factor), &length)| {
                ChunkAxis::new(length, axis.edge().unwrap_or(1).div_ceil(factor))
            })
            .collect();
        let mut whole = zeros(subset.elements(), self.item_bytes())?;
        for (coords, window) in CopyRegion::packed(subset.axes(), self.item_bytes()).split_by_chunks(&pieces)
        {
            let (part, shape) = self.part(&coords).await?;
            let step = Arc::clone(&self.step);
            let factors = self.factors();
            let reduced: Vec<u64> =
                shape.iter().zip(&factors).map(|(length, &factor)| length.div_ceil(factor)).collect();
            let lengths = lengths(&shape)?;
            let work = move || {
                let elements = Elements::fixed(step.apply(part.items(), &lengths).into());
                whole.copy_from(&elements, &reduced, &window).map(|()| whole)
            };
            whole = self.rechunker().cpu().run(work).await?.map_err(|_misfit| ArrayError::Geometry)?;
        }
        Ok(whole.freeze())
    }

    /// A box of the next level, reduced from the box of this one.
    async fn at_once(&self, subset: &Subset) -> Result<Elements, ArrayError> {
        let axes = subset.axes().iter().zip(self.factors()).zip(self.rechunked.grid());
        let axes = axes.map(|((range, factor), axis)| {
            let start = range.start.saturating_mul(factor).min(axis.length());
            let count = range.count.saturating_mul(factor).min(axis.length() - start);
            AxisRange { start, count, step: 1, keep: true }
        });
        let source = Subset(axes.collect());
        let mut whole = zeros(source.elements(), self.item_bytes())?;
        let grid = self.rechunked.grid();
        for (coords, window) in CopyRegion::packed(source.axes(), self.item_bytes()).split_by_chunks(grid) {
            let (part, shape) = self.part(&coords).await?;
            whole.copy_from(&part, &shape, &window).map_err(|_misfit| ArrayError::Geometry)?;
        }
        let (step, lengths) = (Arc::clone(&self.step), lengths(&source.shape())?);
        let whole = whole.freeze();
        let work = move || Elements::fixed(step.apply(whole.items(), &lengths).into());
        Ok(self.rechunker().cpu().run(work).await?)
    }

    /// The elements of a chunk of this level that are inside the array, and their shape.
    async fn part(&self, coords: &[u64]) -> Result<(Elements, Vec<u64>), ArrayError> {
        let shape = self.rechunked.subset(coords).ok_or(ArrayError::Geometry)?.shape();
        let array = level_array(&self.image, self.level)?;
        let entry = self.maker.chunk(array, coords.to_vec()).map_err(array_error)?;
        let shared = self.rechunker();
        let encoded = match entry {
            LevelChunk::Derived(chunk) => {
                let made = chunk.get_or_encode(shared).await.map_err(array_error)?;
                made.map(|(bytes, _)| bytes)
            }
            LevelChunk::Built(chunk) => chunk.cached_or_built().await?.map(|(_, bytes)| bytes),
            LevelChunk::Absent => return Err(ArrayError::Geometry),
        };
        let item = self.item_bytes();
        let Some(encoded) = encoded else {
            let fill_value = &self.image.array.metadata().fill_value;
            let filled = zeros(product(&shape), item)?.filled_with(fill_value.as_bytes());
            return Ok((filled.map_err(|_misfit| ArrayError::Geometry)?.freeze(), shape));
        };
        let (edges, part) = (self.rechunked.chunk_shape.clone(), shape.clone());
        let chunk = self.rechunked.decoded(&encoded, shared.cpu()).await?;
        if edges == part {
            return Ok((chunk, shape));
        }
        let cut = move || {
            let ranges: Vec<AxisRange> = part.iter().map(|&length| AxisRange::full(length)).collect();
            let one: Vec<ChunkAxis> = edges.iter().map(|&edge| ChunkAxis::new(edge, edge)).collect();
            let mut inside = zeros(product(&part), item)?;
            if let Some((_, window)) = CopyRegion::packed(&ranges, item).split_by_chunks(&one).next() {
                inside.copy_from(&chunk, &edges, &window).map_err(|_misfit| ArrayError::Geometry)?;
            }
            Ok::<_, ArrayError>(inside.freeze())
        };
        Ok((shared.cpu().run(cut).await??, shape))
    }
}

fn product(shape: &[u64]) -> u128 {
    shape.iter().fold(1, |product: u128, &length| product.saturating_mul(length.into()))
}

fn lengths(shape: &[u64]) -> Result<Vec<usize>, ArrayError> {
    let lengths = shape.iter().map(|&length| usize::try_from(length));
    lengths.collect::<Result<_, _>>().map_err(|_too_long| ArrayError::Geometry)
}

/// A buffer for this number of elements of a fixed size.
fn zeros(elements: u128, item_bytes: usize) -> Result<ElementsMut, ArrayError> {
    let bytes = usize::try_from(elements.saturating_mul(item_bytes as u128))
        .map_err(|_too_many| ArrayError::Geometry)?;
    let mut items = Vec::new();
    items.try_reserve_exact(bytes).map_err(|_no_memory| ArrayError::Geometry)?;
    items.resize(bytes, 0);
    Ok(ElementsMut::fixed(items, item_bytes))
}
