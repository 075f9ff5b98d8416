//! POST of `/v1/data`: a selection that does not fit in a URL, as JSON.
//!
//! The members are the parameters of GET. `isel` and `sel` are objects, which also take lists; `points` and `where` are of POST
//! alone. The answer is that of GET for the same selection, with the same entity tag, but for what RFC 9110 has for GET alone:
//! ranges, and 304.

mod body;
mod named;
mod near;
mod schema;
mod values;

use std::time::Instant;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::selected::{about_dimensions, selected};
use crate::admission::{AdmissionRequest, Priority};
use crate::api::json_body::{PARSED_BYTES, read_values};
use crate::api::query_params::pairs;
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
pub(crate) use body::SelectionBody;
pub(crate) use schema::SelectionSchema;

/// Bytes that an item of a list takes from when the body was read until the elements are planned.
const ITEM_BYTES: u64 = 128;
/// Lists of fewer items are not counted.
const FEW_ITEMS: usize = 1000;

/// The response to POST of a selection.
pub(super) async fn respond(
    state: &AppState,
    target: NodeTarget,
    request: Request,
) -> Result<Response, Problem> {
    let started = Instant::now();
    check_media_type(request.headers())?;
    let pairs = pairs(request.uri())?;
    let (head, content) = request.into_parts();
    let entrant = AdmissionRequest::to_elements(&head);
    state.traffic.admission.try_reject(entrant)?;
    let request = Request::from_parts(head.clone(), content);
    let (body, parsed): (SelectionBody, _) =
        read_values(state, (Priority::Elements, PARSED_BYTES), request).await.map_err(with_append)?;
    let query = match body.into_query(&pairs) {
        Ok(query) => query,
        Err(error) => return Err(Box::pin(about_dimensions(error, &target)).await),
    };
    let items = query.selection.listed_items();
    let mut held = state.traffic.admission.alongside(entrant);
    if items > FEW_ITEMS {
        held.grow((items as u64).saturating_mul(ITEM_BYTES))?;
    }
    drop(parsed);
    // Boxed, because the large future would enlarge every future around it.
    let mut answer = Box::pin(selected(state, &head, &target, &query, started)).await?;
    answer.headers_mut().remove(header::ACCEPT_RANGES);
    Ok(if answer.status() == StatusCode::NOT_MODIFIED { unchanged(answer.headers()) } else { answer })
}

/// The problem of a body that is no selection, with how elements are appended: they are a list in JSON.
fn with_append(problem: Problem) -> Problem {
    if problem.code() != ErrorClass::InvalidRequest.as_str() {
        return problem;
    }
    let detail = format!("{}; elements are appended with `append=DIMENSION` in the URL", problem.message());
    problem.detail(detail)
}

/// The response for elements that still have an entity tag of `If-None-Match` (RFC 9110, section 13.2.2, step 3).
fn unchanged(headers: &HeaderMap) -> Response {
    let problem = Problem::from_class(ErrorClass::PreconditionFailed)
        .detail("the elements still have an entity tag of `If-None-Match`; nothing was read");
    let mut answer = problem.into_response();
    if let Some(tag) = headers.get(header::ETAG) {
        answer.headers_mut().insert(header::ETAG, tag.clone());
    }
    answer
}

/// Refuses a body that is declared as something other than JSON.
fn check_media_type(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(declared) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let essence = declared.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Problem::from_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
        .detail("POST takes a selection as `application/json`; elements are written with PUT, and appended with `append=` and the dimension that grows"))
}
