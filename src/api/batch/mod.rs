//! `/v1/batch/{mount}`: selections of several arrays in one request.
//!
//! The response has a part for each, in their order (`multipart/mixed`, RFC 2046, section 5.1), with the status, the headers and the
//! body that the selection has by itself. Parts are sent as they are read. Each is admitted and charged as a request of its own, and
//! few of them are begun at a time.

mod items;
mod respond;

pub(crate) use respond::routes;
