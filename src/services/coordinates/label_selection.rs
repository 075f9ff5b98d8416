//! [`LabelSelection`]: what labels select along the dimensions of an array, and what that was read from.

use std::time::Instant;

use axum::http::StatusCode;
use axum::http::request::Parts;
use serde_json::json;

use super::find::FoundCoordinate;
use super::read::ReadCoordinate;
use crate::array::{ChunkVersions, Dependencies};
use crate::auth::caller::Caller;
use crate::chunk::AxisPositions;
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::labels::{DimensionQuery, LabelError, SelectedLabels};
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::store::Version;
use crate::views::{FoundAbove, NodeAbove};

/// What labels select along one dimension.
#[derive(Clone, Debug)]
pub(crate) struct LabelledDimension {
    /// The dimension.
    pub(crate) name: String,
    /// Its positions.
    pub(crate) positions: AxisPositions,
    /// The label of a single position.
    pub(crate) label: Option<String>,
}

/// The coordinates that a selection depends on.
#[derive(Debug, Default)]
pub(crate) struct UsedLabels {
    /// The versions of their documents and chunks.
    pub(crate) versions: Vec<Option<Version>>,
    nodes: Vec<NodeAbove>,
    /// The chunks of each coordinate; `None` if one of them is not stored.
    chunks: Vec<Option<ChunkVersions>>,
    /// Whether a caller with other rights could get something else.
    is_private: bool,
}

/// What labels select along the dimensions of an array.
#[derive(Debug, Default)]
pub(crate) struct LabelSelection {
    pub(crate) dimensions: Vec<LabelledDimension>,
    pub(crate) used: UsedLabels,
}

/// A request for elements by label.
pub(crate) struct LabelRequest<'a> {
    pub(crate) state: &'a AppState,
    pub(crate) head: &'a Parts,
    pub(crate) target: &'a NodeTarget,
}

impl LabelRequest<'_> {
    /// Resolves what is requested along dimensions: their names, their lengths, and the labels. With `wrap`, numbers that are
    /// this far apart are the same label.
    ///
    /// # Errors
    /// 400 if a dimension has no coordinate, or its coordinate has no such label; failures of reading.
    pub(crate) async fn resolve(
        &self,
        array: &NodePath,
        requested: &[(&str, u64, &DimensionQuery)],
        wrap: Option<f64>,
    ) -> Result<LabelSelection, Problem> {
        let Self { state, head, target } = self;
        let began = Instant::now();
        let rights = Caller::of(&head.extensions).rights();
        let mut selection = LabelSelection::default();
        // One after the other: a request that waits for memory must hold none.
        for &(name, length, query) in requested {
            let found = FoundCoordinate::of_dimension(target, rights, array, name, began).await?;
            let used = &mut selection.used;
            used.is_private |= !found.is_public;
            used.nodes.extend(found.nodes);
            let Some((path, node, coordinate)) = found.coordinate else { return Err(no_coordinate(name)) };
            if coordinate.metadata().shape != [length] {
                return Err(other_length(name, &path, &coordinate.metadata().shape, length));
            }
            let read = ReadCoordinate::of_array(state, head, name, &node, &coordinate).await?;
            used.versions.extend(read.versions);
            used.chunks.push(read.chunks);
            let (labels, query) = (read.coordinate, query.clone());
            let (work, member) = (query.work_bytes(length), query.member());
            let select = move || labels.select_by(&query, wrap);
            let selected = state.engine.cpu.run_or_inline(work, select).await?;
            let SelectedLabels { positions, label } = selected.map_err(|error| problem(error, member))?;
            selection.dimensions.push(LabelledDimension { name: name.to_owned(), positions, label });
        }
        Ok(selection)
    }
}

impl UsedLabels {
    /// Whether every caller gets the same, and a change of a coordinate is noticed later.
    pub(crate) fn is_cacheable(&self) -> bool {
        let are_known = self.nodes.iter().all(|node| !matches!(node.found, FoundAbove::Unknown));
        !self.is_private && are_known && self.chunks.iter().all(Option::is_some)
    }

    /// The dependencies of a response, with these coordinates.
    pub(crate) fn with_dependencies(&self, dependencies: Dependencies) -> Dependencies {
        let with_nodes = self.nodes.iter().fold(dependencies, |all, NodeAbove { path, found }| match found {
            FoundAbove::Node(node) => all.and_node(path.clone(), node),
            FoundAbove::Absent(located_at) => all.and_absent(path.clone(), *located_at),
            FoundAbove::Unknown => all,
        });
        self.chunks.iter().flatten().cloned().fold(with_nodes, Dependencies::and_chunks)
    }
}

/// The problem of a label that selects nothing, in this member of the request.
fn problem(error: LabelError, member: &str) -> Problem {
    let text = error.to_string();
    // An error names the parameter of a URL, which a body has as a member.
    let detail = match text.strip_prefix("`sel.") {
        Some(rest) => format!("`{member}.{rest}"),
        None => text,
    };
    let LabelError::NoSuchLabel(missing) = &error else { return Problem::from(error).detail(detail) };
    let problem = Problem::new(StatusCode::BAD_REQUEST, "no-such-label")
        .detail(detail)
        .extension("dimension", missing.dimension.clone())
        .extension("label", missing.label.clone())
        .extension("nearest", missing.near.clone());
    match &missing.extent {
        None => problem,
        Some((first, last, step)) => problem
            .extension("first", first.clone())
            .extension("last", last.clone())
            .extension("step", json!(step)),
    }
}

fn no_coordinate(name: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "no-coordinate").detail(format!(
        "the dimension `{name}` has no labels: there is no array of one dimension `{name}` beside the array or above it; select \
         by position, with `isel.{name}`"
    ))
}

fn other_length(name: &str, path: &NodePath, shape: &[u64], length: u64) -> Problem {
    Problem::from_class(ErrorClass::InvalidRequest).detail(format!(
        "the dimension `{name}` has {length} elements, and its coordinate `{path}` has the shape {shape:?}; select by position, \
         with `isel.{name}`"
    ))
}
