//! From a URL and options to a store.
//!
//! `path`, `file://`, `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`, `http(s)://host/path`,
//! `memory://`: `backends` has a file for each and the table of them. A path that ends in `.zip` names a zip file, and the
//! store holds its entries. `kerchunk+` before a URL names a document of references, and `icechunk+` a
//! repository. The names after `s3://`, `gs://` and
//! `az://` are taken as they are written: the key of a bucket is not percent-encoded. A store without credentials is anonymous;
//! it searches for none unless an option says so. Opening connects to nothing but a metadata service:
//! [`super::Store::check`] finds out whether a backend responds.

mod backend;
mod backends;
mod bucket;
mod endpoint;
mod error;
mod metadata_service;
mod open_store;
mod registry;
mod url;

#[cfg(test)]
mod tests;

pub use error::OpenError;
pub use open_store::{OpenBudgets, open, open_prefix, open_within, place_of};
pub use registry::{backends_of, can_sign_urls, kind_of, schemes, signing_schemes, takes_option};
pub use url::{icechunk_repository, is_zip, kerchunk_document, local_path, references_of};
