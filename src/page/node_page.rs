//! What the pages of nodes share: places, links, the tree at the side.

use maud::{Markup, html};

use super::facts::{cut, name};
use super::layout::Crumb;
use crate::metadata::NodeKind;

/// Paths of the resources of a node, below the base path of the server.
#[derive(Clone, Debug, Default)]
pub struct NodeLinks {
    /// Its page.
    pub view: String,
    /// Its stored values.
    pub store: String,
    /// Its node document.
    pub nodes: String,
    /// Its elements.
    pub data: String,
    /// Its picture.
    pub image: String,
    /// What the colours of its picture stand for.
    pub legend: String,
    /// Its statistics.
    pub stats: String,
    /// It as a multiscale image.
    pub pyramid: PyramidLink,
    /// It as arrays of inner chunks.
    pub unshard: String,
}

/// The path of a node as a multiscale image, in two parts: between them may be a segment with the data type.
#[derive(Clone, Debug, Default)]
pub struct PyramidLink {
    /// The mount and the recipe, with a slash at its end.
    pub recipe: String,
    /// The path of the node.
    pub path: String,
}

/// The version of a mount that a page shows.
#[derive(Clone, Debug)]
pub struct ShownVersion {
    /// Its name in paths, without the `@`.
    pub name: String,
    /// The id of the snapshot, and the page at it, which stays as it is; `None` if the version is a snapshot or a tag.
    pub snapshot: Option<(String, String)>,
    /// The list of all versions; `None` if the page may not lead there.
    pub all: Option<String>,
}

/// The node that a page is about.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The name of the mount.
    pub mount: String,
    /// The path of the node; empty for the root.
    pub path: String,
    /// Its resources.
    pub links: NodeLinks,
    /// The version that it is shown at, if its mount has versions.
    pub version: Option<ShownVersion>,
    /// The image that the array is a level of, if it is one.
    pub image_above: Option<Box<NodeLinks>>,
    /// The pages from the mount, or from the first that may be opened, to the node.
    pub crumbs: Vec<Crumb>,
    /// The nodes at the side: its children or, for an array, its siblings; `None` if they are not known.
    pub tree: Option<Vec<TreeItem>>,
    /// Whether the list at the side is incomplete.
    pub has_more: bool,
}

impl Place {
    /// The name of the node above it, or of itself, that has this page.
    pub(super) fn name_of(&self, view: &str) -> String {
        let crumb = self.crumbs.iter().find(|crumb| crumb.href == view);
        crumb.map(|crumb| name(&crumb.name)).unwrap_or_default()
    }

    /// The name of the node; that of the mount for its root.
    pub(super) fn name(&self) -> String {
        let own = self.path.rsplit('/').next().filter(|name| !name.is_empty());
        name(own.unwrap_or(&self.mount))
    }
}

/// A node in a list.
#[derive(Clone, Debug)]
pub struct TreeItem {
    /// Its name.
    pub name: String,
    /// The path of its page.
    pub href: String,
    /// The path of its node document.
    pub node: String,
    /// Its kind; `None` if its documents are invalid, or there are none.
    pub kind: Option<NodeKind>,
}

impl TreeItem {
    /// The class of its link.
    pub(super) fn class(&self) -> &'static str {
        match self.kind {
            Some(NodeKind::Array) => "array",
            Some(NodeKind::Group) => "group",
            None => "folder",
        }
    }
}

/// A line about the version that is shown, if the mount has versions.
pub(super) fn version(place: &Place) -> Markup {
    html! {
        @if let Some(version) = &place.version {
            p.muted {
                "Version " code { bdi { (cut(&version.name, 100)) } }
                @if let Some((snapshot, permanent)) = &version.snapshot {
                    ": snapshot " a href=(permanent) { code { (snapshot) } }
                }
                "."
                @if let Some(all) = &version.all { " " a href=(all) { "All versions" } }
            }
        }
    }
}

/// The tree at the side: the way from the mount, and the nodes next to or below the current one.
pub(super) fn tree(place: &Place) -> Markup {
    let is_current =
        |item: &TreeItem| item.href.trim_end_matches('/') == place.links.view.trim_end_matches('/');
    // An array stands among its siblings, so its own crumb is not repeated.
    let among = place.tree.iter().flatten().any(is_current);
    let crumbs = place.crumbs.len() - usize::from(among && !place.crumbs.is_empty());
    let is_empty = place.tree.as_ref().is_some_and(Vec::is_empty);
    html! {
        nav.tree aria-label="Nodes" {
            @if !is_empty {
                input.js-only #filter type="search" placeholder="Filter ( / )" aria-label="Filter the nodes";
            }
            ol.way {
                @for crumb in place.crumbs.iter().take(crumbs) {
                    li { a.group href=(crumb.href) { bdi { (name(&crumb.name)) } } }
                }
            }
            @if is_empty {
            } @else if let Some(items) = &place.tree {
                ul #nodes {
                    @for item in items {
                        li {
                            a.(item.class()) href=(item.href) data-node=(item.node)
                                aria-current=[is_current(item).then_some("page")] { bdi { (name(&item.name)) } }
                        }
                    }
                }
                @if place.has_more {
                    p.muted { "Only the first " (items.len()) " are listed here. "
                        a href=(place.links.store) { "All stored keys" } }
                }
            } @else {
                p.muted { "The nodes here cannot be listed." }
            }
        }
    }
}
