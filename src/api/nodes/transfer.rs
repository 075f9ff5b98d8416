//! PUT of a node with `copy` or `move`: the node is another one, with all that is below it.
//!
//! `write` has what that promises. Here are the rights, the conditions, and what a response says.

use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::{StatusCode, Uri, header};
use serde_json::Value;
use tokio::time::timeout;
use utoipa::IntoParams;

use super::node_changes::{check_erasable, may_make, problem, writer};
use crate::api::query_params::{KnownParams, ParamError, ParseParams, QueryParams, once, pairs};
use crate::api::store::write::check_writable;
use crate::api::within::within;
use crate::array::NodeOpener;
use crate::auth::caller::Caller;
use crate::auth::{KeyScope, Permission, Scope, lacks};
use crate::error::{Classify, ErrorClass, WriteEffect};
use crate::http::problem::Problem;
use crate::http::transfer_query::{COPY, MOVE, mount_and_path};
use crate::key::NodePath;
use crate::services::extract::NodeTarget;
use crate::services::mount::Mount;
use crate::services::state::AppState;
use crate::store::PinnedVersion;
use crate::write::{NodeCopy, NodeCopyError, NodeCopyFailure, NodePlace, NodeTransfer, NodeWriteError};

/// Most mounts that a problem names.
const MOST_NAMES: usize = 20;

/// The parameters of a node that is another one.
#[derive(Clone, Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TransferParams {
    /// The node is a copy of the one at this path, with all that is below it: `PATH` in the same mount, or `MOUNT:PATH`. A path whose
    /// first name has a colon begins with a slash. The request has no body.
    copy: Option<String>,
    /// As `copy`, and the node at that path is erased afterwards.
    #[param(rename = "move")]
    moved: Option<String>,
}

impl QueryParams for TransferParams {}

impl ParseParams for TransferParams {
    fn parse_param(&mut self, name: &str, value: &str) -> Result<bool, ParamError> {
        match name {
            COPY => once(COPY, &mut self.copy, value.to_owned()),
            MOVE => once(MOVE, &mut self.moved, value.to_owned()),
            _ => Ok(false),
        }
    }
}

impl TransferParams {
    /// Parses the query of a URL. Returns what becomes of the source, and its name; `None` if there is no source.
    ///
    /// # Errors
    /// [`ParamError`].
    pub(super) fn source(uri: &Uri) -> Result<Option<(NodeTransfer, String)>, ParamError> {
        let mut params = Self::default();
        for (name, value) in pairs(uri)? {
            if !params.take(&name, &value)? {
                return Err(ParamError::unknown(&name, &KnownParams::default().and::<Self>()));
            }
        }
        match (params.copy, params.moved) {
            (Some(_), Some(_)) => Err(ParamError::Exclusive("`copy` and `move`")),
            (Some(source), None) => Ok(Some((NodeTransfer::Copy, source))),
            (None, Some(source)) => Ok(Some((NodeTransfer::Move, source))),
            (None, None) => Ok(None),
        }
    }
}

/// Copies or moves a node to the target of a request.
///
/// # Errors
/// The problem of what is wrong.
pub(super) async fn transfer(
    state: &AppState,
    target: &NodeTarget,
    caller: &Caller,
    request: Request,
    (transfer, source): (NodeTransfer, &str),
) -> Result<(), Problem> {
    let unwritten = |problem: Problem| problem.extension("written", false);
    let (head, body) = request.into_parts();
    if !body.is_end_stream() {
        let detail = "a node with `copy` or `move` is another one: send no body";
        return Err(unwritten(Problem::from_class(ErrorClass::InvalidRequest).detail(detail)));
    }
    let from = source_of(state, target, caller, transfer, source).await.map_err(unwritten)?;
    let is_conditional = head.headers.contains_key(header::IF_NONE_MATCH);
    let failed = |failure| transfer_problem(failure, target, is_conditional);
    let unplanned = |error| failed(NodeCopyFailure { error, has_written: false });
    let copy = NodeCopy {
        is_within_store: from.mount.cache_name == target.mount.cache_name,
        from: NodePlace { writer: writer(state, &from, &head.extensions), path: from.path },
        to: NodePlace { writer: writer(state, target, &head.extensions), path: target.path.clone() },
        transfer,
        // The node at the target is one of which the request says that there is none.
        resumes: !is_conditional,
        max_value_bytes: state.options.max_value_size,
    };
    let plan = copy.plan(may_make(caller, &target.mount.name));
    let late = |_elapsed| unwritten(Problem::from_class(ErrorClass::TimedOut));
    let plan = timeout(state.options.response_timeout, plan).await.map_err(late)?.map_err(unplanned)?;
    within(&state.options, plan.bytes(), tokio::spawn(copy.run(plan))).await?.map_err(failed)
}

/// The node that a request names as its source, if the caller has the rights to it.
async fn source_of(
    state: &AppState,
    target: &NodeTarget,
    caller: &Caller,
    transfer: NodeTransfer,
    source: &str,
) -> Result<NodeTarget, Problem> {
    let (name, path) = mount_and_path(source, &target.mount.name);
    let path = NodePath::parse(path)?;
    let reach = KeyScope::Prefix(path.prefix().clone());
    let scopes: &[Scope] = match transfer {
        NodeTransfer::Copy => &[Scope::Read],
        NodeTransfer::Move => &[Scope::Read, Scope::Delete],
    };
    for scope in scopes {
        if !caller.rights().allows(name, &Permission::derived(*scope, reach.clone())) {
            return Err(lacks(*scope));
        }
    }
    if state.mounts.with_opener(name).is_none() {
        return Err(unknown_mount(state, caller, name));
    }
    let (mount, opener) = mount_of(state, name, &path).await?;
    if transfer == NodeTransfer::Move {
        check_writable(&mount)?;
        check_erasable(&mount)?;
    }
    Ok(NodeTarget { mount, opener, path })
}

/// The problem for a source in a mount that does not exist, with those that the caller may see.
fn unknown_mount(state: &AppState, caller: &Caller, name: &str) -> Problem {
    let seen = state.mounts.iter().filter(|mount| caller.rights().can_see(&mount.name));
    let names: Vec<String> = seen.take(MOST_NAMES + 1).map(|mount| format!("`{}`", mount.name)).collect();
    let more = if names.len() > MOST_NAMES { ", …" } else { "" };
    let names = names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
    Problem::new(StatusCode::NOT_FOUND, "unknown-mount").detail(format!(
        "there is no mount `{name}`, which the source names before its colon; the mounts are {names}{more}; a path whose first name \
         has a colon begins with a slash"
    ))
}

/// A mount, at the snapshot that the request sees if it has versions.
async fn mount_of(
    state: &AppState,
    name: &str,
    path: &NodePath,
) -> Result<(Arc<Mount>, NodeOpener), Problem> {
    let gone = || Problem::new(StatusCode::NOT_FOUND, "unknown-mount");
    let found = state.mounts.with_opener(name).ok_or_else(gone)?.clone();
    let (mount, _) = &found;
    let Some(served) = mount.store.served_version() else { return Ok(found) };
    let named = PinnedVersion::of_text(path.as_str());
    let version = named.as_ref().unwrap_or(&served);
    let Some(snapshot) = state.pins.resolve(mount, version).await? else { return Ok(found) };
    if version.is_fixed() {
        return Ok(found);
    }
    let pinned = state.pins.mounts(&state.mounts, mount, named.as_ref(), snapshot);
    let pinned = pinned.and_then(|pinned| pinned.mounts.with_opener(name).cloned());
    Ok(pinned.unwrap_or(found))
}

/// The problem of a transfer that failed, with what the client can do.
fn transfer_problem(failure: NodeCopyFailure, target: &NodeTarget, is_conditional: bool) -> Problem {
    let NodeCopyFailure { error, has_written } = failure;
    let is_complete = error.is_complete();
    let written: Value = match error.written() {
        _ if has_written => "some".into(),
        Some(WriteEffect::Unknown) => "unknown".into(),
        Some(WriteEffect::No) | None => false.into(),
    };
    let text = error.to_string();
    let problem = match error {
        NodeCopyError::Node(NodeWriteError::Exists { .. }) if !is_conditional => {
            Problem::from_class(ErrorClass::Conflict).detail(text)
        }
        NodeCopyError::Node(error) => problem(error),
        NodeCopyError::Busy | NodeCopyError::SourceChanged { .. } => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "contended").detail(text)
        }
        NodeCopyError::Incomplete { left, .. } => {
            Problem::from(error).detail(format!("the node is at its target, but {left}"))
        }
        error => error.into(),
    };
    let (mount, path) = (&target.mount.name, target.path.as_str());
    if !has_written || is_complete {
        return problem.extension("written", written);
    }
    let detail = format!(
        "{}; the same request goes on with what is stored, and DELETE of `/store/{mount}/{path}/` erases it",
        problem.message()
    );
    problem.detail(detail).extension("written", written)
}
