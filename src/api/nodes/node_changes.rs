//! What the routes that change nodes share: the writer, the rights, the end of a change, and its problems.

use std::sync::Arc;

use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, header};
use tokio::time::timeout;

use super::url::url_path;
use crate::api::store::write::erasing_disabled;
use crate::auth::caller::Caller;
use crate::auth::{KeyScope, Permission, Scope};
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::services::extract::NodeTarget;
use crate::services::mount::Mount;
use crate::services::permit_budget::PermitBudget;
use crate::services::state::AppState;
use crate::write::{LeaseError, NodeWriteError, NodeWriter};

/// A writer of the nodes of a request's mount.
pub(crate) fn writer(state: &AppState, target: &NodeTarget, extensions: &Extensions) -> NodeWriter {
    let budget = PermitBudget::of(&state.traffic.admission, extensions);
    let engine = (state.engine.writer.clone(), state.engine.cpu.clone());
    NodeWriter::new(target.opener.clone(), engine, state.engine.metadata, budget)
}

/// Runs a change to its end, also if the client goes away. A change that takes longer than a response may continues.
pub(crate) async fn committed(
    state: &AppState,
    change: impl Future<Output = Result<(), NodeWriteError>> + Send + 'static,
) -> Result<(), Problem> {
    match timeout(state.options.response_timeout, tokio::spawn(change)).await {
        Ok(Ok(changed)) => changed.map_err(problem),
        Ok(Err(panic)) => Err(Problem::internal(Arc::new(panic))),
        Err(_) => Err(Problem::unfinished_change()),
    }
}

/// Whether a caller may make groups of a mount.
pub(crate) fn may_make(caller: &Caller, mount: &str) -> impl Fn(&NodePath) -> bool + Send + use<> {
    let (caller, mount) = (caller.clone(), mount.to_owned());
    move |group| {
        let key = group.prefix().key("zarr.json");
        key.is_ok_and(|key| {
            caller.rights().allows(&mount, &Permission::stored(Scope::Write, KeyScope::Key(key)))
        })
    }
}

/// Rejects the erasure of a node of a mount that does not let prefixes be erased.
pub(super) fn check_erasable(mount: &Mount) -> Result<(), Problem> {
    if mount.may_erase_prefixes() {
        return Ok(());
    }
    let detail = erasing_disabled(mount, "nodes");
    Err(Problem::from_class(ErrorClass::NotAllowed).detail(detail).allow(mount.node_methods()))
}

/// Names the node document of a new node. The base path is prepended to it on the way out.
pub(crate) fn put_location(headers: &mut HeaderMap, target: &NodeTarget) {
    let location = format!("/v1/nodes/{}", url_path(&target.mount, &target.path));
    if let Ok(location) = HeaderValue::try_from(location) {
        headers.insert(header::LOCATION, location);
    }
}

/// The problem of a change that failed.
pub(crate) fn problem(error: NodeWriteError) -> Problem {
    let text = error.to_string();
    match error {
        NodeWriteError::NoGroupAbove { .. } => Problem::from_status(StatusCode::FORBIDDEN).detail(text),
        NodeWriteError::Contended { .. }
        | NodeWriteError::Lease(LeaseError::Owned | LeaseError::Making | LeaseError::Lost) => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "contended").detail(text)
        }
        NodeWriteError::StillStored { .. } => {
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "contended").detail(text);
            return problem.extension("written", "some");
        }
        // The error knows what of its write is stored.
        NodeWriteError::Store { .. } | NodeWriteError::Elements(_) => return error.into(),
        NodeWriteError::Incomplete { left, .. } => {
            let detail = format!("the node is stored, but {left}");
            return Problem::from(error).detail(detail).extension("written", "some");
        }
        error => error.into(),
    }
    .extension("written", false)
}
