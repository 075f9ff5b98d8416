//! POST of `/v1/data` with `append`: elements are added to the end of an array, or of several arrays of a group in one step.
//! `write::append` has what that promises.

mod group;
mod key;
mod problem;
mod query;
mod rows;
mod target;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::opening::open;
use super::put::{BodyFormat, too_long_to_hold, unparsed};
use crate::admission::AdmissionRequest;
use crate::api::held::Held;
use crate::api::nodes::node_changes::writer;
use crate::api::store::write::{check_coding, check_writable, length_in};
use crate::error::ErrorClass;
use crate::http::body::collect;
use crate::http::conditions::Conditions;
use crate::http::digest::Checking;
use crate::http::problem::Problem;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::write::{AppendError, Appended};
pub(crate) use query::AppendParams;
use query::AppendQuery;
use target::{AppendTarget, longest_body};

/// Where elements were appended.
#[derive(Serialize, ToSchema)]
pub(crate) struct AppendedSchema {
    /// The first index along the dimension.
    start: u64,
    /// The index behind the last.
    stop: u64,
    /// The shape of the array with them; not for several arrays.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shape: Vec<u64>,
}

/// Appends the elements of a request.
///
/// # Errors
/// The problem of what is wrong, with what was written.
pub(super) async fn append(
    state: &AppState,
    target: NodeTarget,
    request: Request,
) -> Result<Response, Problem> {
    check_writable(&target.mount).map_err(|problem| problem.allow(target.mount.element_methods()))?;
    let not_written = |problem: Problem| {
        let is_said = problem.extensions().contains_key("written");
        if is_said { problem } else { problem.extension("written", false) }
    };
    let query = AppendQuery::from_uri(request.uri()).map_err(|error| not_written(error.into()))?;
    let (head, body) = request.into_parts();
    check_head(&head).map_err(not_written)?;
    let appended = match group::boundary(&head) {
        Some(boundary) => to_group(state, target, query, (&head, body), boundary).await,
        None => to_array(state, target, query, (&head, body)).await,
    };
    let Appended { start, stop, shape } = appended.map_err(not_written)?;
    Ok(axum::Json(AppendedSchema { start, stop, shape }).into_response())
}

fn check_head(head: &Parts) -> Result<(), Problem> {
    if !Conditions::from_headers(&head.headers).is_empty() {
        return Err(Problem::from_class(ErrorClass::InvalidRequest)
            .detail("an append has no conditions but `at`: leave the others out"));
    }
    check_coding(&head.headers, &[])
}

/// Appends a body to an array.
async fn to_array(
    state: &AppState,
    target: NodeTarget,
    query: AppendQuery,
    (head, body): (&Parts, Body),
) -> Result<Appended, Problem> {
    let key = key::name_in(&head.headers)?;
    let node = open(head, &target, &target.path, &query.array).await?;
    let array = AppendTarget::new(node, &query)?;
    let format = BodyFormat::of(&head.headers, &query.body)?;
    let (limit, setting) = array.limit(format, state.engine.writer.options());
    let declared = length_in(&head.headers, &header::CONTENT_LENGTH);
    let held = array.most_bytes(state, format, declared.unwrap_or(limit).min(limit));
    let permit = permit(state, head, held).await?;
    let body = whole(state, head, (limit, setting), body).await?;
    let (opened, axis) = (Arc::clone(&array.node), array.axis);
    let parse = move || {
        let mut append = array.parse(format, &query, &body)?;
        append.key =
            key.map(|name| key::with_digest(name, [(query.meaning(Some(format), axis).as_str(), &*body)]));
        Ok(append)
    };
    let append = state.engine.cpu.run(parse).await?.map_err(unparsed)?;
    let nodes = writer(state, &target, &head.extensions);
    let appends = state.engine.appends.clone();
    let place = (Arc::clone(&target.mount.cache_name), target.path.clone());
    finish(state, permit, async move { appends.append((&place.0, &place.1), (nodes, opened), append).await })
        .await
}

/// Appends the parts of a body to arrays of a group.
async fn to_group(
    state: &AppState,
    target: NodeTarget,
    query: AppendQuery,
    (head, body): (&Parts, Body),
    boundary: String,
) -> Result<Appended, Problem> {
    let name = key::name_in(&head.headers)?;
    let (limit, setting) = longest_body(state.engine.writer.options());
    let declared = length_in(&head.headers, &header::CONTENT_LENGTH);
    // The parts are copied out of the body before it is known what they are.
    let held = declared.unwrap_or(limit).min(limit).saturating_mul(2);
    let permit = permit(state, head, held).await?;
    let body = whole(state, head, (limit, setting), body).await?;
    let append = group::parse(state, (&target, head, &query), (boundary, body), name, &permit).await?;
    let nodes = writer(state, &target, &head.extensions);
    let appends = state.engine.appends.clone();
    // Boxed, because an append to one array needs less.
    let work = Box::pin(async move { appends.append_to_group(&nodes, append).await.map_err(Arc::new) });
    finish(state, permit, work).await
}

/// Waits for the memory of an append.
async fn permit(state: &AppState, head: &Parts, bytes: u64) -> Result<Held, Problem> {
    let permit = state.traffic.admission.acquire(AdmissionRequest::to_elements(head), bytes).await;
    Ok(Held::new(permit?))
}

/// The body of a request, as a whole.
async fn whole(
    state: &AppState,
    head: &Parts,
    (limit, setting): (u64, &'static str),
    body: Body,
) -> Result<Bytes, Problem> {
    let declared = length_in(&head.headers, &header::CONTENT_LENGTH);
    let checking = Checking::from_headers(&head.headers, &state.engine.cpu)?;
    let too_long = || {
        let detail = format!(
            "an append is held in memory, and its body may have at most {limit} bytes (`{setting}`): append in several requests"
        );
        let problem = too_long_to_hold(ErrorClass::TooLarge.as_str(), None, limit).detail(detail);
        problem.extension("limited", "bytes of the body").extension("setting", setting)
    };
    collect(&state.options, declared, limit, Some(checking), body, too_long).await
}

/// Runs an append to its end, also if the client goes away.
async fn finish(
    state: &AppState,
    permit: Held,
    append: impl Future<Output = Result<Appended, Arc<AppendError>>> + Send + 'static,
) -> Result<Appended, Problem> {
    // Lets the connection notice a client that is gone, which may have sent the append again to another server while this
    // one was paused: its key may have been dropped since.
    tokio::task::yield_now().await;
    let appended = tokio::spawn(async move {
        let _permit = permit;
        append.await
    });
    match timeout(state.options.response_timeout, appended).await {
        Ok(Ok(appended)) => appended.map_err(problem::problem),
        Ok(Err(panic)) => Err(Problem::internal(Arc::new(panic)).extension("written", "unknown")),
        Err(_) => Err(Problem::unfinished_change().detail(
            "the append takes longer than a response may (`http.response_timeout`), and goes on: read the length of the array before it is \
             sent again; under an `Idempotency-Key` it can be sent again at once",
        )),
    }
}
