//! A store over one of `object_store`'s backends: S3, GCS, Azure, HTTP, memory.
//!
//! Zarr core 3.1, "Abstract store interface". The crate speaks the protocols; this room adds what it leaves
//! open: versions compared on every answer, ranges and lengths checked, absence told from refusal, listings in
//! order. What a backend cannot do is an error, never done some other way that looks alike.

mod client;
mod conditional;
mod failure;
mod list;
mod object_backend;
mod pages;
mod read;
mod read_timeout;
mod response_check;
mod retries;
mod tls;
mod trace_context;
mod write;

#[cfg(test)]
mod tests;

pub(super) use client::{Connector, TimeoutOptions};
pub(super) use failure::is_backend_failure;
pub use failure::trouble;
pub use object_backend::{ObjectBackend, ObjectOptions};
pub use trace_context::set_trace_context_provider;
