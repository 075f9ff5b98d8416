//! The router, built from the specs that the handlers define.
//!
//! There are three surfaces: all routes, the store routes of the mount at the root path, where every path is a key or a
//! prefix, and the admin listener. `endpoint` chooses among them by listener and host; `middleware` wraps all of them.
//!
//! `openapi/openapi.json` is generated from here and checked in; a test compares the two.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use super::documentation_page;
use super::fallback::{no_method, no_route};
use super::middleware::{panicked, run_middleware};
use super::openapi as document;
use crate::admission::{self, AdmissionRequest};
#[cfg(feature = "vectors")]
use crate::api::vectors;
use crate::api::{self, icon, store, view};
use crate::http::route::{AdmittedBy, RouteSpec};
use crate::services::extract::RootMount;
use crate::services::route::Route;
use crate::services::state::AppState;

#[derive(OpenApi)]
#[openapi(
    components(schemas(store::ListingPage, api::data::AppendedSchema)),
    info(title = "zarrd", description = "An HTTP array server for Zarr. Errors are `application/problem+json`."),
    tags(
        (name = "store", description = "The abstract store interface of Zarr, byte for byte. The same URLs \
            speak WebDAV: PROPFIND, and MKCOL, COPY and MOVE on writable mounts"),
        (name = "nodes", description = "Arrays and groups of any format version, in one form"),
        (name = "data", description = "Decoded elements"),
        (name = "images", description = "Pictures of arrays"),
        (name = "views", description = "What is stored, shown as something its clients can use better. Read only"),
        (name = "pages", description = "Pages for people: mounts, groups, arrays and pictures in a browser"),
        (name = "s3", description = "The reading part of S3's API over the same mounts; errors are S3's XML"),
        (name = "service", description = "The server about itself"),
    )
)]
struct Api;

/// The routes of one surface, by the templates that the router matches.
pub(super) type Specs = HashMap<&'static str, &'static RouteSpec>;

fn by_template(specs: impl IntoIterator<Item = &'static RouteSpec>) -> Specs {
    let templates = |spec: &'static RouteSpec| {
        std::iter::once(spec.template).chain(spec.with_slash).map(move |template| (template, spec))
    };
    specs.into_iter().flat_map(templates).collect()
}

/// Routers without middleware, built once per process, because their documentation takes longer to build than to serve.
struct Surface {
    /// Routes that need admission.
    admitted: axum::Router<AppState>,
    others: axum::Router<AppState>,
    /// The store routes of the mount at the root path.
    at_root: axum::Router<AppState>,
    /// The routes of the admin listener.
    admin: axum::Router<AppState>,
    specs: Specs,
    specs_at_root: Specs,
}

static SURFACE: LazyLock<Surface> = LazyLock::new(|| {
    let mut documented_router = OpenApiRouter::with_openapi(Api::openapi());
    let (mut admitted, mut others, mut admin) = Default::default();
    let mut specs = documentation_page::ROUTES.to_vec();
    for Route { spec, handlers } in api::routes().into_iter().chain(document::routes()) {
        let methods = handlers.2.clone();
        // The documented router serves only to build its document.
        documented_router = documented_router.routes(handlers);
        let add = |router: axum::Router<AppState>| {
            let router = router.route(spec.template, methods.clone());
            match spec.with_slash {
                Some(template) => router.route(template, methods.clone()),
                None => router,
            }
        };
        if spec.is_admins {
            admin = add(admin);
        }
        if spec.admitted_by == AdmittedBy::Middleware {
            admitted = add(admitted);
        } else {
            others = add(others);
        }
        specs.push(spec);
    }
    for (spec, methods) in icon::routes().into_iter().chain(view::undocumented_routes()) {
        others = others.route(spec.template, methods);
        specs.push(spec);
    }
    let mut at_root = axum::Router::new();
    let mut specs_at_root = Vec::new();
    for Route { spec, handlers: (_, _, methods) } in store::routes_at_root() {
        at_root = at_root.route(spec.template, methods);
        specs_at_root.push(spec);
    }
    let (_, described) = documented_router.split_for_parts();
    #[cfg(feature = "vectors")]
    let described = described.merge_from(vectors::documentation());
    let specs = by_template(specs);
    document::set_document(described, |path| find_documented(&specs, path));
    Surface {
        admitted,
        others: others.merge(documentation_page::router()),
        at_root,
        admin,
        specs,
        specs_at_root: by_template(specs_at_root),
    }
});

/// The `OpenAPI` document of all routes: JSON, indented, the same for the same build, with a newline at its end.
#[must_use]
pub fn openapi() -> String {
    LazyLock::force(&SURFACE);
    document::text(document::Operations::All)
}

fn find_documented(specs: &Specs, path: &str) -> Option<&'static RouteSpec> {
    let is_it = |spec: &&RouteSpec| spec.documented_path() == path;
    let specs = specs.values().copied();
    #[cfg(feature = "vectors")]
    let specs = specs.chain(vectors::SUBRESOURCES);
    specs.into_iter().find(is_it)
}

/// The spec of a path of the `OpenAPI` document.
#[cfg(test)]
pub(super) fn spec_of_documented(path: &str) -> Option<&'static RouteSpec> {
    find_documented(&SURFACE.specs, path)
}

/// The routes of all surfaces.
pub(super) fn specs() -> impl Iterator<Item = &'static RouteSpec> {
    SURFACE.specs.values().chain(SURFACE.specs_at_root.values()).copied()
}

/// The routes of the admin listener, which need no right but access to it.
pub(super) fn admin(state: AppState) -> axum::Router {
    with_middleware(SURFACE.admin.clone(), state, &SURFACE.specs)
}

/// All routes.
pub(super) fn all(state: AppState) -> axum::Router {
    let routes = SURFACE.others.clone().merge(admitted(SURFACE.admitted.clone(), &state, &SURFACE.specs));
    with_middleware(routes, state, &SURFACE.specs)
}

/// The store routes of the mount at the root path.
pub(super) fn at_root(state: AppState) -> axum::Router {
    let routes = admitted(SURFACE.at_root.clone(), &state, &SURFACE.specs_at_root);
    with_middleware(routes, state, &SURFACE.specs_at_root)
}

fn matched(specs: &Specs, request: &Request) -> Option<&'static RouteSpec> {
    specs.get(request.extensions().get::<MatchedPath>()?.as_str()).copied()
}

/// Adds admission with the bytes that a streamed response holds.
fn admitted(
    routes: axum::Router<AppState>,
    state: &AppState,
    specs: &'static Specs,
) -> axum::Router<AppState> {
    let admit = move |State(state): State<AppState>, request: Request, next: Next| async move {
        let spec = matched(specs, &request);
        // OPTIONS reads no store.
        let Some(spec) = spec.filter(|_| request.method() != Method::OPTIONS) else {
            return next.run(request).await;
        };
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        let entrant = AdmissionRequest::stored(spec, method, uri, headers, request.extensions());
        let bytes = state.options.streamed_response_size;
        admission::admit(&state.traffic.admission, entrant, bytes, || next.run(request)).await
    };
    routes.route_layer(from_fn_with_state(state.clone(), admit))
}

/// Adds the middleware. It is one layer, because each layer clones and boxes.
fn with_middleware(routes: axum::Router<AppState>, state: AppState, specs: &'static Specs) -> axum::Router {
    let pass = move |State(state): State<AppState>, mut request: Request, next: Next| async move {
        let spec = matched(specs, &request);
        if let Some(spec) = spec {
            request.extensions_mut().insert(spec);
        }
        let root = request.extensions().get().map(|RootMount(mount)| Arc::clone(mount));
        run_middleware(&state, spec, root.as_ref(), &mut request, move |request| next.run(request)).await
    };
    routes
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(state.clone(), pass))
        .with_state(state)
}
