//! The responses to requests that no route takes: for URLs that no route has, and for methods that a route does not have.

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::api::{data, nodes};
use crate::auth::caller::Administrator;
use crate::http::base_path::BasePath;
use crate::http::problem::{Problem, READ_METHODS};
use crate::http::route::{Resource, RouteSpec};
use crate::services::extract::{NodeTarget, RootMount};
use crate::services::mount::Mount;
use crate::services::state::AppState;

/// The response for URLs without a route.
pub(crate) async fn no_route(request: Request) -> Response {
    // A preflight must succeed, or the page would see a network error in place of the 404.
    if request.method() == Method::OPTIONS {
        return (StatusCode::NO_CONTENT, [(header::ALLOW, READ_METHODS)]).into_response();
    }
    let problem = Problem::from_status(StatusCode::NOT_FOUND);
    let extensions = request.extensions();
    // The routes that help are at neither the admin listener nor the root of a mount.
    let is_without_help = Administrator::is_asking(extensions) || extensions.get::<RootMount>().is_some();
    if is_without_help {
        return problem.into_response();
    }
    let base = BasePath::of(extensions);
    let base = base.as_str();
    let detail = format!(
        "there is nothing at this URL: `{base}/v1/mounts` lists the mounts, and `{base}/docs/` describes the routes"
    );
    problem.detail(detail).into_response()
}

/// The methods that the mount of a request offers at its route; `None` if they do not depend on the mount.
fn methods_of_mount(state: &AppState, request: &Request) -> Option<HeaderValue> {
    let route = *request.extensions().get::<&'static RouteSpec>()?;
    let is_one_of = |routes: &[RouteSpec]| routes.iter().any(|known| known.template == route.template);
    let methods = if is_one_of(&[data::DATA, data::ROOT_DATA]) {
        Mount::element_methods
    } else if is_one_of(&[data::CHUNK]) {
        Mount::chunk_methods
    } else if is_one_of(&[nodes::NODE, nodes::ROOT_NODE]) {
        Mount::node_methods
    } else {
        return None;
    };
    let target = NodeTarget::new(&state.mounts, route, request.uri(), request.extensions()).ok()?;
    Some(HeaderValue::from_static(methods(&target.mount)))
}

/// The response for methods that a route does not have. The router adds `Allow` where it does not depend on the mount.
pub(crate) async fn no_method(State(state): State<AppState>, request: Request) -> Response {
    let allow = methods_of_mount(&state, &request);
    let mut response = refused_method(&request);
    response.headers_mut().extend(allow.map(|allow| (header::ALLOW, allow)));
    response
}

fn refused_method(request: &Request) -> Response {
    if request.method() == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let problem = Problem::from_status(StatusCode::METHOD_NOT_ALLOWED);
    let route = request.extensions().get::<&'static RouteSpec>();
    let reads = route.is_some_and(|route| {
        matches!(
            route.resource,
            Resource::Node | Resource::Tile | Resource::Page | Resource::Dap | Resource::Chunk
        )
    });
    let problem = if reads {
        problem.detail(
            "this route has no such method. Where the mount is writable, elements are written by PUT of `/v1/data`, nodes by PUT, \
             PATCH and DELETE of `/v1/nodes`, and stored values by those of `/store/{mount}/{key}`",
        )
    } else {
        problem
    };
    problem.into_response()
}
