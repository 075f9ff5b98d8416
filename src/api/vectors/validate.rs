//! The validation report of a store.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use utoipa::IntoParams;

use super::params::{VectorParams, VectorsPath};
use crate::api::json_response::json_answer;
use crate::api::query_params::{KnownParams, QueryParams};
use crate::http::negotiate;
use crate::http::negotiate::Offer;
use crate::http::options::HttpOptions;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::http::vectors_path::parse_number;
use crate::key::NodePath;
use crate::vectors::validate::{Report, Status, ValidationRequest};
use crate::vectors::{VectorContext, VectorError};

/// What validation finds in a store.
pub(crate) const VALIDATE: RouteSpec =
    RouteSpec::new("/v1/vectors/{mount}/{path}/validate", Resource::Vectors)
        .admitted_by(AdmittedBy::Handler)
        .post_reads();

/// The formats; the first is the default.
const OFFERS: &[Offer] = &[
    Offer { name: "json", media_type: "application/json" },
    Offer { name: "text", media_type: "text/plain" },
];

/// The query parameters of validation.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `VectorParams` holds it")]
pub(crate) struct ValidateParams {
    /// The highest level of checks, 1 to 5 (the default)
    level: Option<u8>,
    /// Only these levels of the pyramid, such as `0,1`
    levels: Option<String>,
    /// Stop after the first level with errors
    short_circuit: Option<bool>,
    /// How long chunks may be read, in milliseconds
    deadline_ms: Option<u64>,
    /// `json` (the default) or `text`, a line for each check. Alias `f`
    format: Option<String>,
}

impl QueryParams for ValidateParams {
    const ALIASES: &'static [(&'static str, &'static str)] = &[("f", "format")];
}

/// Validates a store in five levels: structure (1), metadata (2), data (3), geometry types (4), and relations between
/// the levels of the pyramid (5).
///
/// A failed check does not stop the others. From level 3 on every chunk is read until `deadline_ms`; after that,
/// `complete` is false.
#[utoipa::path(
    method(get, head),
    path = VALIDATE.template,
    tag = "vectors",
    operation_id = "get_vectors_validate",
    params(VectorsPath, ValidateParams),
    responses(
        (status = 200, description = "The findings of each check; `ok` is true without errors", content_type = "application/json"),
        (status = 400, description = "The level is invalid (`bad_level`)"),
        (status = 404, description = "No such node, or it has no trace of a store (`not_a_zvf_store`)"),
    )
)]
pub(crate) async fn validate_store(
    options: &HttpOptions,
    context: &Arc<VectorContext>,
    path: NodePath,
    params: &VectorParams,
    headers: &HeaderMap,
) -> Result<Result<Response, Problem>, VectorError> {
    params.check(&KnownParams::default().and::<ValidateParams>())?;
    let offer = match negotiate::choose(headers, params.get("format").or_else(|| params.get("f")), OFFERS) {
        Ok(offer) => offer,
        Err(error) => return Ok(Err(error.into())),
    };
    let level = match params.get("level") {
        None => 5,
        Some(text) => text
            .parse::<u8>()
            .ok()
            .filter(|level| (1..=5).contains(level))
            .ok_or_else(|| VectorError::BadLevel(text.chars().take(40).collect()))?,
    };
    let number = |text: &String| {
        parse_number(text)
            .ok_or_else(|| VectorError::bad_param("levels", "comma-separated levels, such as `0,1`"))
    };
    let levels = params
        .get("levels")
        .map(|_| params.list("levels").iter().map(number).collect::<Result<Vec<u64>, _>>());
    // The response head has a deadline of its own.
    let longest = options.response_timeout / 2;
    let time_limit =
        params.number("deadline_ms")?.map_or(longest, |millis| Duration::from_millis(millis).min(longest));
    let validation = ValidationRequest {
        level,
        levels: levels.transpose()?,
        short_circuit: params.is_on("short_circuit"),
        time_limit,
    };
    let report = validation.run(Arc::clone(context), path).await?;
    Ok(Ok(if offer.name == "text" {
        report_text(&report)
    } else {
        json_answer(headers, &report_document(&report))
    }))
}

fn report_document(report: &Report) -> Value {
    let checks = report.checks();
    let count = |status: Status| checks.iter().filter(|check| check.status == status).count();
    let counts: Map<String, Value> = [Status::Pass, Status::Warning, Status::Error, Status::Skipped]
        .into_iter()
        .map(|status| (status.as_str().to_owned(), json!(count(status))))
        .collect();
    let checks: Vec<Value> = checks
        .iter()
        .map(|check| {
            json!({
                "id": check.id, "level": check.level, "status": check.status.as_str(), "path": check.path,
                "message": check.message,
            })
        })
        .collect();
    json!({
        "level": report.level, "ok": report.is_ok(), "complete": report.is_complete, "counts": counts, "checks": checks,
    })
}

fn report_text(report: &Report) -> Response {
    let mut text = String::new();
    for check in report.checks() {
        let words = [check.status.as_str(), check.id, &check.path, &check.message];
        text.push_str(&format!("L{} {}", check.level, words.join(" ")).trim_end().replace(['\n', '\r'], " "));
        text.push('\n');
    }
    text.push_str(if report.is_ok() { "ok\n" } else { "not ok\n" });
    let mut response = Body::from(text).into_response();
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
