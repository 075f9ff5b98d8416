//! The handler of a batch.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, StreamExt};
use tokio::task::JoinSet;
use tracing::Instrument;
use utoipa_axum::routes;

use super::items::{BatchBody, BatchItem, BatchSchema};
use crate::admission::{AdmissionRequest, Priority};
use crate::api::data::selected;
use crate::api::documented::MountParam;
use crate::api::json_body::{Limited, PARSED_BYTES, read_values};
use crate::auth::caller::Caller;
use crate::auth::{KeyScope, Permission, Scope, check_derived};
use crate::error::ErrorClass;
use crate::http::multipart::Boundary;
use crate::http::problem::{self, Problem};
use crate::http::request_id::RequestId;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::key::NodePath;
use crate::services::extract::NodeTarget;
use crate::services::route::Route;
use crate::services::state::AppState;
use crate::store::PinnedVersion;

/// Selections of several arrays.
pub(crate) const BATCH: RouteSpec = RouteSpec::new("/v1/batch/{mount}", Resource::Nodes)
    .admitted_by(AdmittedBy::Handler)
    .post_reads()
    .never_encoded();

/// Selections that are begun at a time.
const CONCURRENCY: usize = 4;
/// Bytes of memory of a selection until its part is sent, beside its lists.
const ITEM_BYTES: u64 = 2 << 10;
/// Bytes of memory of an item of a list.
const LISTED_BYTES: u64 = 128;

/// The route of batches.
pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(&BATCH, routes!(post_batch))]
}

/// Read selections of several arrays
///
/// The body has a list of selections, each with the `path` of its array and the members of a `POST` of `/v1/data`. The response has a
/// part for each, in their order, with the headers and the body of its own response, and its status in `Status`. A selection that fails is a
/// part with a problem document; the others are sent. Each selection is subject to the limits, and charged as a request of its own.
#[utoipa::path(
    post,
    path = BATCH.template,
    tag = "data",
    params(MountParam),
    request_body(content = BatchSchema, description = "At most 1000 selections"),
    responses(
        (status = 200, description = "A part for each selection", content_type = "multipart/mixed"),
        (status = 400, description = "The body is invalid"),
        (status = 404, description = "No mount has this name"),
        (status = 413, description = "The body is too long"),
        (status = 415, description = "The body is not JSON"),
    )
)]
pub(crate) async fn post_batch(State(state): State<AppState>, request: Request) -> Result<Response, Problem> {
    let target = NodeTarget::new(&state.mounts, &BATCH, request.uri(), request.extensions())?;
    let (head, content) = request.into_parts();
    let entrant = AdmissionRequest::to_elements(&head);
    state.traffic.admission.try_reject(entrant)?;
    let request = Request::from_parts(head.clone(), content);
    let (BatchBody { items: Limited(items) }, parsed) =
        read_values(&state, (Priority::Elements, PARSED_BYTES), request).await?;
    // The selections stay in memory until their parts are sent.
    let mut held = state.traffic.admission.alongside(entrant);
    held.grow((items.len() as u64).saturating_mul(ITEM_BYTES))?;
    let no_boundary = || Problem::from_class(ErrorClass::Internal);
    let boundary = Boundary::new().ok_or_else(no_boundary)?;
    let media_type = boundary.media_type().ok_or_else(no_boundary)?;
    let end = boundary.end();
    let batch = Arc::new(Batch { state, head, target });
    let answers = stream::iter(items).map(move |item| begin(Arc::clone(&batch), item));
    let parts = answers.buffered(CONCURRENCY).flat_map(move |answer| boundary.part(answer).boxed());
    let parts = parts.chain(stream::once(std::future::ready(Ok(end))));
    let mut answer = Body::from_stream(parts).into_response();
    answer.headers_mut().insert(header::CONTENT_TYPE, media_type);
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(parsed.hold(held.hold(answer)))
}

/// Begins to answer a selection in a task of its own. It goes on while a part before it is sent: a client that does not read must
/// not keep requests to a backend half done, which hold their places there. Dropping the future aborts the task.
fn begin(batch: Arc<Batch>, item: BatchItem) -> impl Future<Output = Response> {
    let mut tasks = JoinSet::new();
    let answering = Arc::clone(&batch);
    tasks.spawn(async move { answering.answer(item).await }.in_current_span());
    async move {
        match tasks.join_next().await {
            Some(Ok(answer)) => answer,
            Some(Err(panic)) => batch.rendered(Problem::internal(Arc::new(panic)).into_response()),
            None => batch.rendered(Problem::from_class(ErrorClass::Internal).into_response()),
        }
    }
}

/// What the selections of a batch have in common.
struct Batch {
    state: AppState,
    head: Parts,
    target: NodeTarget,
}

impl Batch {
    /// The response to one of the selections.
    async fn answer(&self, item: BatchItem) -> Response {
        self.rendered(self.selected(item).await.into_response())
    }

    /// A response with its problem document, if it is one of a problem.
    fn rendered(&self, answer: Response) -> Response {
        problem::render(answer, RequestId::text_of(&self.head.extensions))
    }

    async fn selected(&self, item: BatchItem) -> Result<Response, Problem> {
        let started = Instant::now();
        let Self { state, head, target } = self;
        let path = NodePath::parse(&item.path).map_err(|error| {
            Problem::from_class(ErrorClass::InvalidRequest).detail(format!("`path`: {error}"))
        })?;
        let need = Permission::derived(Scope::Read, KeyScope::Prefix(path.prefix().clone()));
        let rights = Caller::of(&head.extensions).rights();
        check_derived(rights, &target.mount.name, &target.opener, &need).await?;
        let has_versions = target.mount.store.served_version().is_some();
        if has_versions && PinnedVersion::of_text(&item.path).is_some_and(|version| !version.is_fixed()) {
            return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(
                "`path`: a branch may move while a batch is read; name a tag or a snapshot, or leave the version out",
            ));
        }
        let (mount, opener) = (target.mount.clone(), target.opener.clone());
        let target = NodeTarget { mount, opener, path };
        let (mut own, ()) = axum::http::Request::new(()).into_parts();
        own.method = head.method.clone();
        own.uri = head.uri.clone();
        own.extensions = head.extensions.clone();
        if let Some(tag) = &item.none_match {
            let tag = HeaderValue::from_str(tag).map_err(|error| {
                Problem::from_class(ErrorClass::InvalidRequest).detail(format!("`if_none_match`: {error}"))
            })?;
            own.headers.insert(header::IF_NONE_MATCH, tag);
        }
        let query = item.into_query()?;
        let entrant = AdmissionRequest::to_elements(&own);
        let mut held = state.traffic.admission.alongside(entrant);
        held.grow((query.selection.listed_items() as u64).saturating_mul(LISTED_BYTES))?;
        selected(state, &own, &target, &query, started).await
    }
}
