//! [`StaleHeaders`]: the headers of responses that may be older than their requests, because the backend fails or is slow.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::Response;

use crate::cache::StaleRequest;
use crate::http::cache_status::{CACHE_STATUS, STALE};
use crate::http::route::RouteSpec;
use crate::http::target::Target;
use crate::services::mount::Mount;
use crate::services::state::AppState;

/// The headers that a request to a mount gets if its backend was not asked for everything.
pub(super) struct StaleHeaders(StaleRequest);

impl StaleHeaders {
    /// Those of a request that begins now; `None` if its mount has no stale responses.
    pub(super) fn of(
        state: &AppState,
        spec: Option<&'static RouteSpec>,
        root: Option<&Arc<Mount>>,
        request: &Request,
    ) -> Option<Self> {
        if !state.mounts.may_be_stale() {
            return None;
        }
        let target = Target::of_request(spec?.resource, request.uri(), root.is_some(), request.extensions());
        let mount = match target.ok()?.mount() {
            Some(name) => state.mounts.get(name)?,
            None => root?,
        };
        mount.staleness.as_ref().map(|staleness| Self(staleness.begin()))
    }

    /// Sets `Age` (RFC 9111, 5.1) and `Cache-Status`.
    pub(super) fn put(self, answer: &mut Response) {
        // What is absent may have been found absent before, and written since.
        let is_from_lookups = answer.status().is_success()
            || matches!(answer.status(), StatusCode::NOT_MODIFIED | StatusCode::NOT_FOUND);
        if !is_from_lookups {
            return;
        }
        let Some(age) = self.0.age() else { return };
        // Rounded up, so that nothing is older than it says.
        let seconds = age.as_secs() + u64::from(age.subsec_nanos() > 0);
        answer.headers_mut().insert(header::AGE, seconds.into());
        answer.headers_mut().insert(CACHE_STATUS, STALE);
    }
}
