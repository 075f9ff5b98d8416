//! `/v1/data/{mount}/{path}` and `/v1/chunk/{mount}/{path}/c/…`: decoded elements.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, Method};
use axum::response::Response;

use crate::chunk::{ChunkKeyEncoding, Subset};
use crate::error::ErrorClass;
use crate::http::elements::{Elements, OFFERS, Rendering};
use crate::http::extract::NodeTarget;
use crate::http::negotiate;
use crate::http::problem::Problem;
use crate::http::query::DataQuery;
use crate::http::state::AppState;
use crate::key::NodePath;

type Pairs = Query<Vec<(String, String)>>;

/// The elements of a selection.
///
/// Without `slice` the whole array. `bytes` (the default) is C order, little-endian, packed; `npy` is a file numpy opens;
/// `json` is nested lists.
#[utoipa::path(
    method(get, head),
    path = "/v1/data/{mount}/{*path}",
    tag = "data",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("path" = String, Path, description = "Path of the array"),
        ("slice" = Option<String>, Query, description = "numpy's slices: `0:10,::2,...,-1`. Alias `select`"),
        ("isel.NAME" = Option<String>, Query, description = "An index or slice of the dimension called NAME; not together with `slice`"),
        ("format" = Option<String>, Query, description = "`bytes`, `npy` or `json`; wins over `Accept`. Alias `f`"),
        ("endian" = Option<String>, Query, description = "`little` (default) or `big`, of `bytes` and `npy`"),
        ("nan" = Option<String>, Query, description = "How JSON writes NaN and infinities: `string` (default) or `null`"),
        ("expected_shape" = Option<String>, Query, description = "Refuse (409) if the array's shape is another, such as `10,20`"),
    ),
    responses(
        (status = 200, description = "The elements; `Array-Shape` and `Array-Data-Type` say what they are",
            content_type = "application/octet-stream"),
        (status = 206, description = "A range of the bytes"),
        (status = 304, description = "Not modified"),
        (status = 400, description = "The selection or a parameter is not understood"),
        (status = 404, description = "No such mount or array"),
        (status = 406, description = "None of the formats is acceptable"),
        (status = 409, description = "The array has another shape than expected"),
        (status = 412, description = "A condition does not hold"),
        (status = 413, description = "Over a limit; the problem suggests slices that fit"),
        (status = 416, description = "The range lies outside the answer"),
        (status = 500, description = "Stored bytes or metadata are corrupt"),
        (status = 501, description = "A codec, data type or extension is not supported"),
    )
)]
pub(in crate::http) async fn get_data(
    State(state): State<AppState>,
    target: NodeTarget,
    Query(pairs): Pairs,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let started = Instant::now();
    let query = DataQuery::parse(&pairs)?;
    let rendering = rendering(&headers, &query)?;
    let node = target.opener.open(&target.path).await?;
    let array = Arc::clone(node.array()?);
    query.check_shape(&array.metadata().shape)?;
    let subset = query.subset(array.metadata())?;
    Elements { node, array, subset, rendering, started }.answer(&state, &method, &headers).await
}

/// The elements of a selection of the array at the root of a mount.
#[utoipa::path(
    method(get, head),
    path = "/v1/data/{mount}",
    tag = "data",
    params(("mount" = String, Path, description = "Name of a mount")),
    responses(
        (status = 200, description = "As for other arrays", content_type = "application/octet-stream"),
        (status = 404, description = "No such mount, or no array at its root"),
    )
)]
pub(in crate::http) async fn get_root_data(
    state: State<AppState>,
    target: NodeTarget,
    query: Pairs,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    get_data(state, target, query, method, headers).await
}

/// One decoded chunk of the array's chunk grid, trimmed to the array.
///
/// Chunks are addressed as in the default chunk key encoding (`c/0/1`), whatever the array's own is. Of a sharded array
/// a chunk is a whole shard.
#[utoipa::path(
    method(get, head),
    path = "/v1/chunk/{mount}/{*path}",
    tag = "data",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("path" = String, Path, description = "Path of the array, then `c` and the chunk's coordinates: `a/b/c/0/1`"),
        ("format" = Option<String>, Query, description = "`bytes`, `npy` or `json`; wins over `Accept`. Alias `f`"),
        ("endian" = Option<String>, Query, description = "`little` (default) or `big`, of `bytes` and `npy`"),
        ("nan" = Option<String>, Query, description = "How JSON writes NaN and infinities: `string` (default) or `null`"),
    ),
    responses(
        (status = 200, description = "The elements", content_type = "application/octet-stream"),
        (status = 304, description = "Not modified"),
        (status = 404, description = "No such mount, array or chunk of the grid"),
        (status = 413, description = "Over a limit"),
    )
)]
pub(in crate::http) async fn get_chunk(
    State(state): State<AppState>,
    target: NodeTarget,
    Query(pairs): Pairs,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let started = Instant::now();
    let query = DataQuery::parse(&pairs)?;
    if query.selects() {
        return Err(Problem::of_class(ErrorClass::InvalidRequest)
            .detail("a chunk is answered whole; `/v1/data` takes a `slice`"));
    }
    let rendering = rendering(&headers, &query)?;
    let (path, chunk) = split_chunk(&target.path).ok_or_else(no_such_chunk)?;
    let node = target.opener.open(&path).await?;
    let array = Arc::clone(node.array()?);
    query.check_shape(&array.metadata().shape)?;
    let coords = ChunkKeyEncoding::canonical().decode(chunk, array.metadata().shape.len());
    let ranges = coords.and_then(|coords| array.grid().chunk_ranges(&coords)).ok_or_else(no_such_chunk)?;
    let subset = Subset(ranges);
    Elements { node, array, subset, rendering, started }.answer(&state, &method, &headers).await
}

fn rendering(headers: &HeaderMap, query: &DataQuery) -> Result<Rendering, Problem> {
    let offer = negotiate::choose(headers, query.format.as_deref(), OFFERS)?;
    Ok(Rendering { offer, endian: query.endian, nan: query.nan })
}

fn no_such_chunk() -> Problem {
    Problem::of_class(ErrorClass::NotFound).detail(
        "there is no such chunk; after the array's path comes `c` and one decimal number without leading zeros for each \
         dimension, within the grid that `/v1/nodes` shows",
    )
}

/// Splits `a/b/c/0/1` into the node's path and the chunk's key. Numbers are the chunk's as far up as they go.
fn split_chunk(path: &NodePath) -> Option<(NodePath, &str)> {
    let text = path.as_str();
    let mut start = text.len();
    loop {
        let segment_start = text.get(..start)?.rfind('/').map_or(0, |slash| slash + 1);
        let segment = text.get(segment_start..start)?;
        if segment == "c" {
            let node = text.get(..segment_start)?.trim_end_matches('/');
            return Some((NodePath::parse(node).ok()?, text.get(segment_start..)?));
        }
        if segment.is_empty() || !segment.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        start = segment_start.checked_sub(1)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_path_is_split_at_the_c_before_its_numbers() {
        for (text, split) in [
            ("a/b/c/0/1", Some(("a/b", "c/0/1"))),
            ("c/0", Some(("", "c/0"))),
            ("a/c", Some(("a", "c"))),
            ("a/c/0/c/3", Some(("a/c/0", "c/3"))),
            ("c", Some(("", "c"))),
            ("a/b", None),
            ("a/c/x", None),
            ("0/1", None),
            ("", None),
        ] {
            let path = NodePath::parse(text).unwrap();
            assert_eq!(
                split_chunk(&path).map(|(node, chunk)| (node.as_str().to_owned(), chunk)),
                split.map(|(node, chunk)| (node.to_owned(), chunk)),
                "{text}"
            );
        }
    }
}
