//! [`LabelSelection`]: what labels select along the dimensions of an array, and what that was read from.

use std::sync::Arc;
use std::time::Instant;

use axum::http::StatusCode;
use axum::http::request::Parts;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::find::{self, FoundCoordinate, is_public, may_read};
use super::read::ReadCoordinate;
use crate::array::Dependencies;
use crate::auth::caller::Caller;
use crate::chunk::AxisPositions;
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::labels::{DimensionLabels, DimensionQuery, LabelError, SelectedLabels};
use crate::services::extract::NodeTarget;
use crate::services::known_coordinates::{KnownCoordinates, NewCoordinate};
use crate::services::state::AppState;
use crate::store::Version;
use crate::units::hexadecimal::digest_tag;

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
    /// The version of their documents and chunks; `None` without coordinates.
    pub(crate) version: Option<Version>,
    dependencies: Option<Arc<Dependencies>>,
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
        let began = Instant::now();
        let names = requested.iter().map(|(name, ..)| *name);
        let key = KnownCoordinates::key(&self.target.mount.cache_name, array, names);
        let known = self.known(&key, began).await;
        let (mut new, mut goes_around) = (NewCoordinates::default(), false);
        let mut dimensions = Vec::with_capacity(requested.len());
        // One after the other: a request that waits for memory must hold none.
        for (at, &(name, length, query)) in requested.iter().enumerate() {
            let labels = match &known {
                Some((known, labels)) => {
                    let coordinate = known.coordinates.get(at).zip(labels.get(at));
                    let (coordinate, labels) = coordinate.ok_or_else(|| no_coordinate(name))?;
                    check_length((name, length), &coordinate.path, &[labels.len() as u64])?;
                    Arc::clone(labels)
                }
                // Boxed, because it is large and rare.
                None => Box::pin(self.read(array, (name, length), &mut new, began)).await?,
            };
            goes_around |= wrap.is_some_and(|turn| labels.goes_around(turn));
            let query = query.clone();
            let (work, member) = (query.work_bytes(length), query.member());
            let select = move || labels.select_by(&query, wrap);
            let selected = self.state.engine.cpu.run_or_inline(work, select).await?;
            let SelectedLabels { positions, label } = selected.map_err(|error| problem(error, member))?;
            dimensions.push(LabelledDimension { name: name.to_owned(), positions, label });
        }
        if let Some(turn) = wrap.filter(|_| !goes_around) {
            return Err(nothing_goes_around(turn));
        }
        let used = match &known {
            Some((known, _)) => UsedLabels::of_known(known, self.are_public(known)),
            None => self.insert(&key, new),
        };
        Ok(LabelSelection { dimensions, used })
    }

    /// The coordinates that are known by this key, with their labels, if they are current and the caller may read them.
    async fn known(
        &self,
        key: &str,
        began: Instant,
    ) -> Option<(Arc<KnownCoordinates>, Vec<Arc<DimensionLabels>>)> {
        let (target, caches) = (self.target, &self.state.responses);
        let rights = Caller::of(&self.head.extensions).rights();
        let known = caches.known_coordinates.get(key)?;
        if !known.visited().all(|path| may_read(target, rights, path))
            || !known.are_current(&target.opener, began).await
        {
            return None;
        }
        let labels = known.coordinates.iter().map(|coordinate| {
            caches.coordinates.get(&coordinate.labels).map(|labels| Arc::clone(labels.as_ref()))
        });
        let labels = labels.collect::<Option<_>>()?;
        Some((known, labels))
    }

    /// Whether every caller finds these coordinates.
    fn are_public(&self, known: &KnownCoordinates) -> bool {
        let rights = Caller::of(&self.head.extensions).rights();
        known.visited().all(|path| is_public(self.target, rights, path))
    }

    /// Finds and reads the labels of a dimension, which has a name and a length; `new` takes in what they depend on.
    async fn read(
        &self,
        array: &NodePath,
        (name, length): (&str, u64),
        new: &mut NewCoordinates,
        began: Instant,
    ) -> Result<Arc<DimensionLabels>, Problem> {
        let Self { state, head, target } = self;
        let rights = Caller::of(&head.extensions).rights();
        let found = FoundCoordinate::of_dimension(target, rights, array, name, began).await?;
        let Some((path, node, coordinate)) = found.coordinate else { return Err(no_coordinate(name)) };
        check_length((name, length), &path, &coordinate.metadata().shape)?;
        let read = ReadCoordinate::of_array(state, head, name, &node, &coordinate).await?;
        new.are_private |= !found.is_public;
        new.versions.extend(read.versions);
        let (nodes, labels, chunks) = (found.nodes, read.key, read.chunks);
        new.coordinates.push(NewCoordinate { path, node, nodes, labels, chunks });
        Ok(read.coordinate)
    }

    /// Keeps what was found and read for later requests.
    fn insert(&self, key: &str, new: NewCoordinates) -> UsedLabels {
        let version = version_of(&new.versions);
        let known = KnownCoordinates::new(&self.target.opener, new.coordinates, version.clone());
        let Some(known) = known else {
            return UsedLabels { version: Some(version), dependencies: None, is_uncacheable: true };
        };
        let used = UsedLabels::of_known(&known, !new.are_private);
        let (bytes, cache) = (known.memory_bytes(), &self.state.responses.known_coordinates);
        if cache.fits(bytes) {
            cache.insert(key, known, bytes);
        }
        used
    }
}

/// The coordinates that a request found and read.
#[derive(Debug, Default)]
struct NewCoordinates {
    coordinates: Vec<NewCoordinate>,
    /// The versions of their documents and chunks.
    versions: Vec<Option<Version>>,
    /// Whether another caller could find others.
    are_private: bool,
}

/// One version of several values; `None` for what is not stored. The digest's parts contain no zero byte: tags are visible ASCII.
fn version_of(versions: &[Option<Version>]) -> Version {
    let mut digest = Sha256::new();
    for version in versions {
        digest.update(version.as_ref().map_or("", Version::tag));
        digest.update([0]);
    }
    let tag = digest_tag(&digest.finalize());
    let is_strong = versions.iter().flatten().all(Version::is_strong);
    if is_strong { Version::strong(&tag) } else { Version::weak(&tag) }
}

impl UsedLabels {
    fn of_known(known: &KnownCoordinates, are_public: bool) -> Self {
        let dependencies = Some(Arc::clone(&known.dependencies));
        Self { version: Some(known.version.clone()), dependencies, is_uncacheable: !are_public }
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

/// Checks that a dimension is as long as its coordinate.
fn check_length(dimension: (&str, u64), path: &NodePath, shape: &[u64]) -> Result<(), Problem> {
    find::check_length(dimension, path, shape, by_position)
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
