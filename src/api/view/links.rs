//! The paths that pages link to, below the base path of the server.

use crate::http::path::encode;
use crate::key::NodePath;
use crate::page::{Crumb, NodeLinks, PyramidLink};

/// Builds links.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageLinks<'a> {
    pub(super) base: &'a str,
    pub(super) mount: &'a str,
}

/// `mount/a/b`, percent-encoded; `mount/` for the root.
fn below(mount: &str, path: &NodePath) -> String {
    let names: Vec<String> = path.as_str().split('/').map(encode).collect();
    format!("{}/{}", encode(mount), names.join("/"))
}

/// The path for signing in and out.
pub(super) fn session_path(base: &str) -> String {
    format!("{base}/view/-/session")
}

/// The path of the page of a node.
pub(crate) fn view_of(base: &str, mount: &str, path: &NodePath) -> String {
    format!("{base}/view/{}", below(mount, path))
}

impl PageLinks<'_> {
    /// The path of the page of a node.
    pub(super) fn view(self, path: &NodePath) -> String {
        view_of(self.base, self.mount, path)
    }

    /// The path of the document of a node.
    pub(super) fn node(self, path: &NodePath) -> String {
        format!("{}/v1/nodes/{}", self.base, below(self.mount, path))
    }

    /// The path of the elements of an array.
    pub(super) fn data(self, path: &NodePath) -> String {
        format!("{}/v1/data/{}", self.base, below(self.mount, path))
    }

    /// The path of a node in a view, by its recipe.
    pub(super) fn through(self, view: &str, recipe: &str, path: &NodePath) -> String {
        let names: Vec<String> = path.as_str().split('/').map(encode).collect();
        format!("{}/{view}/{}/{recipe}/{}", self.base, encode(self.mount), names.join("/"))
    }

    /// The path of the list of the mount's versions.
    pub(super) fn versions(self) -> String {
        format!("{}/v1/versions/{}", self.base, encode(self.mount))
    }

    /// The path of the description of a store of vectors.
    pub(super) fn vectors(self, path: &NodePath) -> String {
        format!("{}/v1/vectors/{}", self.base, below(self.mount, path))
    }

    /// The resources of a node.
    pub(super) fn of(self, path: &NodePath) -> NodeLinks {
        let base = self.base;
        let at = below(self.mount, path);
        let folder = if path.as_str().is_empty() { at.clone() } else { format!("{at}/") };
        let (mount, rest) = folder.split_once('/').unwrap_or((&folder, ""));
        NodeLinks {
            view: self.view(path),
            store: format!("{base}/store/{folder}"),
            nodes: self.node(path),
            data: self.data(path),
            image: format!("{base}/v1/image/{at}"),
            legend: format!("{base}/v1/legend/{at}"),
            stats: format!("{base}/v1/stats/{at}"),
            pyramid: PyramidLink {
                recipe: format!("{base}/pyramid/{mount}/auto/auto/raw/"),
                path: rest.to_owned(),
            },
            unshard: format!("{base}/unshard/{folder}"),
        }
    }

    /// The pages from the root of the mount to a node.
    pub(super) fn crumbs(self, path: &NodePath) -> Vec<Crumb> {
        let mut paths: Vec<NodePath> = std::iter::successors(Some(path.clone()), NodePath::parent).collect();
        paths.reverse();
        let name =
            |path: &NodePath| if path.as_str().is_empty() { self.mount } else { path.name() }.to_owned();
        paths.iter().map(|path| Crumb { name: name(path), href: self.view(path) }).collect()
    }
}
