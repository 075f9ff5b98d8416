//! The paths that pages link to, below the base path of the server.
//!
//! On a page that was opened by a signed URL, each path that the signature is valid for has it in its query, and the pages
//! above the signed prefix have no links.

use crate::auth::SignedUrl;
use crate::http::path::encode;
use crate::key::NodePath;
use crate::page::{Crumb, NodeLinks, PyramidLink};

/// Builds links.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageLinks<'a> {
    pub(super) base: &'a str,
    pub(super) mount: &'a str,
    /// The signature of the request's URL, if it has one.
    pub(super) signed: Option<&'a SignedUrl>,
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
    /// Whether the page may lead to a node, as far as a signature limits that.
    pub(super) fn reach(self, path: &NodePath) -> bool {
        self.signed.is_none_or(|signed| signed.reaches(path.prefix()))
    }

    /// The path of a resource of a node, with the signature if that is valid for the node.
    fn signed(self, path: &NodePath, link: String) -> String {
        match self.signed.filter(|signed| signed.reaches(path.prefix())) {
            Some(signed) => format!("{link}?{}", signed.query()),
            None => link,
        }
    }

    /// The path of a resource of a node that has one place in each mount.
    fn resource(self, route: &str, path: &NodePath) -> String {
        self.signed(path, format!("{}/{route}/{}", self.base, below(self.mount, path)))
    }

    /// The path of the page of a node.
    pub(super) fn view(self, path: &NodePath) -> String {
        self.signed(path, view_of(self.base, self.mount, path))
    }

    /// The path of the document of a node.
    pub(super) fn node(self, path: &NodePath) -> String {
        self.resource("v1/nodes", path)
    }

    /// The path of the elements of an array.
    pub(super) fn data(self, path: &NodePath) -> String {
        self.resource("v1/data", path)
    }

    /// The path of a node in a view, by its recipe.
    pub(super) fn through(self, view: &str, recipe: &str, path: &NodePath) -> String {
        let names: Vec<String> = path.as_str().split('/').map(encode).collect();
        let link = format!("{}/{view}/{}/{recipe}/{}", self.base, encode(self.mount), names.join("/"));
        self.signed(path, link)
    }

    /// The path of the list of the mount's versions.
    pub(super) fn versions(self) -> String {
        self.signed(&NodePath::root(), format!("{}/v1/versions/{}", self.base, encode(self.mount)))
    }

    /// The path of the description of a store of vectors.
    pub(super) fn vectors(self, path: &NodePath) -> String {
        self.resource("v1/vectors", path)
    }

    /// The resources of a node.
    pub(super) fn of(self, path: &NodePath) -> NodeLinks {
        let base = self.base;
        let at = below(self.mount, path);
        let folder = if path.as_str().is_empty() { at } else { format!("{at}/") };
        let (mount, rest) = folder.split_once('/').unwrap_or((&folder, ""));
        NodeLinks {
            view: self.view(path),
            store: self.signed(path, format!("{base}/store/{folder}")),
            nodes: self.node(path),
            data: self.data(path),
            image: self.resource("v1/image", path),
            legend: self.resource("v1/legend", path),
            stats: self.resource("v1/stats", path),
            pyramid: PyramidLink {
                recipe: format!("{base}/pyramid/{mount}/auto/auto/raw/"),
                path: rest.to_owned(),
            },
            unshard: format!("{base}/unshard/{folder}"),
        }
    }

    /// The pages from the root of the mount to a node, as far as they can be opened by the signature.
    pub(super) fn crumbs(self, path: &NodePath) -> Vec<Crumb> {
        let mut paths: Vec<NodePath> = std::iter::successors(Some(path.clone()), NodePath::parent).collect();
        paths.reverse();
        let name =
            |path: &NodePath| if path.as_str().is_empty() { self.mount } else { path.name() }.to_owned();
        let paths = paths.iter().filter(|path| self.reach(path));
        paths.map(|path| Crumb { name: name(path), href: self.view(path) }).collect()
    }
}
