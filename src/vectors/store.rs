//! [`VectorStore`]: an opened store in Zarr Vector Format.

use std::sync::Arc;

use super::VectorError;
use super::cells::CellArray;
use super::context::VectorContext;
use super::json::{JsonObject, string};
use super::root::{Profile, RootMetadata};
use crate::array::ArrayError;
use crate::hierarchy::{HierarchyError, Node};
use crate::key::NodePath;

/// The largest number of levels of a store.
const MAX_LEVELS: usize = 256;

/// The number and the group name of a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelName {
    /// The number; 0 is the finest level.
    pub index: u64,
    /// The name of the level's group.
    pub name: String,
}

/// An opened store in Zarr Vector Format.
#[derive(Clone, Debug)]
pub struct VectorStore {
    /// The services and limits with which the store is read.
    pub context: Arc<VectorContext>,
    /// The path of its group.
    pub path: NodePath,
    /// Its metadata.
    pub root: Arc<RootMetadata>,
    /// Its levels, the finest first.
    pub levels: Arc<[LevelName]>,
}

impl VectorStore {
    /// Opens the store at a path.
    ///
    /// # Errors
    /// [`VectorError::NotAStore`] if the node is something else.
    pub async fn open(context: Arc<VectorContext>, path: NodePath) -> Result<Self, VectorError> {
        let not_a_store = || VectorError::NotAStore { path: path.clone() };
        let opened = context.opener.open(&path).await?;
        let Node::Group(group) = &opened.node else { return Err(not_a_store()) };
        let own = context.parse_attributes(&group.attributes).await?;
        let (attributes, conflicting_members) = if RootMetadata::has_library_metadata(&own) {
            (own, Vec::new())
        } else {
            context.merged_attributes(&path, group).await?
        };
        let is_library = RootMetadata::has_library_metadata(&attributes);
        if !is_library && !RootMetadata::has_doc_metadata(&attributes) {
            return Err(not_a_store());
        }
        let mut root = RootMetadata { profile: Profile::Doc, attributes, conflicting_members };
        if is_library {
            root.profile = Profile::V9;
        }
        let levels = list_levels(&context, &path, &root).await?;
        if is_library {
            root.profile = detect_library_profile(&context, &path, &root, levels.first()).await?;
        }
        Ok(Self { context, path, root: Arc::new(root), levels: levels.into() })
    }

    /// The attributes of the group of a level; `None` if there is no group.
    pub(super) async fn level_attributes(
        &self,
        path: &NodePath,
    ) -> Result<Option<Arc<JsonObject>>, VectorError> {
        let Some(group) = self.context.group(path).await? else { return Ok(None) };
        if self.root.profile == Profile::Doc {
            return Ok(Some(self.context.merged_attributes(path, &group).await?.0));
        }
        self.context.parse_attributes(&group.attributes).await.map(Some)
    }

    /// Opens the payloads at a path; `None` if the path has no node.
    pub(super) async fn open_cells(
        &self,
        path: NodePath,
        dims: usize,
    ) -> Result<Option<CellArray>, VectorError> {
        CellArray::open(&self.context, path, self.root.profile, dims).await
    }
}

/// The levels of a store: child groups whose names are numbers.
async fn list_levels(
    context: &VectorContext,
    path: &NodePath,
    root: &RootMetadata,
) -> Result<Vec<LevelName>, VectorError> {
    let names = match context.child_names(path).await? {
        Some(names) => names,
        // Where the store cannot list, `multiscales` names the levels.
        None => dataset_paths(root),
    };
    let numbered = |prefix: &str| {
        let level = |name: &String| {
            Some(LevelName { index: parse_level_number(name.strip_prefix(prefix)?)?, name: name.clone() })
        };
        let mut levels: Vec<LevelName> = names.iter().filter_map(level).collect();
        levels.sort_unstable_by_key(|level| level.index);
        levels
    };
    let mut levels = numbered("");
    if levels.is_empty() && root.profile == Profile::Doc {
        levels = numbered("resolution_");
    }
    if levels.len() > MAX_LEVELS {
        let estimate = levels.len() as u64;
        return Err(VectorError::TooMany { what: "levels", estimate, limit: MAX_LEVELS as u64 });
    }
    Ok(levels)
}

/// The level paths in the `multiscales` metadata.
fn dataset_paths(root: &RootMetadata) -> Vec<String> {
    let datasets = root.multiscale().and_then(|multiscale| multiscale.get("datasets")?.as_array());
    let paths = datasets.into_iter().flatten().filter_map(|dataset| string(dataset.as_object()?, "path"));
    paths.filter(|path| !path.contains('/')).map(str::to_owned).collect()
}

/// Parses a decimal number without leading zeros.
pub(super) fn parse_level_number(name: &str) -> Option<u64> {
    let is_plain = name == "0" || !name.starts_with('0');
    (is_plain && name.bytes().all(|byte| byte.is_ascii_digit())).then(|| name.parse().ok()).flatten()
}

/// The profile of a store that the library wrote: by the node kind of its `vertices`, or, where there is none, by its
/// version.
async fn detect_library_profile(
    context: &VectorContext,
    path: &NodePath,
    root: &RootMetadata,
    level: Option<&LevelName>,
) -> Result<Profile, VectorError> {
    if let Some(level) = level {
        let vertices = path.child(&level.name)?.child("vertices")?;
        match context.node(&vertices).await {
            Ok(Some(opened)) => {
                return Ok(if matches!(opened.node, Node::Group(_)) { Profile::V7 } else { Profile::V9 });
            }
            // An unusable document does not determine the profile.
            Ok(None) | Err(VectorError::Array(ArrayError::Hierarchy(HierarchyError::Metadata { .. }))) => {}
            Err(error) => return Err(error),
        }
    }
    let is_old = root.version().is_some_and(is_before_9);
    Ok(if is_old { Profile::V7 } else { Profile::V9 })
}

/// Whether a version of the format is below 0.9.
pub(super) fn is_before_9(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u64>().unwrap_or(u64::MAX));
    let (major, minor) = (numbers.next().unwrap_or(u64::MAX), numbers.next().unwrap_or(0));
    (major, minor) < (0, 9)
}
