//! A store over one of `object_store`'s backends: S3, GCS, Azure, HTTP, memory.
//!
//! Zarr core 3.1, "Abstract store interface". The crate speaks the protocols; this module adds what it leaves open: it
//! compares versions on every response, checks ranges and lengths, distinguishes absence from refusal, and orders
//! listings. What a backend cannot do is an error, never emulated by something weaker.

mod bucket_presence;
mod client;
mod conditional;
mod deadline_body;
mod failure;
mod list;
mod object_backend;
mod pages;
mod public_addresses;
mod read;
mod read_timeout;
mod refusal;
mod response_check;
mod retries;
mod sole_writer;
mod tls;
mod trace_context;
mod write;

#[cfg(test)]
mod tests;

pub(super) use client::{Connector, TimeoutOptions};
pub(super) use failure::is_backend_failure;
pub use failure::{is_denied, is_unanswered, trouble};
pub use object_backend::{ObjectBackend, ObjectOptions};
pub use public_addresses::PrivateAddress;
pub use trace_context::set_trace_context_provider;
