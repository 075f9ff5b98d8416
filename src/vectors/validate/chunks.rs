//! Level 3, one chunk: its vertices, its fragments and its attributes.

use crate::metadata::DataType;
use crate::vectors::chunk::ChunkVertices;
use crate::vectors::json::{integers, string};
use crate::vectors::level::ResolutionLevel;
use crate::vectors::payload::{Fragment, FragmentIndex, Positions, decode_integers, number_type};
use crate::vectors::{CellArray, Profile, VectorError, VertexAttribute};

/// How far a vertex may lie outside its chunk, as a fraction of the chunk's edge.
const CHUNK_TOLERANCE: f64 = 1e-6;
/// How far a vertex may lie outside its bin, as a fraction of the bin's edge.
const BIN_TOLERANCE: f64 = 1e-4;

/// What the checks of each chunk of a level need.
pub(super) struct CheckInputs {
    pub(super) level: ResolutionLevel,
    pub(super) attributes: Vec<VertexAttribute>,
    /// The attributes of fragments.
    pub(super) fragment_attributes: Vec<CellArray>,
    pub(super) has_objects: bool,
}

/// What the checks found out about a chunk.
#[derive(Debug, Default)]
pub(super) struct ChunkFacts {
    /// The number of rows.
    pub(super) rows: u64,
    /// The number of rows that are vertices.
    pub(super) vertex_rows: u64,
    pub(super) fragments: u64,
    pub(super) findings: Vec<Finding>,
}

/// A problem of a chunk.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) id: &'static str,
    pub(super) is_error: bool,
    /// The path of the array.
    pub(super) path: String,
    pub(super) message: String,
}

impl ChunkFacts {
    fn add(&mut self, id: &'static str, is_error: bool, path: &str, message: impl Into<String>) {
        self.findings.push(Finding { id, is_error, path: path.to_owned(), message: message.into() });
    }
}

/// Checks a chunk.
pub(super) async fn check_chunk(inputs: &CheckInputs, coord: &[i64]) -> Result<ChunkFacts, VectorError> {
    let level = &inputs.level;
    let context = &level.store.context;
    let mut facts = ChunkFacts::default();
    let positions = match level.vertices.payload(context, coord).await {
        Ok(Some(payload)) => Positions::new(payload, &level.coordinate_type, level.dims),
        Ok(None) => return Ok(facts),
        Err(error) => return payload_finding(facts, "chunk_decodes", level.vertices.path.as_str(), error),
    };
    let positions = match positions {
        Ok(positions) => positions,
        Err(reason) => {
            facts.add("chunk_decodes", true, level.vertices.path.as_str(), reason.to_string());
            return Ok(facts);
        }
    };
    if level.store.root.profile == Profile::Doc {
        check_group_offsets(inputs, coord, &positions, &mut facts).await?;
    } else if let Some(fragments) = &level.fragments {
        check_fragment_index(fragments, inputs, coord, &positions, &mut facts).await?;
    }
    // Without the index if that is invalid.
    let with_fragments =
        !facts.findings.iter().any(|finding| matches!(finding.id, "fragment_index" | "vgo_arithmetic"));
    let chunk = match ChunkVertices::read(level, coord, with_fragments).await {
        Ok(Some(chunk)) => chunk,
        Ok(None) => return Ok(facts),
        Err(error) if error.is_corrupt_chunk() => {
            ChunkVertices { coord: coord.to_vec(), positions, fragments: None, is_count_known: true }
        }
        Err(error) => return Err(error),
    };
    facts.rows = chunk.positions.rows() as u64;
    let (work, shared) = (chunk.clone(), inputs.level.clone());
    let has_objects = inputs.has_objects;
    let found = context.cpu.run(move || check_positions(&shared, &work, has_objects)).await?;
    facts.vertex_rows = found.vertex_rows;
    facts.fragments = chunk.fragments.as_ref().map_or(0, |fragments| fragments.len() as u64);
    facts.findings.extend(found.findings);
    for attribute in &inputs.attributes {
        let Some(cells) = attribute.cells() else { continue };
        match attribute.values(level, &chunk).await {
            Ok(_) => {}
            Err(VectorError::Corrupt { reason, .. }) => {
                // A payload that cannot be decoded is a different finding from one with the wrong number of rows.
                let id = match cells.payload(context, coord).await {
                    Ok(_) => "attr_aligned",
                    Err(_) => "chunk_decodes",
                };
                facts.add(id, true, cells.path.as_str(), reason);
            }
            Err(error) => return Err(error),
        }
    }
    for cells in &inputs.fragment_attributes {
        check_fragment_attributes(level, cells, coord, &mut facts).await?;
    }
    Ok(facts)
}

/// Records a payload that cannot be read as a finding; a backend error is returned.
fn payload_finding(
    mut facts: ChunkFacts,
    id: &'static str,
    path: &str,
    error: VectorError,
) -> Result<ChunkFacts, VectorError> {
    if !error.is_corrupt_chunk() {
        return Err(error);
    }
    facts.add(id, true, path, error.to_string());
    Ok(facts)
}

/// Checks the fragment index of a chunk.
async fn check_fragment_index(
    fragments: &CellArray,
    inputs: &CheckInputs,
    coord: &[i64],
    positions: &Positions,
    facts: &mut ChunkFacts,
) -> Result<(), VectorError> {
    let at = fragments.path.as_str();
    match fragments.payload(&inputs.level.store.context, coord).await {
        Ok(Some(payload)) => match FragmentIndex::decode(&payload, positions.rows() as u64) {
            Ok(index) if inputs.level.declares_tiling() && !index.is_tiling() => {
                let message = "its fragments do not cover the chunk, as the level declares";
                facts.add("fragments_tile_claim", true, at, message);
            }
            Ok(_) => {}
            Err(reason) => facts.add("fragment_index", true, at, reason.to_string()),
        },
        Ok(None) => facts.add("fragment_index", true, at, "it has no fragment index"),
        Err(error) if error.is_corrupt_chunk() => facts.add("chunk_decodes", true, at, error.to_string()),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Checks the group offsets of a chunk: groups are consecutive, without gaps and within the chunk, and each vertex is
/// in the bin of its group.
async fn check_group_offsets(
    inputs: &CheckInputs,
    coord: &[i64],
    positions: &Positions,
    facts: &mut ChunkFacts,
) -> Result<(), VectorError> {
    let level = &inputs.level;
    let Some(cells) = &level.fragments else { return Ok(()) };
    let at = cells.path.as_str();
    let payload = match cells.payload(&level.store.context, coord).await {
        Ok(payload) => payload,
        Err(error) if error.is_corrupt_chunk() => {
            facts.add("chunk_decodes", true, at, error.to_string());
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let Some(payload) = payload else {
        facts.add("vgo_arithmetic", true, at, "it has no group offsets");
        return Ok(());
    };
    let kind = cells.array().map_or(DataType::Int64, |array| array.metadata().data_type.clone());
    let mut groups = Vec::new();
    for (bin, pair) in decode_integers(&payload, &kind).chunks_exact(2).enumerate() {
        let &[start, count] = pair else { continue };
        if count > 0 {
            groups.push((start, count, bin));
        } else if count < -1 {
            facts.add("vgo_arithmetic", true, at, format!("group {bin} has {count} rows"));
        }
    }
    groups.sort_unstable();
    let mut next = 0_i64;
    for &(start, count, bin) in &groups {
        if start != next {
            let what = if start < next { "overlaps the one before" } else { "leaves a gap" };
            facts.add("vgo_arithmetic", true, at, format!("group {bin}, from row {start}, {what}"));
        }
        next = start.saturating_add(count);
        if usize::try_from(next).map_or(true, |end| end > positions.rows()) {
            facts.add(
                "vgo_arithmetic",
                true,
                at,
                format!("group {bin} ends at row {next} of {}", positions.rows()),
            );
            return Ok(());
        }
        let (Ok(first), Ok(last)) = (usize::try_from(start), usize::try_from(next)) else { continue };
        if let Some(row) = (first..last).find(|&row| !is_in_bin(level, coord, positions, row, bin)) {
            facts.add("vgo_arithmetic", true, at, format!("row {row} of group {bin} is not in that bin"));
        }
    }
    Ok(())
}

/// Checks that the vertices of a chunk lie in the chunk and in their bins.
fn check_positions(level: &ResolutionLevel, chunk: &ChunkVertices, has_objects: bool) -> ChunkFacts {
    let mut facts = ChunkFacts::default();
    let at = level.vertices.path.as_str();
    let strategy = string(level.store.root.store_metadata(), "cross_chunk_strategy");
    let is_shared = matches!(strategy, Some("boundary_deduplication" | "both"));
    let (low, high) = level.chunk_bounds(&chunk.coord);
    let vertex_rows = chunk.vertex_rows();
    facts.vertex_rows = vertex_rows.len() as u64;
    let (mut outside, mut infinite) = (None, None);
    for &row in &vertex_rows {
        let mut is_outside = false;
        for ((at, edge), (low, high)) in
            chunk.positions.coordinates(row as usize).zip(&level.shapes.chunk).zip(low.iter().zip(&high))
        {
            if !at.is_finite() {
                infinite.get_or_insert(row);
            } else if at < low - CHUNK_TOLERANCE * edge || at > high + CHUNK_TOLERANCE * edge {
                is_outside = true;
            }
        }
        if is_outside {
            outside.get_or_insert(row);
        }
    }
    if let Some(row) = outside {
        let place: Vec<f64> = chunk.positions.coordinates(row as usize).collect();
        facts.add("vertex_in_chunk", !is_shared, at, format!("row {row}, at {place:?}, is outside"));
    }
    if let Some(row) = infinite {
        facts.add("finite", false, at, format!("row {row} has a position that is not finite"));
    }
    if let Some(fragments) =
        chunk.fragments.as_ref().filter(|fragments| is_binned(level, fragments, has_objects))
    {
        for (bin, fragment) in fragments.iter().enumerate() {
            let Fragment::Range { start, count } = fragment else { continue };
            let rows = usize::try_from(start).unwrap_or(usize::MAX)
                ..usize::try_from(start + count).unwrap_or(usize::MAX);
            if let Some(row) =
                rows.into_iter().find(|&row| !is_in_bin(level, &chunk.coord, &chunk.positions, row, bin))
            {
                facts.add(
                    "bins_in_order",
                    false,
                    at,
                    format!("row {row} of the fragment of bin {bin} is not in that bin"),
                );
                break;
            }
        }
    }
    facts
}

/// Whether the fragments of a chunk are its bins.
fn is_binned(level: &ResolutionLevel, fragments: &FragmentIndex, has_objects: bool) -> bool {
    let bins = level.shapes.bins_per_chunk.as_ref();
    let bins =
        bins.and_then(|bins| bins.iter().try_fold(1_u64, |all, &bins| all.checked_mul(bins.unsigned_abs())));
    let is_points = level.store.root.geometry_types() == ["point_cloud"];
    level.store.root.profile != Profile::Doc
        && is_points
        && !has_objects
        && !level.shares_fragments()
        && fragments.is_tiling()
        && bins == Some(fragments.len() as u64)
}

/// Whether a row is in the bin with this number.
fn is_in_bin(level: &ResolutionLevel, coord: &[i64], positions: &Positions, row: usize, bin: usize) -> bool {
    let Some(bins) = &level.shapes.bins_per_chunk else { return true };
    let (low, _) = level.chunk_bounds(coord);
    let mut rest = bin as u64;
    let mut places = vec![0_u64; bins.len()];
    for (place, &bins) in places.iter_mut().zip(bins).rev() {
        *place = rest % bins.unsigned_abs().max(1);
        rest /= bins.unsigned_abs().max(1);
    }
    let axes = positions.coordinates(row).zip(&low).zip(&level.shapes.bin).zip(&places);
    axes.into_iter().all(|(((at, low), edge), &place)| {
        #[expect(clippy::cast_precision_loss, reason = "a bin of a chunk")]
        let start = low + place as f64 * edge;
        !at.is_finite() || (at >= start - BIN_TOLERANCE * edge && at <= start + edge + BIN_TOLERANCE * edge)
    })
}

/// Checks that an attribute of fragments has a row for each fragment.
async fn check_fragment_attributes(
    level: &ResolutionLevel,
    cells: &CellArray,
    coord: &[i64],
    facts: &mut ChunkFacts,
) -> Result<(), VectorError> {
    let at = cells.path.as_str();
    let payload = match cells.payload(&level.store.context, coord).await {
        Ok(payload) => payload.unwrap_or_default(),
        Err(error) if error.is_corrupt_chunk() => {
            facts.add("chunk_decodes", true, at, error.to_string());
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let Some(kind) = string(&cells.attributes, "dtype").and_then(number_type) else { return Ok(()) };
    let width = integers(cells.attributes.get("row_shape")).map_or(1, |row| row.iter().product::<i64>());
    let row = kind.element_bytes() as u64 * width.unsigned_abs().max(1);
    let expected = facts.fragments.saturating_mul(row);
    if payload.len() as u64 != expected {
        let message = format!("{} bytes are not {} rows of {row} bytes", payload.len(), facts.fragments);
        facts.add("attr_aligned", true, at, message);
    }
    Ok(())
}
