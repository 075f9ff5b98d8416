//! `/v1/cache/{mount}/{prefix}`: what is remembered of the keys and nodes below a prefix, forgotten (DELETE) or made (POST).
//!
//! For whoever runs the server: at the admin listener. What is remembered is right without this, as it is under the
//! versions of what it was made of; forgetting is for backends that do not tell versions well, and for measurements.

pub(crate) mod prefetch;

use std::time::Duration;

use axum::Json;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};

use crate::admission::{AdmissionRequest, Priority};
use crate::auth::caller::Administrator;
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::services::extract::NodeTarget;
use crate::services::route::Route;
use crate::services::state::AppState;
use prefetch::{Level, PrefetchReport, PrefetchRequest, prefetch as warm_below};
use utoipa_axum::routes;

/// What is cached of the keys below a prefix.
pub(crate) const PREFIX: RouteSpec = RouteSpec::new("/v1/cache/{mount}/{*prefix}", Resource::Cache)
    .admitted_by(AdmittedBy::Nobody)
    .at_admin_listener();

/// What is cached of a mount.
pub(crate) const MOUNT: RouteSpec = RouteSpec::new("/v1/cache/{mount}", Resource::Cache)
    .with_slash("/v1/cache/{mount}/")
    .admitted_by(AdmittedBy::Nobody)
    .at_admin_listener();

/// The routes of caches.
pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(&PREFIX, routes!(purge, warm)), Route::new(&MOUNT, routes!(purge_root, warm_root))]
}

/// Bytes of decoded chunks that are loaded, where nothing is said.
const BYTES: u64 = 64 << 20;
/// How long that may take, where nothing is said.
const SECONDS: u64 = 30;

/// What was forgotten.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Purged {
    /// Decoded chunks, indexes, nodes, values and chunks that were encoded anew.
    forgotten: u64,
    /// Small answers as they went out, of all mounts: each is made again of what is still remembered.
    answers: u64,
}

/// How much is loaded.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct WarmQuery {
    /// `metadata`: the documents of all nodes. `indexes` (default): those of shards too. `chunks`: decoded chunks too.
    level: Option<Level>,
    /// The most bytes of decoded chunks; 64 MiB if it is not said.
    bytes: Option<u64>,
    /// The most seconds; 30 if it is not said, and never as many as a request may take.
    seconds: Option<u64>,
}

/// Refuses those who do not run the server. Where there are credentials, others have shown by now that they may.
fn check_right(state: &AppState, request: &Request) -> Result<(), Problem> {
    if Administrator::is_asking(request.extensions()) || !state.access().is_open() {
        return Ok(());
    }
    Err(Problem::new(StatusCode::FORBIDDEN, "forbidden")
        .detail("this is for whoever runs the server, at its admin listener"))
}

/// Forget what is remembered
///
/// Of the keys and nodes below the prefix; the next reads ask the backend. Loads under way are not remembered.
#[utoipa::path(
    delete,
    path = PREFIX.template,
    tag = "service",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("prefix" = String, Path, description = "A prefix of keys: whole names"),
    ),
    responses(
        (status = 200, description = "It is forgotten", body = Purged),
        (status = 400, description = "The path names nothing"),
        (status = 403, description = "Not at the admin listener"),
        (status = 404, description = "No such mount"),
    )
)]
pub(crate) async fn purge(State(state): State<AppState>, request: Request) -> Result<Json<Purged>, Problem> {
    check_right(&state, &request)?;
    let NodeTarget { mount, path, .. } =
        NodeTarget::new(&state, &PREFIX, request.uri(), request.extensions())?;
    let cpu = state.cpu().clone();
    // Everything is looked at once: that is work for a thread of its own.
    let purged = cpu.run(move || {
        let forgotten = state.caches().purge(&mount.remembered_as, path.prefix());
        Purged { forgotten, answers: state.answers().purge() }
    });
    Ok(Json(purged.await?))
}

/// Forget what is remembered of a mount
#[utoipa::path(
    delete,
    path = MOUNT.template,
    tag = "service",
    params(("mount" = String, Path, description = "Name of a mount")),
    responses(
        (status = 200, description = "It is forgotten", body = Purged),
        (status = 400, description = "The path names nothing"),
        (status = 403, description = "Not at the admin listener"),
        (status = 404, description = "No such mount"),
    )
)]
pub(crate) async fn purge_root(state: State<AppState>, request: Request) -> Result<Json<Purged>, Problem> {
    purge(state, request).await
}

/// Load what will be read
///
/// The documents of all nodes below the prefix, the indexes of shards, and decoded chunks up to a bound. Answers when that
/// is done or the time is over, and ends if nobody waits for the answer.
#[utoipa::path(
    post,
    path = PREFIX.template,
    tag = "service",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("prefix" = String, Path, description = "Path of a node; all below it are loaded too"),
        WarmQuery,
    ),
    responses(
        (status = 200, description = "What was loaded", body = PrefetchReport),
        (status = 400, description = "The path names nothing, or a parameter is not understood"),
        (status = 403, description = "Not at the admin listener"),
        (status = 404, description = "No such mount"),
        (status = 503, description = "The server is busy"),
    )
)]
pub(crate) async fn warm(
    State(state): State<AppState>,
    request: Request,
) -> Result<Json<PrefetchReport>, Problem> {
    check_right(&state, &request)?;
    let target = NodeTarget::new(&state, &PREFIX, request.uri(), request.extensions())?;
    let Query(query) = Query::<WarmQuery>::try_from_uri(request.uri())
        .map_err(|refused| Problem::from_class(ErrorClass::InvalidRequest).detail(refused.body_text()))?;
    let longest = state.deadline().mul_f64(0.9);
    let wanted = PrefetchRequest {
        level: query.level.unwrap_or_default(),
        bytes: query.bytes.unwrap_or(BYTES),
        until: Instant::now() + Duration::from_secs(query.seconds.unwrap_or(SECONDS)).min(longest),
    };
    let entrant = AdmissionRequest::new(Priority::Background, request.extensions());
    Ok(Json(warm_below(&state, &target, entrant, &wanted).await?))
}

/// Load what will be read of a mount
#[utoipa::path(
    post,
    path = MOUNT.template,
    tag = "service",
    params(("mount" = String, Path, description = "Name of a mount"), WarmQuery),
    responses(
        (status = 200, description = "What was loaded", body = PrefetchReport),
        (status = 400, description = "A parameter is not understood"),
        (status = 403, description = "Not at the admin listener"),
        (status = 404, description = "No such mount"),
        (status = 503, description = "The server is busy"),
    )
)]
pub(crate) async fn warm_root(
    state: State<AppState>,
    request: Request,
) -> Result<Json<PrefetchReport>, Problem> {
    warm(state, request).await
}
