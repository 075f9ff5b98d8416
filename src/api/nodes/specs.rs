//! The routes of nodes.

use crate::http::route::{Resource, RouteSpec};

/// A node.
pub(crate) const NODE: RouteSpec = RouteSpec::new("/v1/nodes/{mount}/{*path}", Resource::Node);

/// The node at the root of a mount.
pub(crate) const ROOT_NODE: RouteSpec =
    RouteSpec::new("/v1/nodes/{mount}", Resource::Node).with_slash("/v1/nodes/{mount}/");
