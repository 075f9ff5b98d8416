//! The specs of the routes that serve stores and all their subresources.

use crate::http::route::{AdmittedBy, Resource, RouteSpec};

/// A store of Zarr Vector Format, or one of its subresources.
pub(crate) const VECTORS: RouteSpec = RouteSpec::new("/v1/vectors/{mount}/{*path}", Resource::Vectors)
    .admitted_by(AdmittedBy::Handler)
    .post_reads();

/// The store at the root of a mount.
pub(crate) const ROOT_VECTORS: RouteSpec = RouteSpec::new("/v1/vectors/{mount}", Resource::Vectors)
    .with_slash("/v1/vectors/{mount}/")
    .admitted_by(AdmittedBy::Handler)
    .post_reads();
