//! The server about itself: the service document, the mounts, liveness and readiness.
//!
//! None of these waits in the admission queue: they must answer when nothing else does.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::caller::Caller;
use crate::http::negotiate::{self, Offer};
use crate::http::problem::Problem;
use crate::http::router;
use crate::http::state::{AppState, Mount};
use crate::http::validators::JSON;

static OFFERS: &[Offer] = &[
    Offer { name: "json", media_type: "application/json" },
    Offer { name: "html", media_type: "text/html" },
];

/// What this server is and where things are.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ServiceDocument {
    /// Name of the software.
    #[schema(example = "zarrd")]
    name: &'static str,
    /// Its version.
    version: &'static str,
    /// Path of the documentation for people.
    documentation: &'static str,
    /// Path of the description for programs.
    openapi: &'static str,
    /// Path of the list of mounts.
    mounts: &'static str,
    /// Paths of the mounts' stores.
    stores: Vec<String>,
}

/// A mount.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MountInfo {
    /// Its name.
    name: String,
    /// Path of its store.
    #[schema(example = "/store/demo/")]
    store: String,
    /// Where else it is.
    links: MountLinks,
    /// Kind of its backend: `local`, `memory`, `s3`, `gcs`, `azure`, `http` or `zip`.
    kind: &'static str,
    /// Whether PUT and DELETE of keys are offered.
    writable: bool,
    /// Whether DELETE of prefixes is offered.
    allow_prefix_delete: bool,
    /// Whether its backend answers: `ready` or `unavailable`.
    state: &'static str,
}

/// Where a mount is, by what is shown of it.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MountLinks {
    /// Its store.
    store: String,
    /// The view that clients in use can open.
    plain: String,
    /// The view without shards.
    unshard: String,
    /// What its nodes are.
    nodes: String,
    /// Elements of its arrays.
    data: String,
}

impl MountLinks {
    fn of(name: &str) -> Self {
        let link = |word: &str| format!("/{word}/{name}/");
        let (store, plain, unshard) = (link("store"), link("plain"), link("unshard"));
        Self { store, plain, unshard, nodes: link("v1/nodes"), data: link("v1/data") }
    }
}

/// All mounts.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MountList {
    /// Sorted by name.
    mounts: Vec<MountInfo>,
}

/// How the server is.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Health {
    /// `ok`, `draining` or `unavailable`.
    status: &'static str,
    /// By mount: `ready` or `unavailable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    mounts: Option<std::collections::BTreeMap<String, &'static str>>,
}

fn state_word(ready: bool) -> &'static str {
    if ready { "ready" } else { "unavailable" }
}

/// Service document
#[utoipa::path(
    method(get, head),
    path = "/",
    tag = "service",
    responses((status = 200, description = "What this server is", content(
        (ServiceDocument = "application/json"),
        (String = "text/html"),
    )))
)]
pub(in crate::http) async fn service_document(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let document = ServiceDocument {
        name: "zarrd",
        version: env!("CARGO_PKG_VERSION"),
        documentation: "/docs/",
        openapi: "/openapi.json",
        mounts: "/v1/mounts",
        stores: known(&state, &caller).map(|mount| format!("/store/{}/", mount.name)).collect(),
    };
    let body = match negotiate::choose(&headers, None, OFFERS)?.name {
        "html" => ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page(&document)).into_response(),
        _ => Json(document).into_response(),
    };
    Ok(([(header::VARY, "Accept")], body).into_response())
}

/// The mounts with which a caller may do anything.
pub(super) fn known<'a>(state: &'a AppState, caller: &'a Caller) -> impl Iterator<Item = &'a Arc<Mount>> {
    state.mounts().filter(|mount| caller.rights().know(&mount.name))
}

/// The service document for people. Mount names need no escaping: they are unreserved characters only.
fn page(document: &ServiceDocument) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>zarrd</title></head>\n\
         <body><h1>zarrd {}</h1>\n<ul>\n",
        document.version
    );
    let fixed = [document.documentation, document.openapi, document.mounts];
    for path in fixed.into_iter().chain(document.stores.iter().map(String::as_str)) {
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
/// Their rights, the kind of their backend, and whether it answers.
#[utoipa::path(
    method(get, head),
    path = "/v1/mounts",
    tag = "service",
    responses((status = 200, description = "The mounts", body = MountList))
)]
pub(in crate::http) async fn list_mounts(State(state): State<AppState>, caller: Caller) -> Json<MountList> {
    let readiness = state.readiness().await;
    let mounts = known(&state, &caller).map(|mount| MountInfo {
        name: mount.name.clone(),
        store: format!("/store/{}/", mount.name),
        links: MountLinks::of(&mount.name),
        kind: mount.store.kind().name(),
        writable: mount.writable,
        allow_prefix_delete: mount.may_erase_prefixes(),
        state: state_word(readiness.get(&mount.name).copied().unwrap_or(false)),
    });
    Json(MountList { mounts: mounts.collect() })
}

/// Liveness
#[utoipa::path(
    method(get, head),
    path = "/healthz",
    tag = "service",
    responses((status = 200, description = "The process answers", body = Health))
)]
pub(in crate::http) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok", mounts: None })
}

/// Readiness
///
/// 503 while the server drains, and when no backend answers. One dead mount does not take the others with it.
#[utoipa::path(
    method(get, head),
    path = "/readyz",
    tag = "service",
    responses(
        (status = 200, description = "Requests are welcome", body = Health),
        (status = 503, description = "Draining, or no backend answers"),
    )
)]
pub(in crate::http) async fn readyz(State(state): State<AppState>, caller: Caller) -> Response {
    let readiness = state.readiness().await;
    // All count, though not all may be named.
    let named = readiness.iter().filter(|(name, _)| caller.rights().know(name));
    let mounts: std::collections::BTreeMap<_, _> =
        named.map(|(name, &ready)| (name.clone(), state_word(ready))).collect();
    let status = if state.is_draining() {
        "draining"
    } else if readiness.values().any(|&ready| ready) || readiness.is_empty() {
        "ok"
    } else {
        "unavailable"
    };
    if status == "ok" {
        return Json(Health { status, mounts: Some(mounts) }).into_response();
    }
    let mounts: serde_json::Map<_, _> = mounts.into_iter().map(|(name, word)| (name, word.into())).collect();
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, status).extension("mounts", mounts).into_response()
}

/// Describe this API to programs
#[utoipa::path(
    method(get, head),
    path = "/openapi.json",
    tag = "service",
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json"))
)]
pub(in crate::http) async fn openapi_json() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, JSON)], router::openapi())
}
