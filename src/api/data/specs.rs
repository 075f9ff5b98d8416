//! The specs of the data routes.

use crate::http::route::{AdmittedBy, FastPath, MediaTypes, Resource, RouteSpec};

/// Elements of an array.
pub(crate) const DATA: RouteSpec = RouteSpec::new("/v1/data/{mount}/{*path}", Resource::Node)
    .admitted_by(AdmittedBy::Handler)
    .post_reads()
    .fast_path(FastPath::Elements)
    .media_types(MediaTypes::Elements);

/// Elements of the array at the root of a mount.
pub(crate) const ROOT_DATA: RouteSpec = RouteSpec::new("/v1/data/{mount}", Resource::Node)
    .with_slash("/v1/data/{mount}/")
    .post_reads()
    .admitted_by(AdmittedBy::Handler)
    .media_types(MediaTypes::Elements);

/// Elements of one chunk.
pub(crate) const CHUNK: RouteSpec = RouteSpec::new("/v1/chunk/{mount}/{*path}", Resource::Chunk)
    .admitted_by(AdmittedBy::Handler)
    .fast_path(FastPath::Chunk)
    .media_types(MediaTypes::Elements);
