//! The problem of a missing node: the mount, the path, what exists there instead, and a suggestion.
//!
//! The error may be in the last name of a path or further up. The server finds the nearest existing ancestor and, among its
//! children, the name most similar to the requested one. If the path is a folder without a metadata document, the problem
//! lists its children. Nothing is read or reported where the caller may not list. If a part of this information cannot be
//! read, the problem omits it.

use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};

use crate::api::dependents;
use crate::array::{ArrayError, OpenNode};
use crate::auth::{KeyScope, Permission, Rights, Scope};
use crate::error::nearest;
use crate::hierarchy::{HierarchyError, Node};
use crate::http::path::encode;
use crate::http::problem::Problem;
use crate::key::{NodePath, StorePrefix};
use crate::metadata::NodeKind;
use crate::services::extract::NodeTarget;
use crate::store::{DirEntry, StoreError};

/// Maximum number of ancestors that are checked, the nearest first.
const MOST_ABOVE: usize = 8;
/// Maximum number of entries of a folder, including chunks, that are read to find a similar name.
const MOST_ENTRIES: usize = 1000;
/// Maximum number of children that the problem lists.
const MOST_LISTED: usize = 100;
/// Maximum number of these that are opened to find their node type.
const MOST_OPENED: usize = 20;
/// Nodes that are opened concurrently.
const CONCURRENCY: usize = 16;

/// The problem of a node that cannot be opened; for a missing node with what exists nearby.
pub(crate) async fn problem_of(
    error: ArrayError,
    rights: &Rights,
    target: &NodeTarget,
    path: &NodePath,
) -> Problem {
    let is_missing = matches!(error, ArrayError::Hierarchy(HierarchyError::NoSuchNode { .. }));
    let problem = dependents::problem_of(error);
    if !is_missing {
        return problem;
    }
    let seen = Seen { rights, target };
    let mount = &target.mount.name;
    let problem = problem.extension("mount", mount.as_str()).extension("path", path.as_str());
    let start = format!("there is no array or group at `{path}` of the mount `{mount}`");
    let names = seen.names_in(path).await.unwrap_or_default();
    if !names.is_empty() {
        let children = seen.children(path, &names).await;
        let detail = format!("{start}, but a folder: {}", listed(&names));
        return problem.detail(detail).extension("children", children);
    }
    let Some(above) = seen.above(path).await else { return problem.detail(start) };
    let problem = problem.extension("nearest", above.path.as_str());
    let meant = seen.meant(path, &above).await;
    match meant {
        Some(meant) => problem
            .detail(format!("{start}; did you mean `{meant}`?"))
            .extension("did_you_mean", meant.as_str()),
        None => {
            problem.detail(format!("{start}; the nearest that exists is the {} `{}`", above.what, above.path))
        }
    }
}

/// The first folders directly below a path that is no node, sorted by name, each with its kind if it is a node; empty
/// where there are none, or the caller may not list them.
///
/// # Errors
/// Failures of the store to list them.
pub(crate) async fn folders(
    rights: &Rights,
    target: &NodeTarget,
    path: &NodePath,
    most: usize,
) -> Result<Vec<(NodePath, Option<NodeKind>)>, StoreError> {
    let seen = Seen { rights, target };
    let names = seen.names_in(path).await?;
    let paths: Vec<NodePath> = names.iter().take(most).filter_map(|name| path.child(name).ok()).collect();
    let kinds = stream::iter(paths).map(|child| {
        let seen = &seen;
        async move {
            let node = seen.node(&child).await;
            let kind = node.map(|opened| match opened.node {
                Node::Array(_) => NodeKind::Array,
                Node::Group(_) => NodeKind::Group,
            });
            (child, kind)
        }
    });
    Ok(kinds.buffered(CONCURRENCY).collect().await)
}

/// The URL path of the listing of a folder that is no node, if there are keys in it that the caller may list.
pub(crate) async fn listing_of(rights: &Rights, target: &NodeTarget, path: &NodePath) -> Option<String> {
    if !(Seen { rights, target }).may_list(path) {
        return None;
    }
    let mut entries = target.mount.store.list_dir_after(path.prefix(), "");
    entries.try_next().await.ok()??;
    let names = path.as_str().split('/').filter(|name| !name.is_empty()).map(|name| encode(name) + "/");
    Some(format!("/store/{}/{}", target.mount.name, names.collect::<String>()))
}

/// The first names as text for an error detail.
fn listed(names: &[String]) -> String {
    const MOST: usize = 10;
    let shown: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > MOST { " and more" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// A mount, limited to what the caller may list.
struct Seen<'a> {
    rights: &'a Rights,
    target: &'a NodeTarget,
}

/// An existing ancestor of a missing node.
struct Above {
    path: NodePath,
    what: &'static str,
    /// The names of its children; empty for an array.
    names: Vec<String>,
}

impl Seen<'_> {
    /// Whether the caller may list what is below a path.
    fn may_list(&self, path: &NodePath) -> bool {
        let need = Permission::derived(Scope::List, KeyScope::Prefix(path.prefix().clone()));
        self.rights.allows(&self.target.mount.name, &need)
    }

    /// The sorted names of the folders one level below a path; of a long folder, only some of them.
    async fn names_in(&self, path: &NodePath) -> Result<Vec<String>, StoreError> {
        if !self.may_list(path) {
            return Ok(Vec::new());
        }
        let found = self.prefixes_in(path).await?;
        let names = found.iter().filter_map(|prefix| NodePath::parse(prefix.as_str()).ok());
        let mut names: Vec<String> = names.map(|path| path.name().to_owned()).collect();
        names.retain(|name| !name.is_empty());
        names.sort_unstable();
        Ok(names)
    }

    async fn prefixes_in(&self, path: &NodePath) -> Result<Vec<StorePrefix>, StoreError> {
        let store = &self.target.mount.store;
        if let Some(sample) = store.sample_prefixes(path.prefix(), MOST_ENTRIES) {
            return sample.await;
        }
        let entries = store.list_dir_after(path.prefix(), "").take(MOST_ENTRIES);
        let prefixes = entries.try_filter_map(async |entry| {
            let DirEntry::Prefix(prefix) = entry else { return Ok(None) };
            Ok(Some(prefix))
        });
        prefixes.try_collect().await
    }

    /// The node at a path; `None` if it is missing or invalid.
    async fn node(&self, path: &NodePath) -> Option<std::sync::Arc<OpenNode>> {
        self.target.opener.find(path).await.ok().flatten()
    }

    /// The children of a folder, in the form of a node document. `node_type` is null for a child that is not a node, and
    /// absent for a child that was not opened.
    async fn children(&self, path: &NodePath, names: &[String]) -> Value {
        let mount = &self.target.mount.name;
        let paths: Vec<NodePath> =
            names.iter().take(MOST_LISTED).filter_map(|name| path.child(name).ok()).collect();
        let children = stream::iter(paths).enumerate().map(|(at, child)| async move {
            let segments: Vec<String> = child.as_str().split('/').map(encode).collect();
            let href = format!("/v1/nodes/{mount}/{}", segments.join("/"));
            if at >= MOST_OPENED {
                return json!({ "name": child.name(), "href": href });
            }
            let kind = self.node(&child).await.map(|opened| match opened.node {
                Node::Array(_) => NodeKind::Array.as_str(),
                Node::Group(_) => NodeKind::Group.as_str(),
            });
            json!({ "name": child.name(), "node_type": kind, "href": href })
        });
        children.buffered(CONCURRENCY).collect::<Vec<_>>().await.into()
    }

    /// The nearest existing ancestor of a path: a node or, if none is a node, a folder.
    async fn above(&self, path: &NodePath) -> Option<Above> {
        let above = std::iter::successors(path.parent(), NodePath::parent).take(MOST_ABOVE);
        let above: Vec<NodePath> = above.take_while(|path| self.may_list(path)).collect();
        for path in &above {
            if let Some(opened) = self.node(path).await {
                let (what, names) = match opened.node {
                    Node::Array(_) => ("array", Vec::new()),
                    Node::Group(_) => ("group", self.names_in(path).await.unwrap_or_default()),
                };
                return Some(Above { path: path.clone(), what, names });
            }
        }
        for path in above {
            let names = self.names_in(&path).await.unwrap_or_default();
            if !names.is_empty() {
                return Some(Above { path, what: "folder", names });
            }
        }
        None
    }

    /// The suggested node: the path with the missing name replaced by the most similar existing one.
    async fn meant(&self, path: &NodePath, above: &Above) -> Option<NodePath> {
        let rest = path.as_str().strip_prefix(above.path.prefix().as_str())?;
        let (wrong, rest) = rest.split_once('/').map_or((rest, ""), |(wrong, rest)| (wrong, rest));
        let name = nearest(wrong, above.names.iter().map(String::as_str))?;
        let child = above.path.child(name).ok()?;
        let meant = match rest {
            "" => child,
            rest => NodePath::parse(&format!("{}/{rest}", child.as_str())).ok()?,
        };
        self.node(&meant).await.map(|_| meant)
    }
}
