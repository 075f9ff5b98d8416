//! The routes that describe the server: service document, mounts, liveness, readiness and metrics.
//!
//! None of them waits for admission, so that they respond under overload.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::metrics::{self as metrics_text, CONTENT_TYPE};
use super::view;
use crate::auth::caller::{Administrator, Caller};
use crate::cache::DiskReads;
use crate::http::base_path::BasePath;
use crate::http::negotiate;
use crate::http::negotiate::Offer;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::services::lifecycle::Lifecycle;
use crate::services::memory_info::MemoryInfo;
use crate::services::mount::Mount;
use crate::services::mounts::Mounts;
use crate::services::readiness::{MountState, Readiness};
use crate::services::route::Route;
use crate::services::state::AppState;
use utoipa_axum::routes;

/// The service document.
pub(crate) const SERVICE: RouteSpec =
    RouteSpec::new("/", Resource::Mounts).admitted_by(AdmittedBy::Exempt).for_people();

/// The list of mounts.
pub(crate) const MOUNTS: RouteSpec =
    RouteSpec::new("/v1/mounts", Resource::Mounts).admitted_by(AdmittedBy::Exempt);

/// Liveness of the process.
pub(crate) const HEALTHZ: RouteSpec = RouteSpec::new("/healthz", Resource::Public).answers_under_load();

/// Readiness of the backends.
pub(crate) const READYZ: RouteSpec = RouteSpec::new("/readyz", Resource::Mounts).answers_under_load();

/// Metrics in OpenMetrics.
pub(crate) const METRICS: RouteSpec =
    RouteSpec::new("/metrics", Resource::Public).answers_under_load().never_encoded();

/// The routes of the server itself.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(&SERVICE, routes!(service_document)),
        Route::new(&MOUNTS, routes!(list_mounts)),
        Route::new(&HEALTHZ, routes!(healthz)),
        Route::new(&READYZ, routes!(readyz)),
        Route::new(&METRICS, routes!(metrics)),
    ]
}

static OFFERS: &[Offer] = &[
    Offer { name: "json", media_type: "application/json" },
    Offer { name: "html", media_type: "text/html" },
];

/// The software, its version, and the paths of its main resources.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServiceDocument {
    /// Name of the software.
    #[schema(example = "zarrd")]
    name: &'static str,
    /// Version of the software.
    version: &'static str,
    /// Path of the documentation.
    documentation: String,
    /// Path of the OpenAPI document.
    openapi: String,
    /// Path of the list of mounts.
    mounts: String,
    /// Paths of the stores, one for each mount that the caller may see.
    stores: Vec<String>,
}

/// A mount.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MountInfo {
    /// Name of the mount.
    name: String,
    /// Path of its store.
    #[schema(example = "/store/demo/")]
    store: String,
    /// Paths of all its representations.
    links: MountLinks,
    /// Kind of its backend: `local`, `memory`, `s3`, `gcs`, `azure`, `http` or `zip`.
    kind: &'static str,
    /// Whether values can be written and erased.
    writable: bool,
    /// Whether DELETE of a prefix erases all keys below it.
    allow_prefix_delete: bool,
    /// State of its backend: `ready` or `unavailable`.
    state: &'static str,
    /// Reason for `unavailable`, such as `timed-out`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "timed-out")]
    why: Option<&'static str>,
    /// How its reads were answered since the server started.
    reads: MountReads,
}

/// Reads of a mount, by the cache that could answer them.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct MountReads {
    /// Decoded chunks: from memory, or from the store.
    memory: CacheReads,
    /// Stored values and parts of them: from the disk cache, or from the backend. Absent without a disk cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<CacheReads>,
    /// Chunks of `/rechunk` and `/pyramid` that were not in memory: from the disk cache, or encoded. Absent without a disk cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    derived: Option<CacheReads>,
}

/// Reads that a cache answered, and those that it did not.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct CacheReads {
    /// Reads that it answered.
    hits: u64,
    /// Reads that went on to the store.
    misses: u64,
}

impl MountReads {
    /// The reads of each mount, by its name.
    fn by_mount(state: &AppState) -> BTreeMap<Box<str>, Self> {
        let chunks = state.counts.reads.chunks().into_iter();
        let mut reads: BTreeMap<_, _> = chunks
            .map(|(name, hits, misses)| {
                (name, Self { memory: CacheReads { hits, misses }, disk: None, derived: None })
            })
            .collect();
        let on_disk = state.engine.caches.disk_report().unwrap_or_default();
        for (name, DiskReads { hits, misses, .. }) in on_disk.mounts {
            if let Some(reads) = reads.get_mut(&name) {
                reads.disk = Some(CacheReads { hits, misses });
            }
        }
        for (name, DiskReads { hits, misses, .. }) in on_disk.derived {
            if let Some(reads) = reads.get_mut(&name) {
                reads.derived = Some(CacheReads { hits, misses });
            }
        }
        reads
    }
}

/// Paths of the representations of a mount.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MountLinks {
    /// The store: keys and values as they are stored.
    store: String,
    /// The plain view, for clients that do not support extensions.
    plain: String,
    /// The view with sharded arrays as arrays of their inner chunks.
    unshard: String,
    /// The rechunked view with chunks of up to 1 MiB and no codec. Replace `auto` and `raw` to select another chunk shape
    /// or codec.
    #[schema(example = "/rechunk/demo/auto/raw/")]
    rechunk: String,
    /// The view of arrays as images with coarser levels, as `auto` reduces them, in chunks of up to 1 MiB without a codec.
    #[schema(example = "/pyramid/demo/auto/auto/raw/")]
    pyramid: String,
    /// Normalised metadata of its nodes.
    nodes: String,
    /// Decoded elements of its arrays.
    data: String,
}

impl MountLinks {
    fn of(base: &BasePath, name: &str) -> Self {
        let link = |word: &str| format!("{}/{word}/{name}/", base.as_str());
        let (store, plain, unshard) = (link("store"), link("plain"), link("unshard"));
        let rechunk = format!("{}auto/raw/", link("rechunk"));
        let pyramid = format!("{}auto/auto/raw/", link("pyramid"));
        Self { store, plain, unshard, rechunk, pyramid, nodes: link("v1/nodes"), data: link("v1/data") }
    }
}

/// The mounts that the caller may see.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MountList {
    /// The mounts, sorted by name.
    mounts: Vec<MountInfo>,
    /// Memory limits of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<MemoryInfo>,
    /// The cache on a local disk, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_cache: Option<DiskCacheInfo>,
}

/// The cache on a local disk.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DiskCacheInfo {
    /// Bytes that its files may take.
    size: u64,
    /// Bytes that its files take.
    bytes: u64,
    /// Whether nothing is written for now, because the disk failed or is full.
    paused: bool,
}

/// Health of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`, `draining` or `unavailable`.
    status: &'static str,
    /// State of each mount: `ready` or `unavailable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    mounts: Option<std::collections::BTreeMap<String, &'static str>>,
    /// Reason for each mount that is not ready, such as `timed-out`, `backend-failed` or `overloaded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    why: Option<std::collections::BTreeMap<String, &'static str>>,
}

/// Read the service document
///
/// Name and version of the server, and the paths of its main resources. For browsers, which prefer HTML, a page with the
/// mounts and their first nodes.
#[utoipa::path(
    method(get, head),
    path = SERVICE.template,
    tag = "service",
    responses((status = 200, description = "The service document", content(
        (ServiceDocument = "application/json"),
        (String = "text/html"),
    )))
)]
pub(crate) async fn service_document(
    State(state): State<AppState>,
    base: BasePath,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let is_html = negotiate::choose(&headers, None, OFFERS)?.name == "html";
    if is_html && state.options.ui {
        return view::home(&state, &uri, &headers, &base, &caller).await;
    }
    let base = base.as_str();
    let document = ServiceDocument {
        name: "zarrd",
        version: env!("CARGO_PKG_VERSION"),
        documentation: format!("{base}/docs/"),
        openapi: format!("{base}/openapi.json"),
        mounts: format!("{base}/v1/mounts"),
        stores: known(&state.mounts, &caller).map(|mount| format!("{base}/store/{}/", mount.name)).collect(),
    };
    let body = if is_html {
        ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page(base, &document)).into_response()
    } else {
        Json(document).into_response()
    };
    Ok(([(header::VARY, "Accept")], body).into_response())
}

/// The mounts for which a caller has at least one right.
pub(crate) fn known<'a>(mounts: &'a Mounts, caller: &'a Caller) -> impl Iterator<Item = &'a Arc<Mount>> {
    mounts.iter().filter(|mount| caller.rights().can_see(&mount.name))
}

/// The service document as HTML. Mount names need no escaping: they consist of unreserved characters.
fn page(base: &str, document: &ServiceDocument) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>zarrd</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"icon\" href=\"{base}/favicon.svg\" type=\"image/svg+xml\">\n\
         <link rel=\"alternate icon\" href=\"{base}/favicon.ico\"></head>\n\
         <body><h1>zarrd {}</h1>\n<ul>\n",
        document.version
    );
    let fixed = [&document.documentation, &document.openapi, &document.mounts];
    for path in fixed.into_iter().chain(&document.stores) {
        page.push_str("<li><a href=\"");
        page.push_str(path);
        page.push_str("\">");
        page.push_str(path);
        page.push_str("</a></li>\n");
    }
    page.push_str("</ul></body></html>\n");
    page
}

/// List the mounts
///
/// For each mount that the caller may see: its paths, the kind and the state of its backend, and whether it is writable.
#[utoipa::path(
    method(get, head),
    path = MOUNTS.template,
    tag = "service",
    responses((status = 200, description = "The mounts", body = MountList))
)]
pub(crate) async fn list_mounts(
    State(state): State<AppState>,
    base: BasePath,
    caller: Caller,
) -> Json<MountList> {
    let states = state.readiness.check().await;
    let mut reads = MountReads::by_mount(&state);
    let state_of = |name: &str| states.get(name).copied();
    let mounts = known(&state.mounts, &caller).map(|mount| MountInfo {
        name: mount.name.clone(),
        store: format!("{}/store/{}/", base.as_str(), mount.name),
        links: MountLinks::of(&base, &mount.name),
        kind: mount.store.kind().as_str(),
        writable: mount.writable,
        allow_prefix_delete: mount.may_erase_prefixes(),
        state: state_of(&mount.name).map_or("unavailable", MountState::as_str),
        why: state_of(&mount.name).and_then(MountState::why),
        reads: reads.remove(mount.name.as_str()).unwrap_or_default(),
    });
    let mounts = mounts.collect();
    let disk = state.engine.caches.disk_report();
    let disk_cache =
        disk.map(|disk| DiskCacheInfo { size: disk.size, bytes: disk.bytes, paused: disk.is_paused });
    Json(MountList { mounts, memory: state.lifecycle.memory().cloned(), disk_cache })
}

/// Check liveness
#[utoipa::path(
    method(get, head),
    path = HEALTHZ.template,
    tag = "service",
    responses((status = 200, description = "The process responds", body = Health))
)]
pub(crate) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok", mounts: None, why: None })
}

/// Check readiness
///
/// 503 while the server drains before it stops, or when no backend responds. A single unavailable mount does not make the
/// server unavailable.
#[utoipa::path(
    method(get, head),
    path = READYZ.template,
    tag = "service",
    responses(
        (status = 200, description = "The server accepts requests", body = Health),
        (status = 503, description = "The server is draining, or no backend responds"),
    )
)]
pub(crate) async fn readyz(
    State(readiness): State<Arc<Readiness>>,
    State(lifecycle): State<Arc<Lifecycle>>,
    caller: Caller,
) -> Response {
    let states = readiness.check().await;
    // All mounts count towards readiness, but the response names only those that the caller may see.
    let named = states.iter().filter(|(name, _)| caller.rights().can_see(name));
    let mounts: std::collections::BTreeMap<_, _> =
        named.clone().map(|(name, state)| (name.clone(), state.as_str())).collect();
    let why: std::collections::BTreeMap<_, _> =
        named.filter_map(|(name, state)| Some((name.clone(), state.why()?))).collect();
    let status = if lifecycle.is_draining() {
        "draining"
    } else if states.values().any(|state| state.is_ready()) || states.is_empty() {
        "ok"
    } else {
        "unavailable"
    };
    if status == "ok" {
        let why = (!why.is_empty()).then_some(why);
        return Json(Health { status, mounts: Some(mounts), why }).into_response();
    }
    let words = |words: std::collections::BTreeMap<String, &'static str>| {
        words.into_iter().map(|(name, word)| (name, word.into())).collect::<serde_json::Map<_, _>>()
    };
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, status)
        .extension("mounts", words(mounts))
        .extension("why", words(why))
        .into_response()
}

/// Read the metrics
///
/// OpenMetrics 1.0 text for Prometheus. The metrics are served at the admin listener (`[server] admin_listen`), and at the
/// public listeners only with `[http] public_metrics`.
#[utoipa::path(
    method(get, head),
    path = METRICS.template,
    tag = "service",
    responses(
        (status = 200, description = "The metrics", content_type = "application/openmetrics-text"),
        (status = 404, description = "The metrics are served at the admin listener only"),
    )
)]
pub(crate) async fn metrics(State(state): State<AppState>, request: Request) -> Response {
    if !state.options.public_metrics && !Administrator::is_asking(request.extensions()) {
        return Problem::from_status(StatusCode::NOT_FOUND).into_response();
    }
    let headers =
        [(header::CONTENT_TYPE, CONTENT_TYPE), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (headers, metrics_text::text(&state).await).into_response()
}
