//! The distribution of vertices over chunks, with the recommendations of the format.

use serde_json::{Value, json};

use super::params::{LevelParam, LevelPath, VectorParams};
use crate::api::query_params::KnownParams;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::vectors::{LevelStats, ResolutionLevel, SummaryStats, VectorError};

/// Statistics of a level.
pub(crate) const STATS: RouteSpec =
    RouteSpec::new("/v1/vectors/{mount}/{path}/levels/{level}/stats", Resource::Vectors)
        .admitted_by(AdmittedBy::Handler)
        .post_reads();

/// How the vertices of a level are distributed over its chunks, and which recommendations of the format it does not
/// follow.
///
/// Of a level with many chunks an evenly spaced sample is read (`sampled`).
#[utoipa::path(
    method(get, head),
    path = STATS.template,
    tag = "vectors",
    operation_id = "get_vectors_stats",
    params(LevelPath, LevelParam),
    responses(
        (status = 200, description = "Counts, sizes and warnings", content_type = "application/json"),
        (status = 409, description = "A chunk is corrupt (`corrupt_chunk`)"),
    )
)]
pub(crate) async fn get_stats(level: &ResolutionLevel, params: &VectorParams) -> Result<Value, VectorError> {
    params.check(&KnownParams::default().and::<LevelParam>())?;
    let stats = LevelStats::collect(level).await?;
    let spread = |spread: Option<SummaryStats>| {
        spread.map(|spread| json!({ "min": spread.min, "median": spread.median, "max": spread.max }))
    };
    let warnings: Vec<Value> =
        stats.warnings.iter().map(|(code, detail)| json!({ "code": code, "detail": detail })).collect();
    Ok(json!({
        "level": level.name.index,
        "chunks": stats.chunks,
        "sampled": stats.sampled,
        "vertices": stats.vertices,
        "vertices_per_chunk": spread(stats.vertices_per_chunk),
        "encoded_bytes_per_chunk": spread(stats.encoded_bytes_per_chunk),
        "objects_per_chunk": spread(stats.objects_per_chunk),
        "expected_vertices_per_chunk": stats.expected_vertices_per_chunk,
        "warnings": warnings,
    }))
}
