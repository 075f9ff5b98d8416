//! (stand-in until the http room has its routes)

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use serde::{Deserialize, Serialize};

use crate::store::SharedStore;

/// What HTTP requests may ask for.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpOptions {}

/// A store and the rights to it.
#[derive(Clone, Debug)]
pub struct Mount {
    /// The name that stands in URLs.
    pub name: String,
    /// The store.
    pub store: SharedStore,
    /// Whether it may be written to.
    pub writable: bool,
    /// Whether prefixes may be erased.
    pub allow_prefix_delete: bool,
}

/// What handlers share.
#[derive(Clone, Debug)]
pub struct AppState {
    ready: Arc<AtomicBool>,
}

impl AppState {
    /// A state that is ready.
    #[must_use]
    pub fn new(_mounts: Vec<Mount>, _options: HttpOptions) -> Self {
        Self { ready: Arc::new(AtomicBool::new(true)) }
    }

    /// Says to `/readyz` that the server is about to stop.
    pub fn start_draining(&self) {
        self.ready.store(false, Ordering::Relaxed);
    }
}

/// The routes.
pub fn router(state: AppState) -> Router {
    let readyz = move || async move {
        if state.ready.load(Ordering::Relaxed) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
    };
    Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(readyz))
}

/// The `OpenAPI` document.
#[must_use]
pub fn openapi() -> String {
    "{\"openapi\": \"3.1.0\"}\n".to_owned()
}
