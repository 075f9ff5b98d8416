//! [`Route`]: a route's spec with its handlers and their documentation.

use utoipa_axum::router::UtoipaMethodRouter;

use super::state::AppState;
use crate::http::route::RouteSpec;

/// A route with its handlers.
pub(crate) struct Route {
    /// Its spec.
    pub(crate) spec: &'static RouteSpec,
    /// Its handlers, with their documentation.
    pub(crate) handlers: UtoipaMethodRouter<AppState>,
}

impl Route {
    /// A route with its handlers.
    pub(crate) fn new(spec: &'static RouteSpec, handlers: UtoipaMethodRouter<AppState>) -> Self {
        Self { spec, handlers }
    }
}
