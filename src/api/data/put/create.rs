//! PUT with `create`: an npy file becomes a new array.
//!
//! The shape and the type are those in the file's head. The chunks are stored first, each only where there is none, and the document
//! last. So an array of which a part failed is not there. No other node is made at the path meanwhile.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::time::timeout;
use tracing::Instrument;

use super::body_format::BodyFormat;
use super::outcome::{WriteProgress, unparsed};
use super::query::PutQuery;
use super::request::PutRequest;
use super::run::run;
use crate::api::nodes::node_changes::{committed, may_make, problem, put_location, writer};
use crate::auth::caller::Caller;
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::parse::{NpyHead, ParseError, parse_npy_head};
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::write::{NewNode, NewValues, NodeDocuments, NodeWriteError, NodeWriter};

/// Creates the array of a body.
///
/// # Errors
/// The problem of what is wrong; there is no array then.
pub(super) async fn create(
    state: &AppState,
    target: NodeTarget,
    query: &PutQuery,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let prepare = async {
        if query.selection.selects() || BodyFormat::of(&head.headers, &query.body)? != BodyFormat::Npy {
            return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(
                "`create` makes an array of a whole npy file: leave the selection out, and send `format=npy`",
            ));
        }
        let nodes = writer(state, &target, &head.extensions);
        let (npy, body) = npy_head(state, body).await?;
        let data_type = npy.data_type().ok_or_else(|| {
            Problem::from_class(ErrorClass::InvalidRequest)
                .detail("there is no array of the type of this npy file; create one by PUT of `/v1/nodes`")
        })?;
        let documents = NewNode::array(npy.shape, &data_type).documents(None, &state.engine.metadata);
        let documents = documents.map_err(problem)?;
        let may_make = may_make(Caller::of(&head.extensions), &target.mount.name);
        let array = nodes.check_new(&target.path, &documents, may_make).await;
        let array = array.map_err(conflict)?.ok_or_else(|| Problem::from_class(ErrorClass::Internal))?;
        let request = PutRequest::of_new(state, array, query, &head)?;
        let values = request.new_values()?;
        Ok((nodes, NewArray { documents, values }, request, body))
    };
    let prepared = prepare.await.map_err(|problem: Problem| problem.extension("written", false));
    let (nodes, array, request, body) = prepared?;
    let (state, place) = (state.clone(), target.clone());
    // If the client goes away, the body ends, and the creation with it: it has the lease of the path, which it gives back.
    let made = tokio::spawn(
        async move { make(&state, &place, nodes, array, (&request, &head, body)).await }.in_current_span(),
    );
    let made = made.await.map_err(|panic| Problem::internal(Arc::new(panic)))?;
    let mut answer = made.map_err(|problem| left(problem, &target))?;
    *answer.status_mut() = StatusCode::CREATED;
    put_location(answer.headers_mut(), &target);
    Ok(answer)
}

/// An array that is created.
struct NewArray {
    documents: NodeDocuments,
    /// Its values, once all are stored.
    values: NewValues,
}

/// Stores the elements of a new array, and then its documents.
async fn make(
    state: &AppState,
    target: &NodeTarget,
    nodes: NodeWriter,
    array: NewArray,
    (request, head, body): (&PutRequest, &Parts, Body),
) -> Result<Response, Problem> {
    let begun = nodes.begin(&target.path).await;
    let mut creation = begun.map_err(|error| conflict(error).extension("written", false))?;
    let mut progress = WriteProgress::default();
    let taken = creation.hold(run(request, state, head, body, &mut progress)).await;
    let answer = match taken {
        Ok(Ok(answer)) => answer,
        Ok(Err(problem)) => {
            // While a value may still arrive, no other node is made: the lease ends by itself.
            if !progress.written().is_unknown {
                creation.abandon(progress.written().values > 0).await;
            }
            return Err(problem);
        }
        Err(error) => {
            let problem = progress.lost(problem(error));
            return Err(progress.describe(problem));
        }
    };
    let finish = committed(state, async move { creation.finish(&array.documents, &array.values).await });
    finish.await.map_err(|problem| problem.extension("written", "some"))?;
    Ok(answer)
}

/// The problem of a node that is there already: for a client that sends elements it is no condition of its request.
fn conflict(error: NodeWriteError) -> Problem {
    match error {
        NodeWriteError::Exists { .. } => Problem::from_class(ErrorClass::Conflict).detail(
            "there is a node at the path; leave `create` out to write its elements, or erase it by DELETE of `/v1/nodes`",
        ),
        error => problem(error),
    }
}

/// The problem of a creation that has failed, with what to do about the chunks that it may have stored.
fn left(problem: Problem, target: &NodeTarget) -> Problem {
    let is_conflict = problem.status() == StatusCode::PRECONDITION_FAILED;
    let written = problem.extensions().get("written").cloned().unwrap_or_else(|| false.into());
    if !is_conflict && written == false {
        return problem;
    }
    let text = if is_conflict {
        "another client creates this array, or has left chunks of it"
    } else {
        problem.message()
    };
    let (mount, path) = (&target.mount.name, target.path.as_str());
    let detail = format!(
        "{text}; where no array is made of them, DELETE of `/store/{mount}/{path}/` erases chunks before the next attempt"
    );
    let problem = if is_conflict { Problem::from_class(ErrorClass::Conflict) } else { problem };
    problem.detail(detail).extension("written", written)
}

/// The head of the npy file in a body, and the body as it was.
async fn npy_head(state: &AppState, body: Body) -> Result<(NpyHead, Body), Problem> {
    let mut pieces = body.into_data_stream();
    let mut start = BytesMut::new();
    loop {
        let piece = timeout(state.options.body_stall_timeout, pieces.try_next()).await;
        let piece = piece.map_err(|_late| Problem::from_status(StatusCode::REQUEST_TIMEOUT))?;
        let aborted = |_error| {
            Problem::from_class(ErrorClass::InvalidRequest)
                .detail("the body ended early; nothing was written")
        };
        let Some(piece) = piece.map_err(aborted)? else {
            let reason = "it ends in its head".to_owned();
            return Err(unparsed(ParseError::Malformed { format: "an npy file", reason }));
        };
        start.extend_from_slice(&piece);
        if let Some(npy) = parse_npy_head(&start).map_err(unparsed)? {
            let first: Bytes = start.freeze();
            return Ok((npy, Body::from_stream(stream::iter([Ok(first)]).chain(pieces))));
        }
    }
}
