//! The one list of routes: from it come the router, the `OpenAPI` document, and the layers around both.
//!
//! The store routes stand in two routers: below `/store/{mount}`, and at the root path where a mount has a host or a
//! listener of its own. There every path is a key or a prefix of it. `site` chooses between them, and says which mount
//! it is.
//!
//! `openapi/openapi.json` is generated from here and checked in; a test compares the two.

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::frame::Route;
use super::routes::{data, list, nodes, partial, patch, rechunk, s3, service, store, vectors, views, write};
use super::state::AppState;
use super::{admission, cors, frame};

#[derive(OpenApi)]
#[openapi(
    paths(
        vectors::summary::of_level,
        vectors::chunks::of_box,
        vectors::chunks::of_one,
        vectors::vertices::answer,
        vectors::amplification::of_box,
        vectors::objects::of_level,
        vectors::objects::of_one,
        vectors::objects::vertices_of,
        vectors::objects::edges_of,
        vectors::links::of_box,
        vectors::stats::of_level,
        vectors::validate::answer,
    ),
    info(title = "zarrd", description = "An HTTP array server for Zarr. Errors are `application/problem+json`."),
    tags(
        (name = "nodes", description = "Arrays and groups of any format version, in one form"),
        (name = "data", description = "Decoded elements"),
        (name = "vectors", description = "Points, lines and meshes in Zarr Vector Format"),
        (name = "store", description = "The abstract store interface of Zarr, byte for byte. The same URLs \
            speak WebDAV: PROPFIND, and MKCOL, COPY and MOVE on writable mounts"),
        (name = "views", description = "What is stored, shown as something its clients can use better. Read only"),
        (name = "s3", description = "The reading part of S3's API over the same mounts; errors are S3's XML"),
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
        .routes(routes!(vectors::get_vectors, vectors::post_vectors))
        .routes(routes!(vectors::get_root_vectors))
        // The router's `{*path}` is never empty: the root with a slash is a route of its own.
        .route("/v1/nodes/{mount}/", get(nodes::get_root_node))
        .route("/v1/data/{mount}/", get(data::get_root_data))
        .route("/v1/vectors/{mount}/", get(vectors::get_root_vectors))
}

/// Routes that move stored bytes: they pass through admission.
fn stored() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(of_keys())
        .routes(of_the_root())
        .routes(with_other_methods(routes!(store::get_mount)))
        .merge(viewed())
}

/// The routes of views, which answer as the store routes do.
fn viewed() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(with_other_methods(routes!(views::get_plain_key)))
        .routes(with_other_methods(routes!(views::list_plain_root)))
        .routes(with_other_methods(routes!(views::get_plain_mount)))
        .routes(with_other_methods(routes!(views::get_unshard_key)))
        .routes(with_other_methods(routes!(views::list_unshard_root)))
        .routes(with_other_methods(routes!(views::get_unshard_mount)))
        .routes(with_other_methods(routes!(rechunk::get_key)))
        .routes(with_other_methods(routes!(rechunk::list_root)))
        .routes(with_other_methods(routes!(rechunk::get_root)))
}

/// The store routes of keys and prefixes.
fn of_keys() -> UtoipaMethodRouter<AppState> {
    with_other_methods(routes!(store::get_key, write::put_key, patch::patch_key, write::delete_key))
}

/// The store routes of a mount's root.
fn of_the_root() -> UtoipaMethodRouter<AppState> {
    with_other_methods(routes!(list::list_root, write::delete_root))
}

/// Routes that speak S3: a mount is a bucket, and a slash at its end means nothing. They pass through admission.
fn s3_dialect() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(with_s3_errors(routes!(s3::bucket::list_buckets)))
        .routes(with_s3_errors(routes!(s3::bucket::get_bucket)))
        .routes(with_s3_errors(routes!(s3::object::get_object)))
        .route("/s3", get(s3::bucket::list_buckets).fallback(s3::other_method))
        .route("/s3/{mount}/", get(s3::bucket::get_bucket).fallback(s3::other_method))
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

/// The S3 routes say of other methods what S3 would.
fn with_s3_errors((schemas, paths, methods): UtoipaMethodRouter<AppState>) -> UtoipaMethodRouter<AppState> {
    (schemas, paths, methods.fallback(s3::other_method))
}

/// The routes of the whole surface.
pub(super) fn all(state: AppState) -> axum::Router {
    let (routes, _) =
        always().merge(decoded()).merge(admitted(stored().merge(s3_dialect()), &state)).split_for_parts();
    // `none` keeps the page from asking a validator on the internet.
    let documentation = SwaggerUi::new("/docs").config(Config::new(["/openapi.json"]).validator_url("none"));
    framed(routes.merge(documentation), state)
}

/// The store routes of whichever mount is at the root path.
pub(super) fn rooted(state: AppState) -> axum::Router {
    let ((_, _, key), (_, _, root)) = (of_keys(), of_the_root());
    let routes = OpenApiRouter::new().route("/{*key}", key).route("/", root);
    framed(admitted(routes, &state).into(), state)
}

/// Routes that pass through admission.
fn admitted(routes: OpenApiRouter<AppState>, state: &AppState) -> OpenApiRouter<AppState> {
    let admit = |State(state): State<AppState>, request: Request, next: Next| async move {
        // OPTIONS touches no store.
        if request.method() == Method::OPTIONS {
            return next.run(request).await;
        }
        admission::admit(&state, next.run(request)).await
    };
    routes.route_layer(from_fn_with_state(state.clone(), admit))
}

/// Routes with what every request passes through. It is one layer, because each layer's clones and boxes cost as much as
/// all that these do.
fn framed(routes: axum::Router<AppState>, state: AppState) -> axum::Router {
    let pass = |State(state): State<AppState>, request: Request, next: Next| async move {
        let route = request.extensions().get::<MatchedPath>().cloned().map_or(Route::None, Route::Matched);
        pass(&state, route, request, |request| next.run(request)).await
    };
    routes
        .fallback(frame::no_route)
        .method_not_allowed_fallback(frame::no_method)
        .layer(CatchPanicLayer::custom(frame::panicked))
        .layer(from_fn_with_state(state.clone(), pass))
        .with_state(state)
}

/// The way of a request to its route and back.
///
/// Into it: request id, limits, the deadline. Out of it: the dialect of S3, cross-origin headers, problem documents, the
/// log. Further in stand the catching of panics and, where stored bytes are moved, admission.
pub(super) async fn pass<F: Future<Output = Response>>(
    state: &AppState,
    route: Route,
    mut request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let dialect = s3::Dialect::of(&route, request.uri());
    let observed = frame::Observed::begin(route, &mut request);
    let sharing = cors::Sharing::of(&request);
    let method = request.method().clone();
    let mut answer = match frame::check(state, &request) {
        Ok(()) => frame::in_time(state, &method, next(request)).await,
        Err(problem) => problem.into_response(),
    };
    if let Some(dialect) = dialect {
        dialect.speak(observed.id(), &mut answer);
    }
    sharing.put(&state.options().cors, answer.headers_mut());
    observed.end(answer)
}

/// The `OpenAPI` document of all routes: JSON, indented, the same for the same build, with a newline at its end.
#[must_use]
pub fn openapi() -> String {
    let (_, mut api) = always().merge(decoded()).merge(stored()).merge(s3_dialect()).split_for_parts();
    super::document::complete(&mut api);
    let mut text = api.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}
