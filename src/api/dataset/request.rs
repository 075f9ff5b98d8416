//! [`DatasetRequest`]: finds the arrays of a dataset, reads its coordinates, and writes the document.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use axum::http::StatusCode;
use axum::http::request::Parts;

use super::document::{DatasetDocument, named};
use crate::api::export::limits::check_attributes;
use crate::api::export::source_finder::SourceFinder;
use crate::api::export::sources::{ExportSource, ExportSources};
use crate::api::selection::SelectionParams;
use crate::array::{ArrayError, OpenNode, RenderedText};
use crate::auth::caller::Caller;
use crate::chunk::Subset;
use crate::error::ErrorClass;
use crate::hierarchy::Node;
use crate::http::problem::Problem;
use crate::labels::LabelExtent;
use crate::services::coordinates::ReadCoordinate;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::store::Version;

/// Most coordinates whose labels are read.
const MAX_COORDINATES: usize = 32;

/// A request for the document of a dataset.
pub(crate) struct DatasetRequest<'a> {
    pub(crate) state: &'a AppState,
    pub(crate) head: &'a Parts,
    pub(crate) target: &'a NodeTarget,
    /// The arrays of the group that the dataset has; `None` for all.
    pub(crate) names: Option<&'a [String]>,
}

/// What was read of coordinates.
#[derive(Default)]
struct ReadLabels {
    extents: HashMap<String, LabelExtent>,
    versions: Vec<Option<Version>>,
    /// Whether a coordinate could not be read now.
    lacks_some: bool,
}

impl DatasetRequest<'_> {
    /// The document of a group, or of an array with its coordinates, cached by the versions of what it is made from.
    ///
    /// # Errors
    /// 400 if the group cannot be listed, 404 for a name that no array has, 413 if there are too many attributes; failures
    /// of the store.
    pub(crate) async fn text(&self, node: Arc<OpenNode>) -> Result<RenderedText, Problem> {
        let sources = self.sources(node).await?;
        check_attributes(&sources)?;
        let read = self.labels(&sources).await?;
        let group = sources.group.iter().flat_map(|group| group.located.versions());
        let arrays = sources.sources.iter().flat_map(|source| source.node.located.versions());
        let mut versions: Vec<Option<Version>> =
            group.chain(arrays).map(Option::<&Version>::cloned).collect();
        versions.extend(read.versions);
        let form = form(&sources);
        let (cpu, mount, path) =
            (self.state.engine.cpu.clone(), self.target.mount.name.clone(), self.target.path.clone());
        let extents = read.extents;
        let making = Box::pin(async move {
            let bytes = sources.attribute_bytes();
            let make = move || {
                let document = DatasetDocument::new(&mount, path.as_str(), &sources, extents);
                let text = serde_json::to_string(&document).unwrap_or_else(|_| "null".to_owned());
                let version = Version::from_text(text.as_bytes());
                (text.into(), version)
            };
            Ok(Some(cpu.run_document(bytes, make).await?))
        });
        let made = if read.lacks_some {
            // What could not be read now may be readable at the same versions later.
            making.await.map_err(|error: ArrayError| Problem::from(error))?
        } else {
            self.target.opener.rendered_text(&self.target.path, &form, versions, making).await?
        };
        made.ok_or_else(|| Problem::from_class(ErrorClass::NotFound))
    }

    async fn sources(&self, node: Arc<OpenNode>) -> Result<ExportSources, Problem> {
        let rights = Caller::of(&self.head.extensions).rights();
        let finder = SourceFinder { target: self.target, rights, began: Instant::now() };
        match &node.node {
            Node::Group(_) => finder.of_group(node, self.names, &SelectionParams::default()).await,
            Node::Array(_) if self.names.is_some() => {
                let detail = "`vars` names variables of a group, and this is an array";
                Err(Problem::from_class(ErrorClass::InvalidRequest).detail(detail))
            }
            Node::Array(metadata) => {
                let subset = Subset::full(&metadata.shape);
                finder.of_array(node, subset).await
            }
        }
    }

    /// The extents of the coordinates: of dimensions, and those of a single value. Labels in the cache are not read again.
    async fn labels(&self, sources: &ExportSources) -> Result<ReadLabels, Problem> {
        let (of, bytes) = (sources.clone(), sources.attribute_bytes());
        let named = move || named(&of.attributes(), &of);
        let named = self.state.engine.cpu.run_document(bytes, named).await?;
        let is_read = |source: &&ExportSource| {
            source.is_coordinate || source.metadata().shape.is_empty() && named.contains(&source.name)
        };
        let mut read = ReadLabels::default();
        // One after the other: a request that waits for memory must hold none.
        for source in sources.sources.iter().filter(is_read).take(MAX_COORDINATES) {
            let found =
                ReadCoordinate::of_array(self.state, self.head, &source.name, &source.node, &source.array);
            let found = match found.await {
                Ok(found) => found,
                Err(problem) if is_of_array(problem.status()) => {
                    let (path, status) = (source.array.path(), problem.status());
                    tracing::debug!(%path, %status, "a dataset is described without the labels of a coordinate");
                    read.lacks_some |= problem.status().is_server_error();
                    continue;
                }
                Err(problem) => return Err(problem),
            };
            read.versions.extend(found.versions);
            let (labels, length) = (found.coordinate, source.metadata().shape.iter().product());
            let extent = self.state.engine.cpu.run_or_inline(length, move || labels.extent().clone());
            let extent = extent.await.map_err(ArrayError::from)?;
            read.extents.insert(source.name.clone(), extent);
        }
        Ok(read)
    }
}

/// Whether a failure to read labels is of the array, and not of the state of the server.
fn is_of_array(status: StatusCode) -> bool {
    !matches!(
        status,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS | StatusCode::GATEWAY_TIMEOUT
    )
}

/// The form of the document: which arrays it has, which depends on the rights of the caller.
fn form(sources: &ExportSources) -> String {
    let mut names = String::new();
    for source in &sources.sources {
        // Writing to a `String` cannot fail.
        let _ = writeln!(names, "{:?} {} {}", source.name, source.array.path(), source.is_coordinate);
    }
    for omitted in &sources.omitted {
        let _ = writeln!(names, "{omitted:?}");
    }
    format!("dataset {} {}", sources.group.is_some(), Version::from_text(names.as_bytes()).tag())
}
