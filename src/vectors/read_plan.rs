//! [`ReadPlan`]: which fragments of which chunks a query reads, by box, by chunk or by matching objects.
//!
//! Objects are searched on the compute pool, as there may be millions. A fragment that several objects share is read
//! once and is attributed to the smallest of their ids.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures::stream::{self, StreamExt};

use super::chunk::ChunkVertices;
use super::level::ResolutionLevel;
use super::objects::{ObjectIndex, VectorObject};
use super::payload::{Fragment, FragmentIndex};
use super::query::{QueryMode, VertexQuery};
use super::select::{FragmentOwners, RowSelection, is_in_any_box};
use super::touched::TouchedChunks;
use super::{Bbox, Coord, VectorError};

/// The number of chunks read concurrently.
const CONCURRENCY: usize = 8;

/// An object that matches, with the runs of its manifest that are in touched chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedObject {
    /// The id of the object.
    pub id: i64,
    /// The first manifest entry and the number of entries of each run.
    pub parts: Vec<(usize, usize)>,
}

/// A chunk that was skipped because it cannot be read.
#[derive(Clone, Debug)]
pub struct ChunkFailure {
    /// The chunk.
    pub chunk: Coord,
    /// The reason.
    pub error: VectorError,
}

/// What is read of one chunk.
pub(crate) struct ChunkRead {
    pub(crate) chunk: Coord,
    pub(crate) selection: RowSelection,
    pub(crate) owners: Option<Arc<FragmentOwners>>,
}

/// What a query reads.
pub(crate) struct ReadPlan {
    pub(crate) reads: Vec<ChunkRead>,
    /// The objects that match, in modes that select objects.
    pub(crate) objects: Option<Vec<MatchedObject>>,
    /// Chunks that could not be examined.
    pub(crate) failures: Vec<ChunkFailure>,
}

/// The fragments of each chunk that have a vertex in a box.
type FragmentsInBoxes = HashMap<Coord, BTreeSet<u32>>;

/// Plans the reads of a query in the chunks that it touches.
pub(crate) async fn plan_reads(
    query: &VertexQuery,
    level: &ResolutionLevel,
    touched: &TouchedChunks,
) -> Result<ReadPlan, VectorError> {
    let is_by_object = !matches!(query.mode, QueryMode::Vertices | QueryMode::Chunks);
    let index = if is_by_object || query.columns.object_id { ObjectIndex::open(level).await? } else { None };
    let objects = match &index {
        Some(index) => index.read_all().await?,
        None => Vec::new(),
    };
    let (chunks, cpu) = (touched.chunks.clone(), &level.store.context.cpu);
    if !is_by_object {
        let selection = match query.mode {
            QueryMode::Chunks => RowSelection::All,
            _ => RowSelection::Boxes(query.boxes.as_slice().into()),
        };
        let by_chunk = move || {
            let mut owners = fragment_owners(&objects);
            let read = |chunk: Coord| {
                let owners = owners.remove(&chunk).map(Arc::new);
                ChunkRead { chunk, selection: selection.clone(), owners }
            };
            chunks.into_iter().map(read).collect()
        };
        return Ok(ReadPlan { reads: cpu.run(by_chunk).await?, objects: None, failures: Vec::new() });
    }
    let (exact, failures) = match query.mode {
        QueryMode::ObjectsExact => {
            let (inside, failures) = fragments_in_boxes(query, level, touched).await?;
            (Some(inside), failures)
        }
        _ => (None, Vec::new()),
    };
    let is_cropped = query.mode == QueryMode::Crop;
    let (reads, matches) =
        cpu.run(move || plan_by_object(&objects, &chunks, exact.as_ref(), is_cropped)).await?;
    Ok(ReadPlan { reads, objects: Some(matches), failures })
}

/// The objects that match, and the fragments to read: all of their fragments, or, if cropped, those in touched chunks.
fn plan_by_object(
    objects: &[VectorObject],
    chunks: &[Coord],
    exact: Option<&FragmentsInBoxes>,
    is_cropped: bool,
) -> (Vec<ChunkRead>, Vec<MatchedObject>) {
    let touched: BTreeSet<&[i64]> = chunks.iter().map(Vec::as_slice).collect();
    let mut fragments_by_chunk: BTreeMap<&[i64], BTreeSet<u32>> = BTreeMap::new();
    let mut matches = Vec::new();
    for object in objects {
        let parts = parts_in_chunks(object, &touched);
        let is_match = match exact {
            None => !parts.is_empty(),
            Some(exact) => object.manifest.fragments().any(|(chunk, fragment)| {
                exact.get(chunk).is_some_and(|fragments| fragments.contains(&fragment))
            }),
        };
        if !is_match {
            continue;
        }
        for (chunk, fragment) in object.manifest.fragments() {
            if !is_cropped || touched.contains(chunk) {
                fragments_by_chunk.entry(chunk).or_default().insert(fragment);
            }
        }
        matches.push(MatchedObject { id: object.id, parts });
    }
    let mut owners = fragment_owners(objects);
    let reads = fragments_by_chunk.into_iter().map(|(chunk, fragments)| ChunkRead {
        chunk: chunk.to_vec(),
        selection: RowSelection::Fragments(fragments.into_iter().collect()),
        owners: owners.remove(chunk).map(Arc::new),
    });
    (reads.collect(), matches)
}

/// The parts of an object in these chunks: runs of consecutive manifest entries.
fn parts_in_chunks(object: &VectorObject, touched: &BTreeSet<&[i64]>) -> Vec<(usize, usize)> {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for (entry, (chunk, _)) in object.manifest.fragments().enumerate() {
        if !touched.contains(chunk) {
            continue;
        }
        match parts.last_mut() {
            Some((start, count)) if *start + *count == entry => *count += 1,
            _ => parts.push((entry, 1)),
        }
    }
    parts
}

/// The object that each fragment of each chunk belongs to.
fn fragment_owners(objects: &[VectorObject]) -> HashMap<Coord, FragmentOwners> {
    let mut owners: HashMap<Coord, FragmentOwners> = HashMap::new();
    for object in objects {
        for span in &object.manifest.spans {
            let of_chunk = owners.entry(span.chunk.clone()).or_default();
            for fragment in span.fragments.iter() {
                of_chunk.entry(fragment).and_modify(|id| *id = object.id.min(*id)).or_insert(object.id);
            }
        }
    }
    owners
}

/// The fragments that have a vertex in a box, and the chunks that cannot be read.
async fn fragments_in_boxes(
    query: &VertexQuery,
    level: &ResolutionLevel,
    touched: &TouchedChunks,
) -> Result<(FragmentsInBoxes, Vec<ChunkFailure>), VectorError> {
    let boxes: Arc<[Bbox]> = query.boxes.as_slice().into();
    let mut reading = stream::iter(touched.chunks.clone())
        .map(|chunk| {
            let (level, boxes) = (level.clone(), Arc::clone(&boxes));
            async move {
                let found = read_fragments_in_boxes(&level, &chunk, boxes).await;
                (chunk, found)
            }
        })
        .buffered(CONCURRENCY);
    let (mut inside, mut failures) = (FragmentsInBoxes::new(), Vec::new());
    while let Some((chunk, found)) = reading.next().await {
        match found {
            Ok(found) => drop(inside.insert(chunk, found)),
            Err(error) if error.is_corrupt_chunk() && query.skips_corrupt => {
                failures.push(ChunkFailure { chunk, error });
            }
            Err(error) => return Err(error),
        }
    }
    Ok((inside, failures))
}

async fn read_fragments_in_boxes(
    level: &ResolutionLevel,
    chunk: &[i64],
    boxes: Arc<[Bbox]>,
) -> Result<BTreeSet<u32>, VectorError> {
    match ChunkVertices::read(level, chunk, true).await? {
        Some(chunk) => {
            Ok(level.store.context.cpu.run(move || fragments_with_rows_in(&chunk, &boxes)).await?)
        }
        None => Ok(BTreeSet::new()),
    }
}

/// The fragments of a chunk that have a vertex in a box.
fn fragments_with_rows_in(chunk: &ChunkVertices, boxes: &[Bbox]) -> BTreeSet<u32> {
    let fragments = (0_u32..).zip(chunk.fragments.iter().flat_map(FragmentIndex::iter));
    let is_touched = |(_, fragment): &(u32, Fragment<'_>)| {
        fragment.rows().any(|row| u32::try_from(row).is_ok_and(|row| is_in_any_box(chunk, row, boxes)))
    };
    fragments.filter(is_touched).map(|(number, _)| number).collect()
}
