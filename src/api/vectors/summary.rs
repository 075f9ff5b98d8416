//! The documents of a store and of a level.

use serde_json::{Map, Value, json};

use super::json::bounds_json;
use super::params::VectorsPath;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::vectors::{ResolutionLevel, RootMetadata, VectorError, VectorStore, VertexAttribute};

/// A level.
pub(crate) const LEVEL: RouteSpec =
    RouteSpec::new("/v1/vectors/{mount}/{path}/levels/{level}", Resource::Vectors)
        .admitted_by(AdmittedBy::Handler)
        .post_reads();

/// The document of a store.
pub(crate) async fn store_document(store: &VectorStore) -> Result<Value, VectorError> {
    let root = &store.root;
    let axes: Vec<Value> =
        root.axes().into_iter().map(|axis| json!({ "name": axis.name, "unit": axis.unit })).collect();
    let mut diagnostics = Vec::new();
    let mut levels = Vec::new();
    for (name, level) in store.all_levels().await? {
        levels.push(match level {
            Ok(level) => json!({
                "level": name.index,
                "path": name.name,
                "vertex_count": level.vertex_count(),
                "chunk_shape": level.shapes.chunk,
                "bin_shape": level.shapes.bin,
                "bins_per_chunk": level.shapes.bins_per_chunk,
            }),
            Err(error) => {
                diagnostics
                    .push(json!({ "code": error.code(), "path": name.name, "detail": error.to_string() }));
                json!({ "level": name.index, "path": name.name, "error": error.code() })
            }
        });
    }
    if let Err(error) = root.geometry() {
        diagnostics.push(json!({ "code": error.code(), "detail": error.to_string() }));
    }
    for name in &root.conflicting_members {
        let detail = format!("`{name}` differs between `zarr.json` and `.zattrs`; the latter is used");
        diagnostics.push(json!({ "code": "attributes_disagree", "detail": detail }));
    }
    let bins = store.levels.first().map(|level| level.index);
    let finest = levels.first().cloned().unwrap_or_default();
    let mut document = Map::new();
    let mut put = |name: &str, value: Value| document.insert(name.to_owned(), value);
    put("profile", json!(root.profile.as_str()));
    put("version", json!(root.version()));
    put("dims", json!(root.dims()));
    put("axes", Value::Array(axes));
    put("chunk_shape", json!(root.chunk_shape()));
    put("bin_shape", bins.map_or(Value::Null, |_| finest["bin_shape"].clone()));
    put("bins_per_chunk", bins.map_or(Value::Null, |_| finest["bins_per_chunk"].clone()));
    put("bounds", root.bounds().map_or(Value::Null, bounds_json));
    put("geometry_types", json!(root.geometry_types()));
    put("conventions", conventions(root));
    put("levels", Value::Array(levels));
    put("diagnostics", Value::Array(diagnostics));
    Ok(Value::Object(document))
}

/// The conventions that a store declares, with the defaults of the format.
fn conventions(root: &RootMetadata) -> Value {
    let metadata = root.store_metadata();
    let of = |name: &str, default: Value| metadata.get(name).cloned().unwrap_or(default);
    json!({
        "links_convention": of("links_convention", json!("implicit_sequential")),
        "object_index_convention": of("object_index_convention", json!("standard")),
        "cross_chunk_strategy": of("cross_chunk_strategy", json!("explicit_links")),
        "format_capabilities": of("format_capabilities", json!([])),
        "crs": of("crs", of("coordinate_system", Value::Null)),
        "coordinate_offset": of("coordinate_offset", Value::Null),
    })
}

/// A level of a store.
///
/// The shapes of its chunks and bins, its grid, the number of chunks that hold vertices, and its attributes.
#[utoipa::path(
    method(get, head),
    path = LEVEL.template,
    tag = "vectors",
    operation_id = "get_vectors_level",
    params(
        VectorsPath,
        ("level" = u64, Path, description = "Number of the level; 0 is the finest"),
    ),
    responses(
        (status = 200, description = "The level", content_type = "application/json"),
        (status = 400, description = "The level is not a number (`bad_level`)"),
        (status = 404, description = "No such store (`not_a_zvf_store`) or level (`level_not_found`)"),
        (status = 422, description = "Its metadata cannot be used (`invalid_metadata`)"),
    )
)]
pub(crate) async fn get_level(level: &ResolutionLevel) -> Result<Value, VectorError> {
    let occupied = level.non_empty_chunks().await?;
    let grid = level.chunk_grid(&occupied.cells);
    let mut attributes = Vec::new();
    for name in VertexAttribute::names(level).await? {
        attributes.push(match VertexAttribute::open(level, &name).await {
            Ok(attribute) => json!({
                "name": attribute.name,
                "dtype": attribute.data_type.name(),
                "columns": attribute.width,
                "channel_names": attribute.channels,
                "categories": attribute.categories,
                "ordered": attribute.is_ordered,
            }),
            Err(error) => json!({ "name": name, "error": error.code(), "detail": error.to_string() }),
        });
    }
    let lengths: Vec<i64> =
        grid.iter().map(|(first, last)| last.saturating_sub(*first).saturating_add(1)).collect();
    let origin: Vec<i64> = grid.iter().map(|(first, _)| *first).collect();
    Ok(json!({
        "level": level.name.index,
        "path": level.path.as_str(),
        "chunk_shape": level.shapes.chunk,
        "bin_shape": level.shapes.bin,
        "bins_per_chunk": level.shapes.bins_per_chunk,
        "coordinate_type": level.coordinate_type.name(),
        "origin": origin,
        "grid": lengths,
        "sharded": level.vertices.is_sharded(),
        "vertex_count": level.vertex_count(),
        "chunks": occupied.cells.len(),
        "skipped": occupied.invalid_names.iter().take(100).collect::<Vec<_>>(),
        "has_fragments": level.fragments.is_some(),
        "fragments_tile": level.declares_tiling(),
        "shared_fragments": level.shares_fragments(),
        "chunk_attribute": level.chunk_attribute().map(|(name, values)| json!({ "name": name, "values": values })),
        "attributes": attributes,
        "metadata": *level.attributes,
    }))
}
