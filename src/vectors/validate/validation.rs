//! [`ValidationRequest`]: runs the checks of a store, level by level.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::report::Report;
use super::structure::{self, CheckedLevels};
use super::{data, geometry, metadata};
use crate::array::ArrayError;
use crate::hierarchy::{HierarchyError, Node};
use crate::key::NodePath;
use crate::vectors::VectorError;
use crate::vectors::context::VectorContext;
use crate::vectors::root::RootMetadata;
use crate::vectors::store::VectorStore;

/// A validation request.
#[derive(Clone, Debug)]
pub struct ValidationRequest {
    /// The highest level of checks to run, 1 to 5.
    pub level: u8,
    /// The levels of the pyramid to check; `None` for all.
    pub levels: Option<Vec<u64>>,
    /// Whether to stop after the first level of checks with errors.
    pub short_circuit: bool,
    /// How long chunks may be read.
    pub time_limit: Duration,
}

impl ValidationRequest {
    /// Validates the store at a path.
    ///
    /// # Errors
    /// Failures of the store; [`VectorError::NotAStore`] if the path shows no trace of a store.
    pub async fn run(self, context: Arc<VectorContext>, path: NodePath) -> Result<Report, VectorError> {
        let began = Instant::now();
        let mut report = Report::new(self.level);
        let store = match VectorStore::open(Arc::clone(&context), path.clone()).await {
            Ok(store) => store,
            Err(error) => {
                let is_expected =
                    is_metadata_error(&error) && hints_at_store(&context, &path, &error).await?;
                if !is_expected {
                    return Err(error);
                }
                report.error("root_metadata", path.as_str(), error.to_string());
                report.skip_all_but("root_metadata", "the metadata of the store cannot be used");
                return Ok(report);
            }
        };
        report.pass("root_metadata", path.as_str());
        let found = CheckedLevels::read(&store, self.levels.as_deref()).await?;
        let is_over =
            |report: &Report, level: u8| self.level < level || (self.short_circuit && !report.is_ok());
        structure::check(&store, &found, &mut report).await?;
        if !is_over(&report, 2) {
            metadata::check(&store, &found, &mut report).await?;
        }
        if !is_over(&report, 3) {
            data::check(&store, &found, &mut report, began + self.time_limit).await?;
        }
        if !is_over(&report, 4) {
            geometry::check_geometry_types(&store, &found, &mut report).await?;
        }
        if !is_over(&report, 5) {
            geometry::check_pyramid(&store, &found, &mut report).await?;
        }
        report.skip_missing();
        Ok(report)
    }
}

/// Whether a store cannot be opened because of its documents, and not because the backend fails.
fn is_metadata_error(error: &VectorError) -> bool {
    matches!(
        error,
        VectorError::NotAStore { .. }
            | VectorError::Array(ArrayError::Hierarchy(
                HierarchyError::Metadata { .. } | HierarchyError::NoSuchNode { .. }
            ))
    )
}

/// Whether attributes or a `0/vertices` node suggest that the path should be a vector store.
async fn hints_at_store(
    context: &VectorContext,
    path: &NodePath,
    error: &VectorError,
) -> Result<bool, VectorError> {
    if let VectorError::NotAStore { .. } = error
        && let Ok(opened) = context.opener.open(path).await
        && let Node::Group(group) = &opened.node
    {
        let attributes = match context.merged_attributes(path, group).await {
            Ok((attributes, _)) => attributes,
            Err(_) => context.parse_attributes(&group.attributes).await?,
        };
        if RootMetadata::hints_at_store(&attributes) {
            return Ok(true);
        }
    }
    let vertices = path.child("0")?.child("vertices")?;
    match context.node(&vertices).await {
        Ok(found) => Ok(found.is_some()),
        Err(error) if is_metadata_error(&error) => Ok(true),
        Err(error) => Err(error),
    }
}
