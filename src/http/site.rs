//! [`Site`]: what is served at one address.
//!
//! A request goes to the routes of the whole surface or, where a mount is the store at the root path, to that mount's
//! alone; the host is looked at before any route. Reads of stored values, of which there are more than of all else, go a
//! shorter way: through the same layers to the same handler, but past the router, whose matching, cloning and boxing take
//! longer than such a read.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::future::FutureExt;
use tower::ServiceExt;

use super::extract::{Rooted, StoreTarget};
use super::frame::{self, Route};
use super::routes::store;
use super::state::{AppState, Mount};
use super::{admission, host, router};

/// How the paths of stored values and of views of them begin, and their routes.
const ROUTES: [(&str, &str); 3] = [
    ("/store/", "/store/{mount}/{*key}"),
    ("/plain/", "/plain/{mount}/{*key}"),
    ("/unshard/", "/unshard/{mount}/{*key}"),
];

/// What is served at one address. Clones share it.
#[derive(Clone, Debug)]
pub struct Site(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: AppState,
    /// The mount that is the store at the root path here, whatever the host.
    mount: Option<Arc<Mount>>,
    all: axum::Router,
    rooted: axum::Router,
}

impl Site {
    /// The whole surface. Requests to the host of a mount go to that mount alone.
    #[must_use]
    pub fn whole(state: AppState) -> Self {
        Self::new(state, None)
    }

    /// One mount as the store at the root path; `None` if there is no mount of this name.
    #[must_use]
    pub fn of_mount(state: &AppState, name: &str) -> Option<Self> {
        let mount = state.mount(name)?;
        Some(Self::new(state.clone(), Some(Arc::clone(mount))))
    }

    fn new(state: AppState, mount: Option<Arc<Mount>>) -> Self {
        let (all, rooted) = (router::all(state.clone()), router::rooted(state.clone()));
        Self(Arc::new(Inner { state, mount, all, rooted }))
    }

    /// The answer to a request.
    pub async fn answer(&self, mut request: Request) -> Response {
        let Inner { all, rooted, .. } = &*self.0;
        let mount = self.mount_of(&request);
        if let Some(route) = route_of_value(&request, mount.is_some()) {
            return self.value(request, route, mount).await;
        }
        let routes = match mount {
            None => all,
            Some(mount) => {
                request.extensions_mut().insert(Rooted(Arc::clone(mount)));
                rooted
            }
        };
        match routes.clone().oneshot(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        }
    }

    /// The mount that is the store at the root path for a request.
    fn mount_of(&self, request: &Request) -> Option<&Arc<Mount>> {
        let Inner { state, mount, .. } = &*self.0;
        if mount.is_some() || !state.has_hosts() {
            return mount.as_ref();
        }
        let authority = host::authority(request.uri(), request.headers())?;
        state.mount_of_host(&host::canonical(authority.host()))
    }

    /// The answer to a read of a stored value.
    async fn value(&self, request: Request, route: &'static str, mount: Option<&Arc<Mount>>) -> Response {
        let state = &self.0.state;
        let read = |request: Request| async move {
            let (head, _) = request.into_parts();
            let target = StoreTarget::of(state, &head.uri, mount)?;
            store::read_or_list(state, &target, &head).await
        };
        let caught = |request| async move {
            let answer = AssertUnwindSafe(read(request)).catch_unwind().await;
            answer.map_or_else(frame::panicked, IntoResponse::into_response)
        };
        let admitted = |request| admission::admit(state, caught(request));
        let method = request.method().clone();
        with_length(&method, router::pass(state, Route::Chosen(route), request, admitted).await)
    }
}

/// An answer as the router would give it: it says how long it is, and to HEAD it has no body.
fn with_length(method: &Method, mut answer: Response) -> Response {
    let has_none = matches!(answer.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if !has_none && let Some(length) = answer.body().size_hint().exact() {
        answer.headers_mut().entry(header::CONTENT_LENGTH).or_insert_with(|| length.into());
    }
    if *method == Method::HEAD {
        *answer.body_mut() = Body::empty();
    }
    answer
}

/// The route of a request that the router would give to [`store::get_key`].
fn route_of_value(request: &Request, rooted: bool) -> Option<&'static str> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    let path = request.uri().path();
    if rooted {
        return (path.len() > 1).then_some("/{*key}");
    }
    let (route, rest) = ROUTES.iter().find_map(|(start, route)| Some((*route, path.strip_prefix(start)?)))?;
    let (mount, key) = rest.split_once('/')?;
    (!mount.is_empty() && !key.is_empty()).then_some(route)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_values_are_told_by_method_and_path() {
        let key = Some("/store/{mount}/{*key}");
        for (method, path, route, rooted) in [
            ("GET", "/store/m/a", key, Some("/{*key}")),
            ("HEAD", "/store/m//a/", key, Some("/{*key}")),
            ("GET", "/store/m/", None, Some("/{*key}")),
            ("GET", "/store/m", None, Some("/{*key}")),
            ("GET", "/store//a", None, Some("/{*key}")),
            ("GET", "//store/m/a", None, Some("/{*key}")),
            ("GET", "/", None, None),
            ("GET", "/plain/m/a", Some("/plain/{mount}/{*key}"), Some("/{*key}")),
            ("GET", "/unshard/m/a/", Some("/unshard/{mount}/{*key}"), Some("/{*key}")),
            ("GET", "/unshard/m/", None, Some("/{*key}")),
            ("PUT", "/store/m/a", None, None),
            ("OPTIONS", "/store/m/a", None, None),
        ] {
            let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
            assert_eq!(route_of_value(&request, false), route, "{method} {path}");
            assert_eq!(route_of_value(&request, true), rooted, "{method} {path} at the root");
        }
    }
}
