//! [`FoundGroups`]: the arrays of a group and of all groups in it, or an array with its coordinates.

use std::sync::Arc;
use std::time::Instant;

use axum::http::request::Parts;

use super::super::open_dataset::has_elements;
use crate::api::export::source_finder::SourceFinder;
use crate::api::export::sources::{ExportSource, ExportSources};
use crate::api::selection::SelectionParams;
use crate::array::{CachedLookup, OpenNode};
use crate::auth::caller::Caller;
use crate::auth::{KeyScope, Permission, Scope};
use crate::chunk::Subset;
use crate::error::ErrorClass;
use crate::hierarchy::Node;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::metadata::Attributes;
use crate::render::dap4::Dap4GroupSource;
use crate::render::dataset::{ElementEncoding, ExportedDataset, VariableEncoding, VariableSource, is_text};
use crate::services::extract::NodeTarget;

/// Most groups of a dataset.
const MAX_GROUPS: usize = 64;
/// Most variables of a dataset.
const MAX_VARIABLES: usize = 1000;
/// Most groups in each other.
const MAX_DEPTH: usize = 16;

/// A group whose arrays were found.
struct FoundGroup {
    name: String,
    parent: Option<usize>,
    attributes: Attributes,
    /// Where its arrays are among those of all groups.
    arrays: std::ops::Range<usize>,
}

/// A group that is still to be opened.
struct Pending {
    path: NodePath,
    parent: usize,
    depth: usize,
}

/// Groups with their arrays.
#[derive(Default)]
pub(super) struct FoundGroups {
    groups: Vec<FoundGroup>,
    /// The arrays of all groups, in the order of the groups.
    pub(super) sources: ExportSources,
}

impl FoundGroups {
    /// What is below a node. What the caller may not read, or not list, is as if it was not there.
    ///
    /// # Errors
    /// 400 if there are too many groups or variables, or if the group cannot be listed; failures of the store.
    pub(super) async fn below(
        head: &Parts,
        target: &NodeTarget,
        node: Arc<OpenNode>,
        began: Instant,
    ) -> Result<Self, Problem> {
        let rights = Caller::of(&head.extensions).rights();
        let finder = SourceFinder { target, rights, began };
        let root = if target.path.name().is_empty() { &target.mount.name } else { target.path.name() };
        let mut found = Self::default();
        if let Node::Array(metadata) = &node.node {
            let subset = Subset::full(&metadata.shape);
            let sources = finder.of_array(node, subset).await?;
            found.add(root.to_owned(), None, sources)?;
            return Ok(found);
        }
        let none = SelectionParams::default();
        let sources = finder.of_group(node, None, &none).await?;
        let mut pending = Vec::new();
        push_all(&mut pending, &sources.groups, &target.path, 0, 1)?;
        found.sources.group.clone_from(&sources.group);
        found.add(root.to_owned(), None, sources)?;
        // The last one is the next, so that groups in a group come before those beside it.
        while let Some(Pending { path, parent, depth }) = pending.pop() {
            let is_allowed = |scope| {
                let need = Permission::derived(scope, KeyScope::Prefix(path.prefix().clone()));
                rights.allows(&target.mount.name, &need)
            };
            if !is_allowed(Scope::Read) || !is_allowed(Scope::List) {
                continue;
            }
            let Some(node) = open(target, &path, began).await? else { continue };
            let mut sources = finder.of_group_at(&path, node, None, &none).await?;
            // Those that are above the group are in the groups above it, unless they are above the whole dataset.
            let is_own = |source: &ExportSource| {
                let above = source.array.path().parent();
                above.as_ref() == Some(&path) || !is_below(source.array.path(), &target.path)
            };
            sources.sources.retain(is_own);
            let place = found.groups.len();
            push_all(&mut pending, &sources.groups, &path, place, depth + 1)?;
            found.add(path.name().to_owned(), Some(parent), sources)?;
        }
        Ok(found)
    }

    fn add(
        &mut self,
        name: String,
        parent: Option<usize>,
        mut sources: ExportSources,
    ) -> Result<(), Problem> {
        sources.keep(can_have);
        let attributes = sources.attributes();
        let start = self.sources.sources.len();
        self.sources.sources.append(&mut sources.sources);
        let arrays = start..self.sources.sources.len();
        self.groups.push(FoundGroup { name, parent, attributes, arrays });
        if self.groups.len() > MAX_GROUPS || self.sources.sources.len() > MAX_VARIABLES {
            let detail = format!(
                "the dataset has more than {MAX_GROUPS} groups or {MAX_VARIABLES} variables; open one of the groups in it"
            );
            return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(detail));
        }
        Ok(())
    }

    /// Bytes of all attributes.
    pub(super) fn attribute_bytes(&self) -> u64 {
        let of_groups = self.groups.iter().skip(1).map(|group| group.attributes.text().len() as u64);
        of_groups.fold(self.sources.attribute_bytes(), u64::saturating_add)
    }

    /// Describes the groups. The work takes time: do it on the compute pool.
    pub(super) fn described(&self) -> impl FnOnce() -> Vec<Dap4GroupSource> + Send + 'static {
        let groups: Vec<(String, Option<usize>, Attributes, Vec<VariableSource>)> = self
            .groups
            .iter()
            .map(|group| {
                let sources = self.sources.sources.get(group.arrays.clone()).unwrap_or_default();
                let variables = sources.iter().map(described).collect();
                (group.name.clone(), group.parent, group.attributes.clone(), variables)
            })
            .collect();
        move || {
            let group = |(name, parent, attributes, variables): (_, _, Attributes, Vec<VariableSource>)| {
                Dap4GroupSource { name, parent, described: ExportedDataset::new(&variables, &attributes) }
            };
            groups.into_iter().map(group).collect()
        }
    }
}

/// Adds the groups in a group, in the order in which they are to be taken from the end.
fn push_all(
    pending: &mut Vec<Pending>,
    names: &[String],
    group: &NodePath,
    parent: usize,
    depth: usize,
) -> Result<(), Problem> {
    if !names.is_empty() && (depth > MAX_DEPTH || pending.len() + names.len() > MAX_GROUPS) {
        let detail = format!("the dataset has more than {MAX_GROUPS} groups; open one of the groups in it");
        return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(detail));
    }
    let paths = names.iter().rev().filter_map(|name| group.child(name).ok());
    pending.extend(paths.map(|path| Pending { path, parent, depth }));
    Ok(())
}

/// The group at a path; `None` if there is none any more.
async fn open(
    target: &NodeTarget,
    path: &NodePath,
    began: Instant,
) -> Result<Option<Arc<OpenNode>>, Problem> {
    match Box::pin(target.opener.find_cached(path, began)).await? {
        CachedLookup::Node(node) if matches!(node.node, Node::Group(_)) => Ok(Some(node)),
        CachedLookup::Node(_) | CachedLookup::Absent(_) => Ok(None),
    }
}

/// Whether a node is somewhere in a group.
fn is_below(path: &NodePath, group: &NodePath) -> bool {
    let mut above = path.parent();
    while let Some(current) = above {
        if current == *group {
            return true;
        }
        above = current.parent();
    }
    false
}

/// How the elements of an array are sent; `None` for texts.
pub(super) fn encoding_of(source: &ExportSource) -> Option<ElementEncoding> {
    let data_type = &source.metadata().data_type;
    if is_text(data_type) { None } else { ElementEncoding::dap4(data_type) }
}

fn described(source: &ExportSource) -> VariableSource {
    VariableSource {
        name: source.name.clone(),
        metadata: Arc::clone(source.metadata()),
        dimension_names: source.dimension_names.clone(),
        subset: source.subset.clone(),
        is_coordinate: source.is_coordinate,
        encoding: match encoding_of(source) {
            Some(encoding) => VariableEncoding::Numbers(encoding),
            None => VariableEncoding::Texts { longest_bytes: 0 },
        },
    }
}

/// Whether DAP4 can have a variable.
fn can_have(source: &ExportSource) -> Result<(), String> {
    let data_type = &source.metadata().data_type;
    if !is_text(data_type) && ElementEncoding::dap4(data_type).is_none() {
        return Err(format!("{}, which DAP4 has no type for", data_type.name()));
    }
    has_elements(source)
}
