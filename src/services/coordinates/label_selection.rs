//! [`LabelSelection`]: what labels select along the dimensions of an array, and what that was read from.

use std::sync::Arc;
use std::time::Instant;

use axum::http::StatusCode;
use axum::http::request::Parts;
use serde_json::json;

use super::find::{FoundCoordinate, check_length, is_public, may_read};
use super::read::ReadCoordinate;
use crate::array::Dependencies;
use crate::auth::caller::Caller;
use crate::chunk::AxisPositions;
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::labels::{DimensionLabels, DimensionQuery, LabelError, SelectedLabels};
use crate::services::extract::NodeTarget;
use crate::services::known_coordinate::KnownCoordinate;
use crate::services::state::AppState;
use crate::store::Version;

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
    dependencies: Vec<Arc<Dependencies>>,
    /// Whether a caller with other rights could get something else, or a change would not be noticed later.
    is_uncacheable: bool,
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
        let (began, mut goes_around) = (Instant::now(), false);
        let mut selection = LabelSelection::default();
        // One after the other: a request that waits for memory must hold none.
        for &(name, length, query) in requested {
            let labels = self.labels(array, (name, length), &mut selection.used, began).await?;
            goes_around |= wrap.is_some_and(|turn| labels.goes_around(turn));
            let query = query.clone();
            let (work, member) = (query.work_bytes(length), query.member());
            let select = move || labels.select_by(&query, wrap);
            let selected = self.state.engine.cpu.run_or_inline(work, select).await?;
            let SelectedLabels { positions, label } = selected.map_err(|error| problem(error, member))?;
            selection.dimensions.push(LabelledDimension { name: name.to_owned(), positions, label });
        }
        match wrap {
            Some(turn) if !goes_around => Err(nothing_goes_around(turn)),
            _ => Ok(selection),
        }
    }

    /// The labels of a dimension, which has a name and a length; `used` takes in what they depend on.
    async fn labels(
        &self,
        array: &NodePath,
        (name, length): (&str, u64),
        used: &mut UsedLabels,
        began: Instant,
    ) -> Result<Arc<DimensionLabels>, Problem> {
        let Self { state, head, target } = self;
        let (rights, caches) = (Caller::of(&head.extensions).rights(), &state.responses);
        let key = KnownCoordinate::key(&target.mount.cache_name, array, name);
        if let Some(known) = caches.known_coordinates.get(&key)
            && known.visited.iter().all(|path| may_read(target, rights, path))
            && known.is_current(&target.opener, began).await
            && let Some(labels) = caches.coordinates.get(&known.labels)
        {
            check_length((name, length), &known.path, &[labels.len() as u64], &by_position(name))?;
            used.add(&known, known.visited.iter().all(|path| is_public(target, rights, path)));
            return Ok(Arc::clone(&labels));
        }
        // Boxed, because it is large and rare.
        let find = FoundCoordinate::of_dimension(target, rights, array, name, began);
        let found = Box::pin(find).await?;
        let Some((path, node, coordinate)) = &found.coordinate else { return Err(no_coordinate(name)) };
        check_length((name, length), path, &coordinate.metadata().shape, &by_position(name))?;
        let read = Box::pin(ReadCoordinate::of_array(state, head, name, node, coordinate)).await?;
        let known = read.chunks.and_then(|chunks| {
            let labels = (read.key.as_str(), chunks);
            KnownCoordinate::new(&target.opener, (path, node), &found.nodes, &read.versions, labels)
        });
        match known {
            None => {
                used.versions.extend(read.versions);
                used.is_uncacheable = true;
            }
            Some(known) => {
                used.add(&known, found.is_public);
                let bytes = known.memory_bytes();
                if caches.known_coordinates.fits(bytes) {
                    caches.known_coordinates.insert(&key, known, bytes);
                }
            }
        }
        Ok(read.coordinate)
    }
}

impl UsedLabels {
    /// Adds a coordinate.
    fn add(&mut self, known: &KnownCoordinate, is_public: bool) {
        self.versions.extend(known.versions.iter().cloned());
        self.dependencies.push(Arc::clone(&known.dependencies));
        self.is_uncacheable |= !is_public;
    }

    /// Whether every caller gets the same, and a change of a coordinate is noticed later.
    pub(crate) fn is_cacheable(&self) -> bool {
        !self.is_uncacheable
    }

    /// The dependencies of a response, with these coordinates.
    pub(crate) fn with_dependencies(&self, dependencies: Dependencies) -> Dependencies {
        self.dependencies.iter().cloned().fold(dependencies, Dependencies::and_shared)
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

fn nothing_goes_around(turn: f64) -> Problem {
    Problem::from_class(ErrorClass::InvalidRequest).detail(format!(
        "`wrap` is for a coordinate that goes around, and no dimension that is selected by label has one: its units are \
         `degrees_east`, its `standard_name` or its name is `longitude`, or its labels are once around {turn}"
    ))
}

fn no_coordinate(name: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "no-coordinate").detail(format!(
        "the dimension `{name}` has no labels: there is no array of one dimension `{name}` beside the array or above it; {}",
        by_position(name)
    ))
}

/// What to do without labels.
fn by_position(name: &str) -> String {
    format!("select by position, with `isel.{name}`")
}
