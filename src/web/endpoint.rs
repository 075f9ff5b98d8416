//! [`Endpoint`]: the service behind one listener address.
//!
//! A request goes to all routes or, where a mount is the store at the root path, to that mount's routes only; the host
//! is checked before any route. Reads of values and of elements, the most frequent requests, take a fast path: through
//! the same middleware to the same handlers, but past the router, whose matching, cloning and boxing take longer than
//! such a read.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;
use axum::extract::Request;
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use futures::future::FutureExt;
use tower::ServiceExt;

use super::fallback::no_route;
use super::middleware::{panicked, run_middleware};
use super::router;
use crate::admission;
use crate::admission::AdmissionRequest;
use crate::admission::memory_pressure::MemoryPressure;
use crate::api::{data, store};
use crate::auth::caller::{Administrator, Caller};
use crate::http::base_path::BasePath;
use crate::http::peer::Peer;
use crate::http::route::{AdmittedBy, FastPath, RouteSpec};
use crate::http::{forwarded, host};
use crate::metrics::ConnectionCounts;
use crate::services::extract::{RootMount, StoreTarget};
use crate::services::mount::Mount;
use crate::services::state::AppState;

/// The path prefix of a fast route, before the name of a mount, and its route.
struct FastRoute {
    prefix: &'static str,
    spec: &'static RouteSpec,
    handler: FastPath,
}

/// The routes with a fast path.
static FAST_ROUTES: LazyLock<Vec<FastRoute>> = LazyLock::new(|| {
    let fast = |spec: &'static RouteSpec| {
        let (prefix, _) = spec.template.split_once("{mount}")?;
        Some(FastRoute { prefix, spec, handler: spec.fast_path? })
    };
    let mut routes: Vec<FastRoute> = router::specs().filter_map(fast).collect();
    routes.sort_unstable_by_key(|route| route.prefix);
    routes
});

/// Finds the fast route of a request and its handler; the second argument is whether a mount is served at the root path.
type MatchFastRoute = fn(&Request, bool) -> Option<(&'static RouteSpec, FastPath)>;

/// The service behind one address. Clones share it.
#[derive(Clone, Debug)]
pub struct Endpoint(Arc<ArcSwap<Inner>>);

#[derive(Debug)]
struct Inner {
    state: AppState,
    serves: ListenerRole,
    /// The mount at the root path of this address, whatever the host.
    mount: Option<Arc<Mount>>,
    /// The prefix of every path, except those of a mount at the root path.
    base: BasePath,
    all: axum::Router,
    rooted: axum::Router,
}

/// The role of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ListenerRole {
    Everything,
    /// The mount of this name, at the root path.
    Mount(String),
    /// The routes for the server's administrator.
    Administrators,
}

impl Inner {
    fn assemble(state: AppState, serves: ListenerRole) -> Self {
        state.counts.register_routes(router::specs().map(|spec| spec.template));
        let (all, rooted, base) = match &serves {
            ListenerRole::Administrators => {
                (router::admin(state.clone()), axum::Router::new(), BasePath::default())
            }
            ListenerRole::Everything | ListenerRole::Mount(_) => {
                // The options were checked when the state was built.
                let base = BasePath::parse(&state.options.base_path).unwrap_or_default();
                (router::all(state.clone()), router::at_root(state.clone()), base)
            }
        };
        let mount = match &serves {
            ListenerRole::Mount(name) => state.mounts.get(name).cloned(),
            ListenerRole::Everything | ListenerRole::Administrators => None,
        };
        Self { state, serves, mount, base, all, rooted }
    }
}

impl Endpoint {
    /// All routes. Requests to the host of a mount go to that mount only.
    #[must_use]
    pub fn whole(state: AppState) -> Self {
        Self::new(state, ListenerRole::Everything)
    }

    /// One mount as the store at the root path; `None` if there is no mount of this name.
    #[must_use]
    pub fn for_mount(state: &AppState, name: &str) -> Option<Self> {
        let site = Self::new(state.clone(), ListenerRole::Mount(name.to_owned()));
        let is_there = site.0.load().mount.is_some();
        is_there.then_some(site)
    }

    /// The routes for the server's administrator: metrics, health, caches. They need no right but access to the
    /// listener.
    #[must_use]
    pub fn admin(state: &AppState) -> Self {
        Self::new(state.clone(), ListenerRole::Administrators)
    }

    fn new(state: AppState, serves: ListenerRole) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(Inner::assemble(state, serves))))
    }

    /// Replaces the state from the next request on. If the new state lacks the mount at the root path, no route is
    /// left.
    pub fn replace_state(&self, state: &AppState) {
        let serves = self.0.load().serves.clone();
        self.0.store(Arc::new(Inner::assemble(state.clone(), serves)));
    }

    /// The current state.
    #[must_use]
    pub fn state(&self) -> AppState {
        self.0.load().state.clone()
    }

    /// Whether connections may stay open after a response: not under memory pressure.
    #[must_use]
    pub fn keeps_connections(&self) -> bool {
        self.0.load().state.lifecycle.pressure() == MemoryPressure::None
    }

    /// The counts of the connections to this server.
    #[must_use]
    pub fn connections(&self) -> Arc<ConnectionCounts> {
        Arc::clone(self.0.load().state.counts.connections())
    }

    /// Answers a request from a peer.
    pub fn handle(&self, mut request: Request, from: Peer) -> impl Future<Output = Response> + Send + use<> {
        // A request keeps the state that it began with.
        let state = self.0.load_full();
        async move { state.answer(&mut request, from, match_fast_route).await }
    }

    /// The same through the router, even where there is a fast path; for tests and measurements.
    #[doc(hidden)]
    pub async fn handle_routed(&self, mut request: Request, from: Peer) -> Response {
        self.0.load_full().answer(&mut request, from, |_, _| None).await
    }
}

impl Inner {
    /// Answers a request. It stays where it is until a handler takes it: each future that took it would be two requests larger.
    async fn answer(&self, request: &mut Request, from: Peer, fast_route: MatchFastRoute) -> Response {
        let Self { state, base, all, serves, .. } = self;
        let from = forwarded::resolve_client(&state.options.trusted_proxies, request, from);
        request.extensions_mut().insert(Caller::at(from));
        if *serves == ListenerRole::Administrators {
            request.extensions_mut().insert(Administrator);
            return handle_routed(all, request).await;
        }
        if self.mount.is_none() && matches!(serves, ListenerRole::Mount(_)) {
            return run_middleware(state, None, None, request, no_route).await;
        }
        let mount = self.mount_of(request);
        if mount.is_none() && !base.is_empty() {
            let stripped = base.strip_uri(request.uri());
            let base = BasePath::of(request.extensions()).join(base);
            base.put(request.extensions_mut());
            let Some(uri) = stripped else {
                return run_middleware(state, None, None, request, no_route).await;
            };
            *request.uri_mut() = uri;
        }
        // Clients see redirect targets below the base path.
        let base = BasePath::of(request.extensions());
        let mut answer = self.answer_below(request, mount, fast_route).await;
        base.rewrite_location(answer.headers_mut());
        answer
    }

    /// Answers a request whose URL no longer has the base path.
    async fn answer_below(
        &self,
        request: &mut Request,
        mount: Option<&Arc<Mount>>,
        fast_route: MatchFastRoute,
    ) -> Response {
        let Self { all, rooted, .. } = self;
        if let Some(route) = fast_route(request, mount.is_some()) {
            return self.handle_fast(request, route, mount).await;
        }
        let routes = match mount {
            None => all,
            Some(mount) => {
                request.extensions_mut().insert(RootMount(Arc::clone(mount)));
                rooted
            }
        };
        handle_routed(routes, request).await
    }

    /// The mount at the root path for a request, if there is one.
    fn mount_of(&self, request: &Request) -> Option<&Arc<Mount>> {
        let Self { state, mount, .. } = self;
        if mount.is_some() || !state.mounts.has_hosts() {
            return mount.as_ref();
        }
        let authority = host::authority(request.uri(), request.headers())?;
        state.mounts.of_host(&host::canonical(authority.host()))
    }

    /// Answers a request without the router, through the same middleware.
    async fn handle_fast(
        &self,
        request: &mut Request,
        (spec, handler): (&'static RouteSpec, FastPath),
        mount: Option<&Arc<Mount>>,
    ) -> Response {
        let state = &self.state;
        let admitted = |request: Request| async move {
            let (head, _) = request.into_parts();
            let read = async || match handler {
                FastPath::Value => {
                    let target = StoreTarget::new(&state.mounts, spec, &head.uri, &head.extensions, mount)?;
                    store::read_or_list(state, &target, &head).await
                }
                FastPath::Elements => data::data(state, &head).await,
                FastPath::Chunk => data::chunk(state, &head).await,
            };
            let caught = async || {
                let answer = AssertUnwindSafe(read()).catch_unwind().await;
                answer.map_or_else(panicked, IntoResponse::into_response)
            };
            if spec.admitted_by != AdmittedBy::Middleware {
                return caught().await;
            }
            let entrant =
                AdmissionRequest::stored(spec, &head.method, &head.uri, &head.headers, &head.extensions);
            let bytes = state.options.streamed_response_size;
            admission::admit(&state.traffic.admission, entrant, bytes, caught).await
        };
        run_middleware(state, Some(spec), mount, request, admitted).await
    }
}

/// Answers a request through a router.
async fn handle_routed(routes: &axum::Router, request: &mut Request) -> Response {
    match routes.clone().oneshot(std::mem::take(request)).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    }
}

/// The fast route of a request and its handler, where the router would call the same one; `at_root` if a mount is
/// served at the root path.
fn match_fast_route(request: &Request, at_root: bool) -> Option<(&'static RouteSpec, FastPath)> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    let path = request.uri().path();
    if at_root {
        let spec = &store::KEY_AT_ROOT;
        return spec.fast_path.filter(|_| path.len() > 1).map(|handler| (spec, handler));
    }
    let (route, rest) =
        FAST_ROUTES.iter().find_map(|route| Some((route, path.strip_prefix(route.prefix)?)))?;
    // By bytes: the name of a mount is short.
    let slash = rest.bytes().position(|byte| byte == b'/')?;
    (slash > 0 && rest.len() > slash + 1).then_some((route.spec, route.handler))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn reads_of_values_are_recognized_by_method_and_path() {
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
            ("GET", "/v1/data/m/a", Some("/v1/data/{mount}/{*path}"), Some("/{*key}")),
            ("HEAD", "/v1/chunk/m/a/c/0", Some("/v1/chunk/{mount}/{*path}"), Some("/{*key}")),
            ("GET", "/v1/data/m", None, Some("/{*key}")),
            ("GET", "/v1/data/m/", None, Some("/{*key}")),
            ("GET", "/v1/nodes/m/a", None, Some("/{*key}")),
            ("POST", "/v1/data/m/a", None, None),
            ("PUT", "/store/m/a", None, None),
            ("OPTIONS", "/store/m/a", None, None),
        ] {
            let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
            let way = |rooted| match_fast_route(&request, rooted).map(|(spec, _)| spec.template);
            assert_eq!(way(false), route, "{method} {path}");
            assert_eq!(way(true), rooted, "{method} {path} at the root");
        }
    }
}
