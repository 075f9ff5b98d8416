//! Takes the body of a write of elements, of any format.

use axum::body::Body;
use axum::http::request::Parts;
use axum::response::Response;

use super::outcome::WriteProgress;
use super::request::PutRequest;
use super::{held, streamed};
use crate::admission::AdmissionRequest;
use crate::api::held::Held;
use crate::http::problem::Problem;
use crate::services::state::AppState;

/// Takes the body of a request and writes its elements. What is written goes to `progress`.
///
/// # Errors
/// The problem of the body or of the write, with what is written by then.
pub(super) async fn run(
    request: &PutRequest,
    state: &AppState,
    head: &Parts,
    body: Body,
    progress: &mut WriteProgress,
) -> Result<Response, Problem> {
    let options = *state.engine.writer.options();
    let in_body = if request.is_held {
        held::most_bytes(request, options.max_whole_size)
    } else {
        streamed::most_bytes(request, options.band_size)
    };
    let bytes = state.engine.writer.working_bytes(&request.plan).saturating_add(in_body);
    let permit = state.traffic.admission.acquire(AdmissionRequest::to_elements(head), bytes).await;
    let permit = Held::new(permit.map_err(|problem| problem.extension("written", false))?);
    let taken = if request.is_held {
        held::run(request, state, head, body, &permit, progress).await
    } else {
        streamed::run(request, state, body, &permit, progress).await
    };
    match taken {
        Ok(()) => Ok(request.respond(progress.written())),
        Err(problem) => Err(progress.describe(problem)),
    }
}
