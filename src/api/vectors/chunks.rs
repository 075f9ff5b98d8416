//! The chunks that boxes touch, and single chunks.

use futures::StreamExt;
use serde_json::{Map, Value, json};
use utoipa::IntoParams;

use super::filter;
use super::json::{amplification_json, bounds_json, saturating_u64};
use super::params::{BoxParams, LevelParam, LevelPath, VectorParams};
use crate::api::query_params::{KnownParams, QueryParams};
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::vectors::payload::Fragment;
use crate::vectors::{
    CellArray, CellKey, ChunkVertices, Coord, ObjectIndex, ResolutionLevel, TouchedChunks, TouchedRanges,
    VectorError, VertexAttribute, format_coord, parse_coord,
};

/// The chunks of a level.
pub(crate) const CHUNKS: RouteSpec =
    RouteSpec::new("/v1/vectors/{mount}/{path}/levels/{level}/chunks", Resource::Vectors)
        .admitted_by(AdmittedBy::Handler)
        .post_reads();

/// One chunk of a level.
pub(crate) const CHUNK: RouteSpec =
    RouteSpec::new("/v1/vectors/{mount}/{path}/levels/{level}/chunks/{chunk}", Resource::Vectors)
        .admitted_by(AdmittedBy::Handler)
        .post_reads();

/// The default number of chunks on a page.
const PAGE: u64 = 1000;
/// The largest number of chunks on a page.
const MAX_PAGE: u64 = 10_000;
/// The largest number of touched chunks when empty ones are listed.
const MAX_CANDIDATES: u64 = 1 << 18;
/// The number of chunks described concurrently.
const CONCURRENCY: usize = 16;
/// The largest number of fragments listed for a chunk.
const MAX_FRAGMENTS: usize = 10_000;
/// The largest number of objects listed for a chunk.
const MAX_OBJECTS: usize = 10_000;

/// The query parameters of chunks.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `VectorParams` holds it")]
pub(crate) struct ChunksParams {
    /// Some of `keys` (the default), `sizes`, `empty`
    include: Option<String>,
    /// Compare the chunks that the store declares with those that are stored
    verify: Option<bool>,
    /// Chunks on a page: 1000 by default, and no more than 10,000 whatever is asked for
    limit: Option<u64>,
    /// The `cursor` of the previous page
    cursor: Option<String>,
}

impl QueryParams for ChunksParams {}

/// The chunks that a box touches, and the read amplification. No vertices are read.
#[utoipa::path(
    method(get, head),
    path = CHUNKS.template,
    tag = "vectors",
    operation_id = "get_vectors_chunks",
    params(
        LevelPath,
        BoxParams,
        ChunksParams,
    ),
    responses(
        (status = 200, description = "The chunks", content_type = "application/json"),
        (status = 400, description = "The box is invalid (`bbox_rank`, `bbox_nan`, `bbox_inverted`), or a parameter is (`bad_param`)"),
        (status = 404, description = "No such store or level"),
    )
)]
pub(crate) async fn list_chunks(
    level: &ResolutionLevel,
    params: &VectorParams,
) -> Result<Value, VectorError> {
    params.check(&KnownParams::default().and::<BoxParams>().and::<ChunksParams>())?;
    let (boxes, chunk_filter) = (filter::parse_boxes(level, params)?, filter::parse_chunk_filter(params)?);
    let includes = Includes::from_params(params)?;
    let touched = TouchedChunks::find(level, &boxes, chunk_filter.as_ref()).await?;
    let page =
        usize::try_from(params.number("limit")?.unwrap_or(PAGE).clamp(1, MAX_PAGE)).unwrap_or(usize::MAX);
    let cursor = params.get("cursor").map(|text| {
        parse_coord(text)
            .ok_or_else(|| VectorError::bad_param("cursor", "the `cursor` of a previous response"))
    });
    let cursor = cursor.transpose()?;
    if includes.empty && touched.candidates > MAX_CANDIDATES.into() {
        let estimate = saturating_u64(touched.candidates);
        return Err(VectorError::TooMany {
            what: "chunks, including empty ones",
            estimate,
            limit: MAX_CANDIDATES,
        });
    }
    let listed = if includes.empty {
        with_empty_chunks(level, &touched, page, cursor.as_ref())
    } else {
        touched.chunks.clone()
    };
    let mut due = listed.into_iter().filter(|coord| cursor.as_ref().is_none_or(|cursor| coord > cursor));
    let shown: Vec<Coord> = due.by_ref().take(page).collect();
    let next = due.next().and(shown.last()).map(|coord| format_coord(coord));
    let arrays = cell_arrays(level).await?;
    let (arrays, touched_ref) = (&arrays, &touched);
    let mut documents = futures::stream::iter(shown)
        .map(|coord| async move { chunk_document(level, coord, touched_ref, arrays, includes).await })
        .buffered(CONCURRENCY);
    let mut chunks = Vec::new();
    while let Some(chunk) = documents.next().await {
        chunks.push(chunk?);
    }
    let mut document = Map::new();
    let mut put = |name: &str, value: Value| document.insert(name.to_owned(), value);
    put("level", json!(level.name.index));
    put("chunk_shape", json!(level.shapes.chunk));
    put("bin_shape", json!(level.shapes.bin));
    if let Some(bbox) = boxes.first() {
        put("interval", json!(bbox.interval.as_str()));
        // JSON has no infinite numbers.
        put("bbox", json!({ "min": json_numbers(&bbox.low), "max": json_numbers(&bbox.high) }));
    }
    put("candidates", json!(saturating_u64(touched.candidates)));
    put("occupied", json!(touched.chunks.len()));
    put("bins", json!(saturating_u64(touched.bins)));
    put("chunks", Value::Array(chunks));
    put("amplification", amplification_json(&touched.amplification));
    if params.is_on("verify") {
        put("verify", compare_declared_and_stored(level).await?);
    }
    put("cursor", json!(next));
    Ok(Value::Object(document))
}

fn json_numbers(numbers: &[f64]) -> Vec<Value> {
    let text = |number: f64| if number > 0.0 { "inf" } else { "-inf" };
    numbers
        .iter()
        .map(|&number| if number.is_finite() { json!(number) } else { json!(text(number)) })
        .collect()
}

/// The members of each chunk's document.
#[derive(Clone, Copy)]
struct Includes {
    keys: bool,
    sizes: bool,
    empty: bool,
}

impl Includes {
    fn from_params(params: &VectorParams) -> Result<Self, VectorError> {
        let mut includes = Self { keys: params.get("include").is_none(), sizes: false, empty: false };
        for name in params.list("include") {
            match name.as_str() {
                "keys" => includes.keys = true,
                "sizes" => includes.sizes = true,
                "empty" => includes.empty = true,
                _ => return Err(VectorError::bad_param("include", "some of `keys,sizes,empty`")),
            }
        }
        // Keys cost nothing extra where sizes or empty chunks are listed.
        includes.keys |= includes.sizes || includes.empty;
        Ok(includes)
    }
}

/// The touched chunks including empty ones, at least as many as a page may need.
fn with_empty_chunks(
    level: &ResolutionLevel,
    touched: &TouchedChunks,
    page: usize,
    cursor: Option<&Coord>,
) -> Vec<Coord> {
    let mut all: Vec<Coord> = touched.chunks.clone();
    let lead = level
        .vertices
        .grid()
        .and_then(|grid| grid.first().copied())
        .filter(|_| level.leading_axes() > 0)
        .unwrap_or(1);
    for touch in &touched.touches {
        let Some(spans) = &touch.chunks else { continue };
        for first in 0..i64::try_from(lead).unwrap_or(1) {
            let start = if level.leading_axes() > 0 { vec![first] } else { Vec::new() };
            all.extend(
                coords_in_ranges(spans, start)
                    .filter(|coord| cursor.is_none_or(|cursor| coord > cursor))
                    .take(page + 1),
            );
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// The coordinates in a box of chunks, in order and computed lazily.
fn coords_in_ranges(spans: &[(i64, i64)], start: Coord) -> impl Iterator<Item = Coord> {
    let spans = spans.to_vec();
    let mut next: Option<Coord> = Some(spans.iter().map(|&(first, _)| first).collect());
    std::iter::from_fn(move || {
        let current = next.take()?;
        let mut following = current.clone();
        for (at, &(first, last)) in following.iter_mut().zip(&spans).rev() {
            if *at < last {
                *at += 1;
                next = Some(following);
                break;
            }
            *at = first;
        }
        Some([&start[..], &current[..]].concat())
    })
}

/// The arrays that have a cell for each chunk.
async fn cell_arrays(level: &ResolutionLevel) -> Result<Vec<(String, CellArray)>, VectorError> {
    let mut arrays = vec![("vertices".to_owned(), level.vertices.clone())];
    if let Some(fragments) = &level.fragments {
        arrays.push((fragments.path.name().to_owned(), fragments.clone()));
    }
    for name in VertexAttribute::names(level).await? {
        // An attribute that cannot be opened has no keys.
        if let Ok(attribute) = VertexAttribute::open(level, &name).await
            && let Some(cells) = attribute.cells()
        {
            let folder = cells.path.parent().map(|parent| parent.name().to_owned()).unwrap_or_default();
            arrays.push((format!("{folder}/{name}"), cells.clone()));
        }
    }
    Ok(arrays)
}

async fn chunk_document(
    level: &ResolutionLevel,
    coord: Coord,
    touched: &TouchedChunks,
    arrays: &[(String, CellArray)],
    includes: Includes,
) -> Result<Value, VectorError> {
    let is_occupied = touched.chunks.binary_search(&coord).is_ok();
    let mut chunk = chunk_position(level, &coord);
    let mut put = |name: &str, value: Value| chunk.insert(name.to_owned(), value);
    put("occupied", json!(is_occupied));
    put("relation", json!(if is_inside(level, &coord, &touched.touches) { "inside" } else { "partial" }));
    let context = &level.store.context;
    let (mut keys, mut sizes, mut shard) = (Map::new(), Map::new(), Value::Null);
    for (name, cells) in arrays {
        let found = if is_occupied {
            cells.stored_cell_key(context, &coord).await?
        } else {
            cells.cell_key(&coord)?
        };
        let Some(CellKey { key, shard: place }) = found else { continue };
        let below = key.as_str().strip_prefix(level.store.path.prefix().as_str()).unwrap_or(key.as_str());
        keys.insert(name.clone(), json!(below));
        if let (Some(place), true) = (place, shard.is_null()) {
            shard = json!({ "key": below, "inner": place.inner_coords });
        }
        if includes.sizes {
            sizes.insert(name.clone(), json!(cells.encoded_bytes(context, &coord).await?));
        }
    }
    if includes.keys {
        put("keys", Value::Object(keys));
        if !shard.is_null() {
            put("shard", shard);
        }
    }
    if includes.sizes {
        put("encoded_bytes", Value::Object(sizes));
    }
    Ok(Value::Object(chunk))
}

/// The coordinates and bounds of a chunk.
fn chunk_position(level: &ResolutionLevel, coord: &[i64]) -> Map<String, Value> {
    let bounds = level.chunk_bounds(coord);
    let mut chunk = Map::new();
    chunk.insert("coord".to_owned(), json!(coord));
    if level.vertices.array().is_some() {
        chunk.insert("cell".to_owned(), json!(level.vertices.grid_index(coord)));
    }
    let data = level.store.root.bounds();
    let sticks_out = data.is_some_and(|(low, high)| {
        let below = low.iter().zip(&bounds.0).any(|(low, start)| start < low);
        below || high.iter().zip(&bounds.1).any(|(high, end)| end > high)
    });
    chunk.insert("bounds".to_owned(), bounds_json(bounds));
    chunk.insert("boundary".to_owned(), json!(sticks_out));
    chunk
}

/// Whether one of the boxes contains all of a chunk.
fn is_inside(level: &ResolutionLevel, coord: &[i64], touches: &[TouchedRanges]) -> bool {
    let (low, high) = level.chunk_bounds(coord);
    touches.iter().any(|touch| {
        let bbox = &touch.bbox;
        let begins = bbox.low.iter().zip(&low).all(|(low, start)| low <= start);
        begins && bbox.high.iter().zip(&high).all(|(high, end)| end <= high)
    })
}

/// The differences between the declared and the stored chunks.
async fn compare_declared_and_stored(level: &ResolutionLevel) -> Result<Value, VectorError> {
    let context = &level.store.context;
    let (named, stored) =
        (level.non_empty_chunks().await?.cells, level.vertices.stored_cells(context).await?.cells);
    let without = |one: &[Coord], other: &[Coord]| -> Vec<String> {
        one.iter()
            .filter(|coord| other.binary_search(coord).is_err())
            .map(|coord| format_coord(coord))
            .take(1000)
            .collect()
    };
    Ok(json!({ "missing": without(&named, &stored), "unnamed": without(&stored, &named) }))
}

/// One chunk: its bounds, its number of vertices, its fragments and objects.
#[utoipa::path(
    method(get, head),
    path = CHUNK.template,
    tag = "vectors",
    operation_id = "get_vectors_chunk",
    params(
        LevelPath,
        ("chunk" = String, Path, description = "Coordinates of the chunk, such as `0.-1.2`"),
        LevelParam,
    ),
    responses(
        (status = 200, description = "The chunk", content_type = "application/json"),
        (status = 404, description = "No such chunk (`chunk_not_found`)"),
        (status = 409, description = "It is corrupt (`corrupt_chunk`)"),
    )
)]
pub(crate) async fn get_chunk(
    level: &ResolutionLevel,
    chunk: &str,
    params: &VectorParams,
) -> Result<Value, VectorError> {
    params.check(&KnownParams::default().and::<LevelParam>())?;
    let not_found = || VectorError::ChunkNotFound { chunk: chunk.chars().take(100).collect() };
    let coord =
        parse_coord(chunk).filter(|coord| coord.len() == level.vertices.rank()).ok_or_else(not_found)?;
    let rows = ChunkVertices::read(level, &coord, true).await?.ok_or_else(not_found)?;
    let mut document = chunk_position(level, &coord);
    let mut put = |name: &str, value: Value| document.insert(name.to_owned(), value);
    put("rows", json!(rows.positions.rows()));
    if !rows.is_count_known {
        put("warning", json!("row_count_unknown"));
    }
    let context = &level.store.context;
    if let Some(keys) = level.vertices.stored_cell_key(context, &coord).await? {
        put("key", json!(keys.key.as_str()));
    }
    put("encoded_bytes", json!(level.vertices.encoded_bytes(context, &coord).await?));
    let fragments = rows.fragments.as_ref().map(|index| {
        put("tiles", json!(index.is_tiling()));
        let fragment = |fragment: Fragment<'_>| match fragment {
            Fragment::Range { start, count } => json!({ "kind": "range", "start": start, "count": count }),
            Fragment::Rows(rows) => json!({ "kind": "explicit", "count": rows.len() }),
        };
        put("fragments_truncated", json!(index.len() > MAX_FRAGMENTS));
        put("fragment_count", json!(index.len()));
        index.iter().take(MAX_FRAGMENTS).map(fragment).collect::<Value>()
    });
    put("fragments", fragments.unwrap_or_default());
    if let Some(index) = ObjectIndex::open(level).await? {
        let mut objects = Vec::new();
        let mut is_truncated = false;
        for object in index.read_all().await? {
            let here = object.manifest.fragments().filter(|(chunk, _)| *chunk == coord);
            let fragments: Vec<u32> = here.map(|(_, fragment)| fragment).collect();
            if fragments.is_empty() {
                continue;
            }
            if objects.len() == MAX_OBJECTS {
                is_truncated = true;
                break;
            }
            objects.push(json!({ "id": object.id, "fragments": fragments }));
        }
        put("objects", Value::Array(objects));
        put("objects_truncated", json!(is_truncated));
    }
    Ok(Value::Object(document))
}
