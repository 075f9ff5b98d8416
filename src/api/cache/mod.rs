//! `/v1/cache/{mount}/{prefix}`: purges (DELETE) or prefetches (POST) the cache entries of the keys and nodes below a prefix.
//!
//! For operators, at the admin listener. Correctness does not need a purge: each entry is valid for the object versions
//! from which it was derived. A purge is for backends with unreliable versions, and for measurements.

pub(crate) mod prefetch;
mod prefetch_view;

use std::time::Duration;

use axum::Json;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};

use crate::admission::{AdmissionRequest, Priority};
use crate::api::documented::MountParam;
use crate::auth::caller::Administrator;
use crate::cache::PurgeOutcome;
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::key::NodePath;
use crate::services::access_control::AccessControl;
use crate::services::extract::NodeTarget;
use crate::services::pinned::PinnedMounts;
use crate::services::route::Route;
use crate::services::state::AppState;
use crate::store::PinnedVersion;
use prefetch::{PrefetchLevel, PrefetchReport, PrefetchRequest, prefetch as warm_below};
use prefetch_view::{prefetch_view, view_of};
use utoipa_axum::routes;

/// What is cached of the keys below a prefix.
pub(crate) const PREFIX: RouteSpec = RouteSpec::new("/v1/cache/{mount}/{*prefix}", Resource::Cache)
    .admitted_by(AdmittedBy::Exempt)
    .at_admin_listener();

/// What is cached of a mount.
pub(crate) const MOUNT: RouteSpec = RouteSpec::new("/v1/cache/{mount}", Resource::Cache)
    .with_slash("/v1/cache/{mount}/")
    .admitted_by(AdmittedBy::Exempt)
    .at_admin_listener();

/// The routes of caches.
pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(&PREFIX, routes!(purge, warm)), Route::new(&MOUNT, routes!(purge_root, warm_root))]
}

/// Default limit of a prefetch, in bytes of decoded chunks.
const BYTES: u64 = 64 << 20;
/// Default time limit of a prefetch, in seconds.
const SECONDS: u64 = 30;

/// The number of cache entries that were purged.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Purged {
    /// Entries below the prefix: decoded chunks, shard indexes, nodes, values and re-encoded chunks.
    #[serde(rename = "forgotten")]
    entries: u64,
    /// Entries of the response cache. It is purged for all mounts; the remaining entries of the other caches rebuild it.
    answers: u64,
    /// Whether the purge holds after a restart too: `false` where the disk cache can neither write it nor remove its files. Then
    /// delete the directory of the disk cache before the next start.
    durable: bool,
}

/// The extent of a prefetch.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct WarmQuery {
    /// `metadata`: the metadata documents of all nodes. `indexes` (default): also the shard indexes. `chunks`: also the
    /// decoded chunks.
    #[param(inline)]
    level: Option<PrefetchLevel>,
    /// Maximum number of bytes of decoded chunks. The default is 64 MiB.
    bytes: Option<u64>,
    /// Maximum duration in seconds. The default is 30; it is always less than the request timeout.
    seconds: Option<u64>,
    /// A view, as in its URLs: `rechunk/{chunks}/{codec}` or `pyramid/{method}/{chunks}/{codec}`. All of its documents and
    /// chunks are loaded, in place of what `level` names; those that are built in the background too.
    #[param(example = "pyramid/auto/auto/zstd")]
    view: Option<String>,
}

/// Rejects a caller who is not an operator. With access control configured, the caller's rights were checked before.
fn check_right(access: &AccessControl, request: &Request) -> Result<(), Problem> {
    if Administrator::is_asking(request.extensions()) || !access.rules().is_open() {
        return Ok(());
    }
    Err(Problem::new(StatusCode::FORBIDDEN, "forbidden")
        .detail("caches can be managed only through the admin listener (`[server] admin_listen`)"))
}

/// Purge the caches below a prefix
///
/// Removes the cache entries of all keys and nodes below the prefix. The next reads go to the backend. A load that is in
/// flight during the purge does not enter a cache.
#[utoipa::path(
    delete,
    path = PREFIX.template,
    tag = "service",
    params(
        MountParam,
        ("prefix" = String, Path, description = "A prefix of keys, made of whole path segments"),
    ),
    responses(
        (status = 200, description = "The number of purged entries", body = Purged),
        (status = 400, description = "The path is not a valid prefix"),
        (status = 403, description = "Caches can be managed only through the admin listener or with sufficient credentials"),
        (status = 404, description = "No mount has this name"),
    )
)]
pub(crate) async fn purge(State(state): State<AppState>, request: Request) -> Result<Json<Purged>, Problem> {
    check_right(&state.access, &request)?;
    let NodeTarget { mount, path, .. } =
        NodeTarget::new(&state.mounts, &PREFIX, request.uri(), request.extensions())?;
    let cpu = state.engine.cpu.clone();
    // A purge visits every cache entry, which would block the reactor.
    let purged = cpu.run(move || {
        mount.store.purge_held();
        let PurgeOutcome { entries, is_durable: durable } =
            state.engine.caches.purge(&mount.cache_name, path.prefix());
        Purged { entries, answers: state.responses.purge(), durable }
    });
    Ok(Json(purged.await?))
}

/// Purge the caches of a mount
#[utoipa::path(
    delete,
    path = MOUNT.template,
    tag = "service",
    params(MountParam),
    responses(
        (status = 200, description = "The number of purged entries", body = Purged),
        (status = 400, description = "The path is not a valid prefix"),
        (status = 403, description = "Caches can be managed only through the admin listener or with sufficient credentials"),
        (status = 404, description = "No mount has this name"),
    )
)]
pub(crate) async fn purge_root(state: State<AppState>, request: Request) -> Result<Json<Purged>, Problem> {
    purge(state, request).await
}

/// Prefetch into the caches below a prefix
///
/// Loads the metadata documents of all nodes below the prefix, their shard indexes, and decoded chunks up to a limit.
/// Responds when everything is loaded or the time is over. The prefetch stops if the client disconnects.
#[utoipa::path(
    post,
    path = PREFIX.template,
    tag = "service",
    params(
        MountParam,
        ("prefix" = String, Path, description = "Path of a node; the nodes below it are loaded too"),
        WarmQuery,
    ),
    responses(
        (status = 200, description = "The amount that was loaded", body = PrefetchReport),
        (status = 400, description = "The path is not a valid prefix, or a parameter is invalid"),
        (status = 403, description = "Caches can be managed only through the admin listener or with sufficient credentials"),
        (status = 404, description = "No mount has this name, the mount has no such version, or there is no node at or below the path"),
        (status = 503, description = "The server is overloaded; retry after the time in `Retry-After`"),
    )
)]
pub(crate) async fn warm(
    State(state): State<AppState>,
    request: Request,
) -> Result<Json<PrefetchReport>, Problem> {
    check_right(&state.access, &request)?;
    let target = NodeTarget::new(&state.mounts, &PREFIX, request.uri(), request.extensions())?;
    let path = target.path.as_str();
    let has_versions = target.mount.store.served_version().is_some();
    if has_versions && path.starts_with('@') && PinnedVersion::of_text(path).is_none() {
        return Err(Problem::from_class(ErrorClass::NotFound)
            .detail("the path begins with the name of no version: `@branch.NAME`, `@tag.NAME` or `@ID`"));
    }
    let Query(query) = Query::<WarmQuery>::try_from_uri(request.uri())
        .map_err(|refused| Problem::from_query_error(&refused))?;
    let longest = state.options.response_timeout.mul_f64(0.9);
    let wanted = PrefetchRequest {
        level: query.level.unwrap_or_default(),
        bytes: query.bytes.unwrap_or(BYTES),
        until: Instant::now() + Duration::from_secs(query.seconds.unwrap_or(SECONDS)).min(longest),
    };
    let entrant = AdmissionRequest::new(Priority::Background, request.extensions());
    let loaded = if let Some(view) = &query.view {
        let mounts = PinnedMounts::of(request.extensions(), &state.mounts);
        let view = view_of(mounts, &target.mount.name, view)?;
        prefetch_view(&state.traffic.admission, &state.engine, &target, &view, entrant, &wanted).await?
    } else {
        warm_below(&state.traffic.admission, &state.engine, &target, entrant, &wanted).await?
    };
    if loaded.is_of_nothing() && target.path != NodePath::root() {
        let (path, mount) = (&target.path, &target.mount.name);
        let detail = format!("there is no array or group at or below `{path}` of the mount `{mount}`");
        return Err(Problem::from_class(ErrorClass::NotFound).detail(detail));
    }
    Ok(Json(loaded))
}

/// Prefetch into the caches of a mount
#[utoipa::path(
    post,
    path = MOUNT.template,
    tag = "service",
    params(MountParam, WarmQuery),
    responses(
        (status = 200, description = "The amount that was loaded", body = PrefetchReport),
        (status = 400, description = "A parameter is invalid"),
        (status = 403, description = "Caches can be managed only through the admin listener or with sufficient credentials"),
        (status = 404, description = "No mount has this name"),
        (status = 503, description = "The server is overloaded; retry after the time in `Retry-After`"),
    )
)]
pub(crate) async fn warm_root(
    state: State<AppState>,
    request: Request,
) -> Result<Json<PrefetchReport>, Problem> {
    warm(state, request).await
}
