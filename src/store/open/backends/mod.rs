//! The backends: a file for each, and the table of them.
//!
//! A file has all that opening needs to know of its backend: the schemes of its URLs, the options that it takes, and the
//! function that opens it. Of a backend with more than that, the store itself is a module of `store`, such as `local`.

mod azure;
mod gcs;
mod http;
pub(super) mod local;
mod memory;
mod s3;

use super::backend::Backend;

/// All backends.
pub(super) static BACKENDS: &[Backend] =
    &[local::BACKEND, s3::BACKEND, gcs::BACKEND, azure::BACKEND, http::BACKEND, memory::BACKEND];
