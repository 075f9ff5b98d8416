//! The specs of the store routes, shared by several handler files.

use crate::http::route::{FastPath, MediaTypes, Resource, RouteSpec};

/// A key of a mount, or a prefix with a slash at its end.
pub(crate) const KEY: RouteSpec = RouteSpec::new("/store/{mount}/{*key}", Resource::Stored)
    .fast_path(FastPath::Value)
    .media_types(MediaTypes::ValuesAndListings);

/// The root of a mount.
pub(crate) const ROOT: RouteSpec = RouteSpec::new("/store/{mount}/", Resource::Stored);

/// A key of the mount that is served at the root path.
pub(crate) const KEY_AT_ROOT: RouteSpec =
    RouteSpec::new("/{*key}", Resource::Stored).fast_path(FastPath::Value);

/// The root of the mount that is served at the root path.
pub(crate) const ROOT_AT_ROOT: RouteSpec = RouteSpec::new("/", Resource::Stored);

/// A mount without a slash: a redirect to its root.
pub(crate) const MOUNT: RouteSpec = RouteSpec::new("/store/{mount}", Resource::Stored);
