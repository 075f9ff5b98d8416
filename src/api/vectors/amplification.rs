//! The read amplification of a box.

use serde_json::{Value, json};
use utoipa::IntoParams;

use super::filter;
use super::json::{amplification_json, saturating_u64};
use super::params::{BoxParams, LevelPath, VectorParams};
use crate::api::query_params::{KnownParams, QueryParams};
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::vectors::{ResolutionLevel, TouchedChunks, VectorError};

/// What a read of a level costs.
pub(crate) const AMPLIFICATION: RouteSpec =
    RouteSpec::new("/v1/vectors/{mount}/{path}/levels/{level}/amplification", Resource::Vectors)
        .admitted_by(AdmittedBy::Handler)
        .post_reads();

/// The query parameters of amplification.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `VectorParams` holds it")]
pub(crate) struct AmplificationParams {
    /// Do not read vertices
    dry_run: Option<bool>,
    /// The mode of the vertices that are counted, as of `vertices`
    mode: Option<String>,
    /// Attributes that are read with the vertices
    attributes: Option<String>,
    /// `fail` (the default: 409) or `skip`: skip corrupt chunks
    on_error: Option<String>,
}

impl QueryParams for AmplificationParams {}

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
        LevelPath,
        BoxParams,
        AmplificationParams,
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
    params.check(&KnownParams::default().and::<BoxParams>().and::<AmplificationParams>())?;
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
