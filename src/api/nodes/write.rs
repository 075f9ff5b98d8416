//! PUT, PATCH and DELETE of `/v1/nodes`: nodes are created, changed and erased. `write` has what that promises.

use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::node_changes::{check_erasable, committed, may_make, problem, put_location, writer};
use super::read::get_node;
use super::specs::{NODE, ROOT_NODE};
use super::transfer::{TransferParams, transfer};
use crate::admission::{ClientBucket, Permit, Priority};
use crate::api::dependents::NodeQuery;
use crate::api::documented::MountParam;
use crate::api::json_body::{VALUE_BYTES, read_values};
use crate::api::nodes::missing;
use crate::api::nodes::schema::NodeSchema;
use crate::api::store::write::check_writable;
use crate::array::OpenNode;
use crate::auth::caller::Caller;
use crate::auth::{KeyScope, Permission, Scope, check_derived};
use crate::cpu::DropOnPool;
use crate::error::{Classify, ErrorClass};
use crate::http::base_path::BasePath;
use crate::http::conditions::Conditions;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::write::{LikeArray, NewNode, NodePatch, NodeWriteError, NodeWriter};

/// Who sends a request, and where.
type Sender = (Caller, ClientBucket);

/// Create an array or a group
///
/// The body is a description, in which only `shape` and `data_type` are needed, or a whole `zarr.json` or `.zarray`. Of a
/// description, `chunks` are numbers or `auto` (about 1 MiB), `shards` numbers, `auto` (about 64 MiB) or `none`, `codecs` a word such
/// as `zstd-3` or a list as in `zarr.json`. `zarr_format` is 3 or 2. `like` is the path of an array of the mount, from which all
/// that is not said is taken. `{"node_type": "group"}` creates a group. Groups above the node are created where there are none.
///
/// With `copy` or `move` and no body, the node is another one, with all that is below it. Readers see all of it or nothing: its
/// document is stored last, and at the source of a move erased first. A copy that broke off can be made again. A move needs the
/// scope `delete` at its source, and a mount that lets prefixes be erased.
///
/// A node that exists is never replaced.
#[utoipa::path(
    put,
    path = NODE.template,
    tag = "nodes",
    params(MountParam, ("path" = String, Path, description = "Path of the node"), TransferParams),
    request_body(content = Option<Object>, content_type = "application/json", description = "The node"),
    responses(
        (status = 201, description = "Created: the node document", body = NodeSchema),
        (status = 400, description = "The body is not a node that this server can read; nothing was written"),
        (status = 405, description = "The mount is read-only"),
        (status = 403, description = "The credentials do not permit it, or do not permit to read or erase the source"),
        (status = 404, description = "The mount does not exist, or there is no node to copy"),
        (status = 409, description = "A node above is an array; or values are stored below the path; or with `copy` or `move`, there is a node at the path or something else than a part of the same copy, or one of the nodes is in the other"),
        (status = 412, description = "There is a node at the path; nothing was written"),
        (status = 413, description = "The source has more values than `write.max_values`, or one that is longer than `http.max_value_size`; nothing was written"),
        (status = 501, description = "The document has an unsupported extension, or the backend does not check conditions"),
        (status = 503, description = "Another request makes a node at the path, or the source changed meanwhile"),
    )
)]
pub(crate) async fn put_node(
    State(state): State<AppState>,
    target: NodeTarget,
    sender: Sender,
    base: BasePath,
    request: Request,
) -> Result<Response, Problem> {
    check_writable(&target.mount)?;
    let unsupported = !Conditions::from_headers(request.headers()).is_empty()
        && request.headers().get(header::IF_NONE_MATCH).is_none_or(|tags| tags != "*");
    if unsupported {
        return Err(invalid(
            "a node is created where there is none: leave conditions out, or send `If-None-Match: *`",
        ));
    }
    let source = TransferParams::source(request.uri());
    let source = source.map_err(|error| Problem::from(error).extension("written", false))?;
    if let Some((kind, source)) = source {
        Box::pin(transfer(&state, &target, &sender.0, request, (kind, &source))).await?;
        return created(&state, &target, sender, base).await;
    }
    let writer = writer(&state, &target, request.extensions());
    let (members, held): (Map<String, Value>, _) = body(&state, request).await?;
    let node = state.engine.cpu.run(move || NewNode::from_json(members)).await?.map_err(problem)?;
    let node = DropOnPool::new(node, &state.engine.cpu);
    let like = match node.like() {
        Some(path) => Some(like(&target, &sender.0, path, &writer).await?),
        None => None,
    };
    let metadata = state.engine.metadata;
    let documents = state.engine.cpu.run(move || node.documents(like.as_ref(), &metadata));
    let documents = documents.await?.map_err(problem)?;
    let path = target.path.clone();
    let may_make = may_make(&sender.0, &target.mount.name);
    drop(writer.check_new(&path, &documents, may_make).await.map_err(problem)?);
    let create = async move {
        let _held = held;
        writer.create(&path, &documents).await
    };
    committed(&state, create).await?;
    created(&state, &target, sender, base).await
}

/// Create the node at the root of a mount
#[utoipa::path(
    put,
    path = ROOT_NODE.template,
    tag = "nodes",
    params(MountParam, TransferParams),
    request_body(content = Option<Object>, content_type = "application/json", description = "The node"),
    responses((status = 201, description = "Created: the node document", body = NodeSchema))
)]
pub(crate) async fn put_root_node(
    state: State<AppState>,
    target: NodeTarget,
    sender: Sender,
    base: BasePath,
    request: Request,
) -> Result<Response, Problem> {
    put_node(state, target, sender, base, request).await
}

/// Change the attributes, the shape or the names of dimensions of a node
///
/// The body is a merge patch (RFC 7396) with the members `attributes`, `shape` and `dimension_names` alone; an attribute that is null is
/// removed, and so are all attributes, or names, if the member is null. An array that shrinks loses the chunks outside of its new
/// shape; one that grows has the fill value in its new part, whatever was stored there before.
#[utoipa::path(
    patch,
    path = NODE.template,
    tag = "nodes",
    params(
        MountParam,
        ("path" = String, Path, description = "Path of the node"),
        ("If-Match" = Option<String>, Header, description = "Change only if the node document has this entity tag"),
    ),
    request_body(content = Object, content_type = "application/merge-patch+json", description = "The change"),
    responses(
        (status = 200, description = "Changed: the node document", body = NodeSchema),
        (status = 204, description = "Changed; the caller may not read the node"),
        (status = 400, description = "The body is not such a change, or its result could not be read back; nothing was written"),
        (status = 404, description = "The mount or the node does not exist"),
        (status = 405, description = "The mount is read-only"),
        (status = 412, description = "The node has another entity tag; nothing was written"),
        (status = 413, description = "The change would erase too many chunks; nothing was written"),
        (status = 501, description = "A node of this kind cannot be changed, or the backend does not check conditions"),
        (status = 503, description = "Others changed the document at each attempt, or the server is overloaded"),
    )
)]
pub(crate) async fn patch_node(
    State(state): State<AppState>,
    target: NodeTarget,
    sender: Sender,
    base: BasePath,
    request: Request,
) -> Result<Response, Problem> {
    check_writable(&target.mount)?;
    let writer = writer(&state, &target, request.extensions());
    let headers = request.headers().clone();
    let node = open(&target, &sender.0).await?;
    // Before the body is held: a request must not wait for memory while it has some.
    let is_expected = check_conditions(&state, &target, (&sender, &base), &headers).await?;
    let (patch, held): (NodePatch, _) = body(&state, request).await?;
    // The permit is released once the patch is dropped.
    let patch = DropOnPool::new((patch, Some(held)), &state.engine.cpu);
    let path = target.path.clone();
    let change = async move { writer.patch(&path, node, &patch.0, is_expected).await };
    committed(&state, change).await?;
    changed(&state, &target, sender, base).await
}

/// Change the node at the root of a mount
#[utoipa::path(
    patch,
    path = ROOT_NODE.template,
    tag = "nodes",
    params(MountParam),
    request_body(content = Object, content_type = "application/merge-patch+json", description = "The change"),
    responses((status = 200, description = "Changed: the node document", body = NodeSchema))
)]
pub(crate) async fn patch_root_node(
    state: State<AppState>,
    target: NodeTarget,
    sender: Sender,
    base: BasePath,
    request: Request,
) -> Result<Response, Problem> {
    patch_node(state, target, sender, base, request).await
}

/// Erase a node
///
/// Erases an array, or a group with all that is below it, where the mount lets prefixes be erased (`allow_prefix_delete`). Where there is
/// no node but values are stored below the path, as an erasure or a move leaves them that broke off, it erases them.
#[utoipa::path(
    delete,
    path = NODE.template,
    tag = "nodes",
    params(
        MountParam,
        ("path" = String, Path, description = "Path of the node"),
        ("If-Match" = Option<String>, Header, description = "Erase only if the node document has this entity tag"),
    ),
    responses(
        (status = 204, description = "There is no node now"),
        (status = 404, description = "The mount or the node does not exist"),
        (status = 405, description = "The mount is read-only, or does not let prefixes be erased"),
        (status = 412, description = "The node has another entity tag; nothing was erased"),
        (status = 503, description = "A node is being made at the path or above it, or others go on to store values below it"),
    )
)]
pub(crate) async fn delete_node(
    State(state): State<AppState>,
    target: NodeTarget,
    sender: Sender,
    base: BasePath,
    request: Request,
) -> Result<Response, Problem> {
    check_writable(&target.mount)?;
    check_erasable(&target.mount)?;
    let writer = writer(&state, &target, request.extensions());
    // Without a condition, a node that cannot be read is erased too.
    let has_conditions = !Conditions::from_headers(request.headers()).is_empty();
    let node = if has_conditions { Some(open(&target, &sender.0).await?) } else { None };
    let is_expected = check_conditions(&state, &target, (&sender, &base), request.headers()).await?;
    let (path, node) = (target.path.clone(), node.filter(|_| is_expected));
    committed(&state, async move { writer.erase(&path, node.as_deref()).await }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Erase the node at the root of a mount
#[utoipa::path(
    delete,
    path = ROOT_NODE.template,
    tag = "nodes",
    params(MountParam),
    responses((status = 204, description = "There is no node now"))
)]
pub(crate) async fn delete_root_node(
    state: State<AppState>,
    target: NodeTarget,
    sender: Sender,
    base: BasePath,
    request: Request,
) -> Result<Response, Problem> {
    delete_node(state, target, sender, base, request).await
}

/// The node of a request to change it.
async fn open(target: &NodeTarget, caller: &Caller) -> Result<Arc<OpenNode>, Problem> {
    match target.opener.open(&target.path).await {
        Ok(node) => Ok(node),
        Err(error) => {
            let problem = Box::pin(missing::problem_of(error, caller.rights(), target, &target.path)).await;
            Err(problem.extension("written", false))
        }
    }
}

/// The array at a path of the mount from which a new one takes what is not said.
async fn like(
    target: &NodeTarget,
    caller: &Caller,
    path: &str,
    writer: &NodeWriter,
) -> Result<LikeArray, Problem> {
    let missing = || invalid("`like`: there is no array at this path of the mount");
    let path = NodePath::parse(path.trim_matches('/')).map_err(|_error| missing())?;
    let read = Permission::derived(Scope::Read, KeyScope::Prefix(path.prefix().clone()));
    let (rights, mount) = (caller.rights(), &target.mount.name);
    if !rights.allows(mount, &read) {
        return Err(missing());
    }
    // An array below another one may be made of keys beside it.
    check_derived(rights, mount, &target.opener, &read)
        .await
        .map_err(|problem| problem.extension("written", false))?;
    let node = target.opener.open(&path).await;
    let node =
        node.map_err(|error| if error.class() == ErrorClass::NotFound { missing() } else { error.into() })?;
    node.array().map_err(|_error| missing())?;
    writer.like(&path, &node).await.map_err(problem)
}

/// The response to GET of the node as it is now.
async fn document(
    state: &AppState,
    target: &NodeTarget,
    sender: Sender,
    base: BasePath,
) -> Result<Response, Problem> {
    let (state, query) = (State(state.clone()), Ok(Query(NodeQuery::default())));
    // Without conditions: those of the request are about the node before the change.
    let (head, ()) = axum::http::Request::new(()).into_parts();
    Box::pin(get_node(state, target.clone(), sender, query, base, head)).await
}

/// The response to a change: the node document, if the caller may read the node.
async fn changed(
    state: &AppState,
    target: &NodeTarget,
    sender: Sender,
    base: BasePath,
) -> Result<Response, Problem> {
    let read = Permission::derived(Scope::Read, KeyScope::Prefix(target.path.prefix().clone()));
    if sender.0.rights().allows(&target.mount.name, &read) {
        return document(state, target, sender, base).await;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The response to a node that is there now.
async fn created(
    state: &AppState,
    target: &NodeTarget,
    sender: Sender,
    base: BasePath,
) -> Result<Response, Problem> {
    let mut answer = changed(state, target, sender, base).await?;
    *answer.status_mut() = StatusCode::CREATED;
    put_location(answer.headers_mut(), target);
    Ok(answer)
}

/// The JSON of a request, of which nothing is written where it is invalid, and the memory for it.
async fn body<T: DeserializeOwned + Send + 'static>(
    state: &AppState,
    request: Request,
) -> Result<(T, Permit), Problem> {
    let read = read_values(state, (Priority::Metadata, VALUE_BYTES), request).await;
    read.map_err(|problem| problem.extension("written", false))
}

/// Checks `If-Match` against the entity tag of the node document. Returns whether there is a condition.
async fn check_conditions(
    state: &AppState,
    target: &NodeTarget,
    (sender, base): (&Sender, &BasePath),
    headers: &HeaderMap,
) -> Result<bool, Problem> {
    let conditions = Conditions::from_headers(headers);
    if conditions.is_empty() {
        return Ok(false);
    }
    if conditions.has_others_than_match() {
        return Err(invalid("a node is changed under `If-Match` alone; leave the other conditions out"));
    }
    let current = document(state, target, sender.clone(), base.clone()).await?;
    let tag = current.headers().get(header::ETAG).map(HeaderValue::as_bytes).unwrap_or_default();
    let tag = tag.strip_prefix(b"\"").and_then(|tag| tag.strip_suffix(b"\""));
    if conditions.matches_for_write(|expected| Some(expected) == tag) {
        return Ok(conditions.has_match_list());
    }
    Err(problem(NodeWriteError::ConditionFailed))
}

fn invalid(detail: &'static str) -> Problem {
    Problem::from_class(ErrorClass::InvalidRequest).detail(detail).extension("written", false)
}
