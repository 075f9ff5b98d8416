//! The S3 dialect: the reading part of Amazon's S3 REST API over the same mounts, path-style and anonymous.
//!
//! A mount is a bucket: `GET /s3/`, `GET|HEAD /s3/{mount}` and `GET|HEAD /s3/{mount}/{key}` are `ListBuckets`,
//! `HeadBucket`, `ListObjects` of both versions, `GetBucketLocation`, `GetBucketVersioning`, `GetObject` and
//! `HeadObject`. Values are read exactly as `/store` reads them; `list` pages through keys, `query` and `xml` are what
//! the dialect is written in, `error` has its failures. Signatures and `x-amz-*` headers are accepted and not looked
//! at: they decide nothing here. Nothing is written through this dialect.

pub(crate) mod bucket;
pub(crate) mod object;

mod error;
mod list;
mod page;
mod query;
mod xml;

pub(crate) use error::{ErrorFormat, other_method};
pub(crate) use query::listed;
