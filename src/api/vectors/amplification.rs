//! The read amplification of a box.

use serde_json::{Value, json};

use super::filter;
use super::json::{amplification_json, saturating_u64};
use super::params::VectorParams;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::vectors::{ResolutionLevel, TouchedChunks, VectorError};

/// What a read of a level costs.
pub(crate) const AMPLIFICATION: RouteSpec =
    RouteSpec::new("/v1/vectors/{mount}/{path}/levels/{level}/amplification", Resource::Vectors)
        .admitted_by(AdmittedBy::Handler)
        .post_reads();

/// The read amplification of a box: four ratios, each null if its denominator is zero.
///
/// - `formula`: volume of the chunks read, divided by the volume of the bins that the box touches.
/// - `per_loaded`: the same, counting only bins in chunks that are read.
/// - `rows`: vertices decoded, divided by vertices in the box.
/// - `bytes`: stored bytes, divided by bytes of the vertices in the box.
///
/// The last two require reading the vertices, unless `dry_run` is given.
#[utoipa::path(
    method(get, head),
    path = AMPLIFICATION.template,
    tag = "vectors",
    operation_id = "get_vectors_amplification",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("path" = String, Path, description = "Path of the store"),
        ("level" = u64, Path, description = "Number of the level. Without `levels/N`, the finest level"),
        crate::api::vectors::params::BoxParams,
        ("dry_run" = Option<bool>, Query, description = "Do not read vertices"),
    ),
    responses(
        (status = 200, description = "The numbers", content_type = "application/json"),
        (status = 400, description = "The box is invalid (`bbox_rank`, `bbox_nan`, `bbox_inverted`)"),
    )
)]
pub(crate) async fn get_amplification(
    level: &ResolutionLevel,
    params: &VectorParams,
) -> Result<Value, VectorError> {
    params.check(&[&filter::BOX_PARAMS[..], &["dry_run", "mode", "attributes", "on_error"]].concat())?;
    if params.is_on("dry_run") {
        let (boxes, chunk_filter) =
            (filter::parse_boxes(level, params)?, filter::parse_chunk_filter(params)?);
        let touched = TouchedChunks::find(level, &boxes, chunk_filter.as_ref()).await?;
        return Ok(json!({
            "level": level.name.index,
            "chunks": touched.chunks.len(),
            "bins": saturating_u64(touched.bins),
            "rows_loaded": null,
            "rows": null,
            "amplification": amplification_json(&touched.amplification),
        }));
    }
    let query = crate::vectors::VertexQuery { counts_bytes: true, ..filter::parse_query(level, params)? };
    let mut stream = query.run(level).await?;
    while stream.next().await?.is_some() {}
    Ok(json!({
        "level": level.name.index,
        "chunks": stream.touched.chunks.len(),
        "bins": saturating_u64(stream.touched.bins),
        "rows_loaded": stream.rows_loaded,
        "rows": stream.rows,
        "encoded_bytes": stream.encoded_bytes,
        "amplification": amplification_json(&stream.amplification()),
    }))
}
