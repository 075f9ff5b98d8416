//! The one list of routes: from it come the router, the `OpenAPI` document, and the layers around both.
//!
//! The store routes stand in two routers: below `/store/{mount}`, and at the root path where a mount has a host or a
//! listener of its own. There every path is a key or a prefix of it. `site` chooses between them, and says which mount
//! it is.
//!
//! `openapi/openapi.json` is generated from here and checked in; a test compares the two.

use std::sync::{Arc, LazyLock};

use axum::body::HttpBody;
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get};
use bytes::Bytes;
use serde_json::json;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument;
use utoipa::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::admission::{AdmissionRequest, ClientBucket};
use super::base::BasePath;
use super::caller::Administrator;
use super::compression::{self, Wish};
use super::extract::RootMount;
use super::frame::Route;
use super::routes::{
    cache, data, icon, list, nodes, partial, patch, rechunk, s3, service, store, vectors, views, write,
};
use super::state::{AppState, Mount};
use super::{access, admission, cors, document, frame, origin};
use crate::store::Version;

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
        (name = "store", description = "The abstract store interface of Zarr, byte for byte. The same URLs \
            speak WebDAV: PROPFIND, and MKCOL, COPY and MOVE on writable mounts"),
        (name = "nodes", description = "Arrays and groups of any format version, in one form"),
        (name = "data", description = "Decoded elements"),
        (name = "views", description = "What is stored, shown as something its clients can use better. Read only"),
        (name = "s3", description = "The reading part of S3's API over the same mounts; errors are S3's XML"),
        (name = "service", description = "The server about itself"),
        (name = "vectors", description = "Points, lines and meshes in Zarr Vector Format"),
    )
)]
struct Api;

/// Routes that decode, or move many parts: they are admitted by what each holds in memory.
fn decoded() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(partial::post_partial))
        .routes(routes!(partial::post_erase))
        .routes(routes!(data::get_data))
        .routes(routes!(data::get_root_data))
        .routes(routes!(data::get_chunk))
        .routes(routes!(vectors::get_vectors, vectors::post_vectors))
        .routes(routes!(vectors::get_root_vectors))
        // The router's `{*path}` is never empty: the root with a slash is a route of its own.
        .route("/v1/data/{mount}/", get(data::get_root_data))
        .route("/v1/vectors/{mount}/", get(vectors::get_root_vectors))
}

/// Routes that move stored bytes, or tell of them: they pass through admission.
fn stored() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(nodes::get_node))
        .routes(routes!(nodes::get_root_node))
        .route("/v1/nodes/{mount}/", get(nodes::get_root_node))
        .routes(key_routes())
        .routes(root_mount_routes())
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
fn key_routes() -> UtoipaMethodRouter<AppState> {
    with_other_methods(routes!(store::get_key, write::put_key, patch::patch_key, write::delete_key))
}

/// The store routes of a mount's root.
fn root_mount_routes() -> UtoipaMethodRouter<AppState> {
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
fn always_answered() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(service::service_document))
        .routes(routes!(service::list_mounts))
        .routes(routes!(service::healthz))
        .routes(routes!(service::readyz))
        .routes(routes!(service::openapi_json))
        .routes(routes!(service::metrics))
        .route("/favicon.ico", get(icon::ico))
        .route("/favicon.svg", get(icon::svg))
        .merge(cache_routes())
}

/// What is remembered of keys and nodes.
fn cache_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(cache::purge, cache::warm))
        .routes(routes!(cache::purge_root, cache::warm_root))
        .route("/v1/cache/{mount}/", delete(cache::purge_root).post(cache::warm_root))
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

/// The routes of the whole surface and what is said of them, made once: to describe them takes longer than to serve them.
struct Surface {
    /// Those that pass through admission.
    admitted: axum::Router<AppState>,
    others: axum::Router<AppState>,
    /// The store routes of whichever mount is at the root path.
    rooted: axum::Router<AppState>,
    /// The routes of whoever runs the server.
    admin: axum::Router<AppState>,
    api: utoipa::openapi::OpenApi,
}

static SURFACE: LazyLock<Surface> = LazyLock::new(|| {
    let (others, mut api) = always_answered().merge(decoded()).split_for_parts();
    let (admitted, described) = stored().merge(s3_dialect()).split_for_parts();
    api.merge(described);
    // `none` keeps the page from asking a validator on the internet. The page finds the document whatever stands before
    // both, and lists each route once: whoever reads it knows what HEAD is.
    let documentation =
        SwaggerUi::new("/docs").config(Config::new(["../openapi.json?head=no"]).validator_url("none"));
    let ((_, _, key), (_, _, root)) = (key_routes(), root_mount_routes());
    let admin = OpenApiRouter::new()
        .routes(routes!(service::healthz))
        .routes(routes!(service::readyz))
        .routes(routes!(service::metrics))
        .merge(cache_routes());
    Surface {
        admitted,
        others: others.merge(documentation),
        rooted: axum::Router::new().route("/{*key}", key).route("/", root),
        admin: admin.into(),
        api,
    }
});

/// The routes of whoever runs the server. They are at a listener of their own, and need no other right than to reach it.
pub(super) fn admin(state: AppState) -> axum::Router {
    framed(SURFACE.admin.clone(), state)
}

/// The templates of all routes.
pub(super) fn templates() -> impl Iterator<Item = &'static str> {
    // Beside those of the API document: a key where a mount is the store at the root path, the documentation, the icon.
    let others = ["/{*key}", "/docs", "/docs/{*rest}", "/favicon.ico", "/favicon.svg"];
    SURFACE.api.paths.paths.keys().map(String::as_str).chain(others)
}

/// The routes of the whole surface.
pub(super) fn all(state: AppState) -> axum::Router {
    framed(SURFACE.others.clone().merge(admitted(SURFACE.admitted.clone(), &state)), state)
}

/// The store routes of whichever mount is at the root path.
pub(super) fn root_mount(state: AppState) -> axum::Router {
    framed(admitted(SURFACE.rooted.clone(), &state), state)
}

/// Routes that pass through admission.
fn admitted(routes: axum::Router<AppState>, state: &AppState) -> axum::Router<AppState> {
    let admit = |State(state): State<AppState>, request: Request, next: Next| async move {
        // OPTIONS touches no store.
        if request.method() == Method::OPTIONS {
            return next.run(request).await;
        }
        let template = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        let entrant = AdmissionRequest::stored(template, method, uri, headers, request.extensions());
        admission::admit(&state, entrant, || next.run(request)).await
    };
    routes.route_layer(from_fn_with_state(state.clone(), admit))
}

/// Routes with what every request passes through. It is one layer, because each layer's clones and boxes cost as much as
/// all that these do.
fn framed(routes: axum::Router<AppState>, state: AppState) -> axum::Router {
    let pass = |State(state): State<AppState>, request: Request, next: Next| async move {
        let route = request.extensions().get::<MatchedPath>().cloned().map_or(Route::None, Route::Matched);
        let rooted = request.extensions().get().map(|RootMount(mount)| Arc::clone(mount));
        run_middleware(&state, route, rooted.as_ref(), request, move |request| next.run(request)).await
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
/// Into it: request id, limits of the request and of memory, whether the caller and its page may do that and how often, the
/// deadline. Out of it: the dialect of S3, cross-origin headers, problem documents, content codings, the log. Further in stand
/// the catching of panics and, where stored bytes are moved, admission. `rooted` is the mount that is the store at the root
/// path, if one is.
pub(super) async fn run_middleware<F: Future<Output = Response>>(
    state: &AppState,
    route: Route,
    rooted: Option<&Arc<Mount>>,
    mut request: Request,
    next: impl FnOnce(Request) -> F + Clone,
) -> Response {
    let dialect = s3::ErrorFormat::of(&route, request.uri());
    let is_health = route.is_health();
    // What a request is given on its way does not count.
    let checked = frame::check_limits(state, &request);
    let observed = frame::RequestRecord::begin(state, route.clone(), &mut request);
    // Nothing at the listener of whoever runs the server is for pages of other origins.
    let is_admins = Administrator::is_asking(request.extensions());
    let sharing = (!is_admins).then(|| cors::CorsRequest::of(&request));
    let method = request.method().clone();
    let wish = Wish::of(&route, &request);
    let let_in = async {
        checked?;
        if !is_health {
            frame::check_pressure(state)?;
        }
        let leave = access::authorize(state, &route, rooted, &mut request).await?;
        origin::check(state, route.template(), &request)?;
        let rates = state.rates().filter(|_| !is_health && !is_admins);
        let rated = rates.map(|rates| (rates, ClientBucket::of(request.extensions())));
        if let Some((rates, share)) = rated {
            rates.check(share)?;
        }
        Ok::<_, access::Refusal>((leave, rated))
    };
    let mut answer = match let_in.await {
        Ok((leave, rated)) => {
            // The rarer way is boxed: a future is as large as its largest branch.
            let mut answer = if wish.as_ref().is_some_and(Wish::is_of_head) {
                let answers = head_of_body(state, &method, request, next);
                Box::pin(answers.instrument(observed.span().clone())).await
            } else {
                let next = frame::with_deadline(state, &method, next(request));
                next.instrument(observed.span().clone()).await
            };
            leave.apply(&mut answer);
            if let Some((rates, share)) = rated {
                rates.record_bytes(share, answer.body().size_hint().lower());
            }
            answer
        }
        Err(refusal) => refusal.into_response(),
    };
    if let Some(dialect) = dialect {
        dialect.render(observed.id(), &mut answer);
    }
    if let Some(sharing) = sharing {
        sharing.put(&state.options().cors, answer.headers_mut());
    }
    let mut answer = observed.render(answer);
    if let Some(wish) = wish
        && let Some(coding) = wish.judge(&mut answer)
    {
        answer = Box::pin(compression::coded(state, wish, coding, answer)).await;
    }
    observed.finish(answer)
}

/// The answer to HEAD of what may be sent in a content coding: with the body, where the length depends on it. The caller
/// drops it.
async fn head_of_body<F: Future<Output = Response>>(
    state: &AppState,
    method: &Method,
    request: Request,
    next: impl FnOnce(Request) -> F + Clone,
) -> Response {
    let (again, with_body) = (next.clone(), compression::with_body(&request));
    let answer = frame::with_deadline(state, method, next(request)).await;
    if !compression::lacks_body(&answer) {
        return answer;
    }
    // What it holds is given back before the same is asked for once more.
    drop(answer);
    frame::with_deadline(state, method, again(with_body)).await
}

/// The `OpenAPI` document of all routes: JSON, indented, the same for the same build, with a newline at its end.
#[must_use]
pub fn openapi() -> String {
    described(false)
}

fn described(without_head: bool) -> String {
    let mut api = SURFACE.api.clone();
    document::complete(&mut api);
    if without_head {
        api.paths.paths.values_mut().for_each(|item| item.head = None);
    }
    let mut text = api.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

/// Which operations are described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operations {
    /// All.
    All,
    /// All but HEAD, of which there is one beside each GET.
    WithoutHead,
}

/// The `OpenAPI` document for clients that see something before every path, and its version. It is made once: anybody may
/// ask for it, at any time.
pub(super) fn openapi_below(base: &BasePath, operations: Operations) -> (Bytes, Version) {
    static ALL: LazyLock<(Bytes, Version)> = LazyLock::new(|| versioned(openapi()));
    static WITHOUT_HEAD: LazyLock<(Bytes, Version)> = LazyLock::new(|| versioned(described(true)));
    let (text, version) = match operations {
        Operations::All => &*ALL,
        Operations::WithoutHead => &*WITHOUT_HEAD,
    };
    if base.is_empty() {
        return (text.clone(), version.clone());
    }
    let servers = json!({ "servers": [{ "url": base.as_str() }] }).to_string();
    // Two objects, the one before the other's members.
    let text = match (servers.strip_suffix('}'), text.strip_prefix(b"{")) {
        (Some(servers), Some(rest)) => [servers.as_bytes(), b",", rest].concat().into(),
        _ => text.clone(),
    };
    (text, Version::strong(&format!("{}{}", version.tag(), base.as_str())))
}

fn versioned(text: String) -> (Bytes, Version) {
    let version = Version::from_own_text(text.as_bytes());
    (text.into(), version)
}
