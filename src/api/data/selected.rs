//! [`selected`]: the response with the elements that a query selects, whether it is of a URL or of a body.

use std::sync::Arc;
use std::time::Instant;

use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use futures::future::{BoxFuture, FutureExt, join};
use tracing::Instrument;

use super::categorical::{Categorical, categorical};
use super::elements::ElementsRequest;
use super::elements_reduction::ElementsReduction;
use super::file::file;
use super::gathered;
use super::opening::open;
use super::query::DataQuery;
use super::reduction_query::ReductionParams;
use super::rendering::Rendering;
use super::table::table;
use crate::api::label_params::positions;
use crate::api::query_params::ParamError;
use crate::array::{Array, OpenNode};
use crate::auth::Rights;
use crate::auth::caller::Caller;
use crate::chunk::Subset;
use crate::error::ErrorClass;
use crate::http::base_path::BasePath;
use crate::http::chunk_path::split_chunk;
use crate::http::negotiate;
use crate::http::path::encode;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::reduce::Method;
use crate::render::{FORMATS, FormatOptions};
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;

/// The response with the elements that a query selects.
pub(crate) async fn selected(
    state: &AppState,
    head: &Parts,
    target: &NodeTarget,
    query: &DataQuery,
    started: Instant,
) -> Result<Response, Problem> {
    if query.variables.are_tabular() {
        return Box::pin(table(state, head, target, query, started)).await;
    }
    let rendering = rendering(&head.headers, query)?;
    if rendering.style.format.is_table() {
        return Box::pin(table(state, head, target, query, started)).await;
    }
    if rendering.style.format.is_file() {
        return Box::pin(file(state, head, target, (query, rendering.style.format), started)).await;
    }
    if query.variables.vars.is_some() {
        return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(
            "`vars` names variables of a group, which are sent as a file (`format=nc`) or as a table (`coords=1`)",
        ));
    }
    let open = || async {
        let node = open(head, target, &target.path, &query.array).await;
        node.map_err(|problem| with_chunk_route(problem, head, target))
    };
    let plan = |node: Arc<OpenNode>| async {
        let array = Arc::clone(node.array()?);
        query.array.check_shape(&array.metadata().shape)?;
        let (path, request) = (array.path(), (state, head, target));
        let positions = positions(request, &query.selection, path, array.metadata(), None).await?;
        let selection = positions.as_ref().map_or(&query.selection, |positions| &positions.selection);
        if selection.is_listed() {
            let request = gathered::request(state, node, selection, query, rendering.clone(), started);
            return Ok(Box::pin(request).await?.with_positions(positions));
        }
        let subset = selection.subset(array.metadata())?;
        let rights = Caller::of(&head.extensions).rights();
        let reduction = reduction(state, rights, target, &array, query, &subset).await?;
        let request = ElementsRequest::new(node, subset, reduction, rendering.clone(), started)?;
        Ok::<_, Problem>(request.with_positions(positions))
    };
    let span = || tracing::trace_span!(target: "zarrd::span", "plan");
    let respond = |node| async { plan(node).instrument(span()).await?.respond(state, target, head).await };
    match target.opener.unvalidated(&target.path, started) {
        None => respond(open().await?).await,
        Some(unvalidated) => opened_beside(unvalidated, open(), respond).await,
    }
}

/// The response for a node that `open` returns. `respond` begins with the node as it was last opened, and begins again if `open`
/// returns another one.
///
/// Boxed, because the rare branch would enlarge the future of every read.
pub(super) fn opened_beside<'a, R: Future<Output = Result<Response, Problem>> + Send + 'a>(
    unvalidated: Arc<OpenNode>,
    open: impl Future<Output = Result<Arc<OpenNode>, Problem>> + Send + 'a,
    respond: impl Fn(Arc<OpenNode>) -> R + Send + 'a,
) -> BoxFuture<'a, Result<Response, Problem>> {
    let response = async move {
        let (node, answer) = join(open, respond(Arc::clone(&unvalidated))).await;
        let node = node?;
        if node.located == unvalidated.located {
            return answer;
        }
        // With its permit: one request must not wait for what it holds itself.
        drop(answer);
        respond(node).await
    };
    response.boxed()
}

/// A problem with the route of chunks, if what does not exist is named as a chunk.
fn with_chunk_route(problem: Problem, head: &Parts, target: &NodeTarget) -> Problem {
    let is_chunk = split_chunk(&target.path).is_some_and(|(_, chunk)| chunk != "c");
    if problem.code() != ErrorClass::NotFound.as_str() || !is_chunk {
        return problem;
    }
    let (base, mount, path) = (BasePath::of(&head.extensions), &target.mount.name, &target.path);
    let (base, path) = (base.as_str(), path.as_str());
    let detail = format!("{}; one chunk is at `{base}/v1/chunk/{mount}/{path}`", problem.message());
    problem.detail(detail)
}

/// How the query reduces a selection of an array, if it does.
async fn reduction(
    state: &AppState,
    rights: &Rights,
    target: &NodeTarget,
    array: &Array,
    query: &DataQuery,
    subset: &Subset,
) -> Result<Option<ElementsReduction>, Problem> {
    let metadata = array.metadata();
    if let Some(over) = query.over.of_array(metadata, subset)? {
        return Ok(Some(ElementsReduction::axes(over)));
    }
    if !query.reduction.reduces() {
        return Ok(None);
    }
    // Boxed, because the rare branch would enlarge the future of every request.
    Box::pin(windows(state, rights, target, array, &query.reduction, subset)).await.map(Some)
}

/// The reduction of windows that a request asks for.
async fn windows(
    state: &AppState,
    rights: &Rights,
    target: &NodeTarget,
    array: &Array,
    query: &ReductionParams,
    subset: &Subset,
) -> Result<ElementsReduction, Problem> {
    let metadata = array.metadata();
    let asks_around = query.is_auto() && Method::Mode.is_defined_for(&metadata.data_type);
    let found = if asks_around {
        categorical(rights, target, array.path(), metadata, &state.engine.cpu).await?
    } else {
        Categorical::default()
    };
    let requested = query.of_array(metadata, found.has_categories)?;
    Ok(ElementsReduction::windows(requested, found, subset)?)
}

/// The problem of an invalid query. If the unknown parameter is the name of a dimension, the detail shows how to select
/// along it and where its labels are.
pub(super) async fn about_dimensions(error: ParamError, target: &NodeTarget) -> Problem {
    let ParamError::Unknown { name, .. } = &error else { return error.into() };
    let dimension = name;
    let opened = target.opener.find(&target.path).await.ok().flatten();
    let array = opened.as_ref().and_then(|node| node.array().ok());
    let names = array.and_then(|array| array.metadata().dimension_names.as_ref());
    let is_one = names.is_some_and(|names| names.iter().flatten().any(|known| known == dimension));
    if !is_one {
        return error.into();
    }
    let beside = target.path.parent().unwrap_or_else(NodePath::root).child(dimension);
    let labels = beside.map(|path| format!("; its labels, if they are stored: `{}`", url(target, &path)));
    let detail = format!(
        "`{name}` is not a parameter here. `{dimension}` is a dimension, and elements are selected by index, \
         `isel.{dimension}=0:10`, or by label, `sel.{dimension}=…`{}",
        labels.unwrap_or_default()
    );
    Problem::from(error).detail(detail)
}

/// The path of the elements of a node in the same mount.
fn url(target: &NodeTarget, path: &NodePath) -> String {
    let segments: Vec<String> = path.as_str().split('/').map(encode).collect();
    format!("/v1/data/{}/{}", target.mount.name, segments.join("/"))
}

/// How the elements of a query are written.
///
/// # Errors
/// 406 if `Accept` allows none of the formats, 400 for an unknown one.
pub(super) fn rendering(headers: &HeaderMap, query: &DataQuery) -> Result<Rendering, Problem> {
    let format = negotiate::choose(headers, query.format.name(), FORMATS)?;
    let style = FormatOptions { format, endian: query.format.endian(), nan: query.format.nan() };
    let (fields, header, decodes) =
        (query.fields.fields.clone(), query.format.has_header(), query.format.decodes());
    Ok(Rendering { style, fields, header, decodes, dtype: query.format.dtype().cloned() })
}
