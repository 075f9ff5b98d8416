//! [`AuditEntry`]: the line of the audit log for a request that may change what is stored: who asked for what, from where,
//! with how many bytes, and how it ended.
//!
//! The lines have a `tracing` target of their own, so that they can be kept apart from the other lines: by
//! `log.audit_file`, or by the level of the target. A request that was refused has a line too. One whose client left
//! before the response has no status: whether it changed anything is not known.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{Extensions, HeaderMap, Method, StatusCode, Uri};

use crate::auth::origin;
use crate::http::route::{Resource, RouteSpec};
use crate::http::transfer_query;
use crate::http::webdav_headers;
use crate::http::wrote::Wrote;

use super::logged::escaped;

/// The `tracing` target of the audit log.
pub(super) const TARGET: &str = "zarrd::audit";

/// What the audit log says of a request beside what the access log says.
#[derive(Debug)]
pub(super) struct AuditEntry {
    /// Whether it is not known before the response that the request writes, see [`Wrote`].
    depends_on_body: bool,
    /// The name of the caller's credential.
    caller: Option<Arc<str>>,
    /// Where COPY and MOVE write to.
    destination: Option<String>,
    /// The node that a PUT of a node copies or moves, after the name of the parameter.
    source: Option<(&'static str, String)>,
    /// Bytes of the body that were received so far.
    received: Arc<AtomicU64>,
}

impl AuditEntry {
    /// Starts the entry of a request, if the request writes or may do so.
    pub(super) fn begin(
        method: &Method,
        route: Option<&'static RouteSpec>,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<Box<Self>> {
        let depends_on_body = *method == Method::POST && route.is_some_and(RouteSpec::body_decides_to_write);
        if !depends_on_body && !origin::writes(method, route, uri) {
            return None;
        }
        // Without its query, which may have a credential.
        let destination = webdav_headers::destination(uri, headers).ok();
        let destination = destination.map(|to| escaped(to.path()).into_owned());
        let is_of_node = route.is_some_and(|route| route.resource == Resource::Node);
        let source = transfer_query::transferred(uri).filter(|_| is_of_node && *method == Method::PUT);
        let source = source.map(|(kind, source)| (kind, escaped(&source).into_owned()));
        Some(Box::new(Self { depends_on_body, caller: None, destination, source, received: Arc::default() }))
    }

    /// The counter of received bytes.
    pub(super) fn received(&self) -> &Arc<AtomicU64> {
        &self.received
    }

    /// Sets the name of the caller's credential.
    pub(super) fn set_caller(&mut self, caller: Option<&Arc<str>>) {
        self.caller = caller.cloned();
    }

    /// Whether the entry belongs in the log, given the extensions of the response.
    pub(super) fn is_kept(&self, response: &Extensions) -> bool {
        !self.depends_on_body || response.get::<Wrote>().is_some()
    }

    /// Writes the line. `status` is that of the response, if there was one.
    pub(super) fn log(&self, request: &AuditedRequest<'_>, status: Option<StatusCode>) {
        let source_of = |wanted: &str| {
            self.source.as_ref().filter(|(kind, _)| *kind == wanted).map(|(_, source)| source.as_str())
        };
        tracing::info!(
            target: TARGET,
            request_id = request.id,
            caller = self.caller.as_deref().unwrap_or("-"),
            from = %request.from,
            method = request.method.as_str(),
            route = request.route,
            path = request.path,
            destination = self.destination,
            copy = source_of(transfer_query::COPY),
            r#move = source_of(transfer_query::MOVE),
            received_bytes = self.received.load(Ordering::Relaxed),
            status = status.map(|status| status.as_u16()),
            outcome = outcome(status),
            "change"
        );
    }
}

/// What the audit log has in common with the access log.
pub(super) struct AuditedRequest<'a> {
    pub(super) id: &'a str,
    pub(super) from: IpAddr,
    pub(super) method: &'a Method,
    pub(super) route: &'a str,
    pub(super) path: &'a str,
}

/// The outcome in one word.
fn outcome(status: Option<StatusCode>) -> &'static str {
    match status {
        None => "unknown",
        Some(status) if status.is_client_error() || status.is_redirection() => "refused",
        Some(status) if status.is_server_error() => "failed",
        Some(_) => "done",
    }
}
