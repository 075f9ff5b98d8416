//! The one list of routes: from it come the router, the `OpenAPI` document, and the layers around both.
//!
//! `openapi/openapi.json` is generated from here and checked in; a test compares the two.

use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::routes::{data, list, nodes, partial, patch, service, store, write};
use super::state::AppState;
use super::{admission, cors, frame};

#[derive(OpenApi)]
#[openapi(
    info(title = "zarrd", description = "An HTTP array server for Zarr. Errors are `application/problem+json`."),
    tags(
        (name = "nodes", description = "Arrays and groups of any format version, in one form"),
        (name = "data", description = "Decoded elements"),
        (name = "store", description = "The abstract store interface of Zarr, byte for byte"),
        (name = "service", description = "The server about itself"),
    )
)]
struct Api;

/// Routes that decode, or move many parts: they are admitted by what each holds in memory.
fn decoded() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(partial::post_partial))
        .routes(routes!(partial::post_erase))
        .routes(routes!(nodes::get_node))
        .routes(routes!(nodes::get_root_node))
        .routes(routes!(data::get_data))
        .routes(routes!(data::get_root_data))
        .routes(routes!(data::get_chunk))
        // The router's `{*path}` is never empty: the root with a slash is a route of its own.
        .route("/v1/nodes/{mount}/", get(nodes::get_root_node))
        .route("/v1/data/{mount}/", get(data::get_root_data))
}

/// Routes that move stored bytes: they pass through admission.
fn stored() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(with_other_methods(routes!(
            store::get_key,
            write::put_key,
            patch::patch_key,
            write::delete_key
        )))
        .routes(with_other_methods(routes!(list::list_root, write::delete_root)))
        .routes(with_other_methods(routes!(store::get_mount)))
}

/// Routes that answer whatever the load.
fn always() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(service::service_document))
        .routes(routes!(service::list_mounts))
        .routes(routes!(service::healthz))
        .routes(routes!(service::readyz))
        .routes(routes!(service::openapi_json))
}

/// The store routes say which other methods there are by the rights of the mount.
fn with_other_methods(
    (schemas, paths, methods): UtoipaMethodRouter<AppState>,
) -> UtoipaMethodRouter<AppState> {
    (schemas, paths, methods.fallback(store::other_method))
}

/// The whole HTTP surface over a state.
///
/// Layers from the outermost inwards: request id, log and problem documents; cross-origin headers; limits; panics;
/// the deadline; admission, on the routes that move stored bytes.
pub fn router(state: AppState) -> axum::Router {
    let admit = from_fn_with_state(state.clone(), admission::admit);
    let (routes, _) = always().merge(decoded()).merge(stored().route_layer(admit)).split_for_parts();
    // `none` keeps the page from asking a validator on the internet.
    let documentation = SwaggerUi::new("/docs").config(Config::new(["/openapi.json"]).validator_url("none"));
    routes
        .merge(documentation)
        .fallback(frame::no_route)
        .method_not_allowed_fallback(frame::no_method)
        .layer(from_fn_with_state(state.clone(), frame::deadline))
        .layer(CatchPanicLayer::custom(frame::panicked))
        .layer(from_fn_with_state(state.clone(), frame::limit))
        .layer(from_fn_with_state(state.clone(), cors::share))
        .layer(from_fn(frame::observe))
        .with_state(state)
}

/// The `OpenAPI` document of all routes: JSON, indented, the same for the same build, with a newline at its end.
#[must_use]
pub fn openapi() -> String {
    let (_, mut api) = always().merge(decoded()).merge(stored()).split_for_parts();
    api.paths.paths = std::mem::take(&mut api.paths.paths)
        .into_iter()
        .map(|(path, mut item)| {
            // One handler serves GET and HEAD; its two operations need two names.
            if let Some(head) = &mut item.head {
                head.operation_id = head.operation_id.take().map(|id| format!("{id}_head"));
            }
            // The router's mark for "the rest of the path" is no OpenAPI.
            (path.replace("{*", "{"), item)
        })
        .collect();
    let mut text = api.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}
