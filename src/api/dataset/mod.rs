//! A group as a dataset: its dimensions, coordinates and variables, as far as documents and coordinates say (CF conventions).
//!
//! The document is the answer of `/v1/nodes?dataset`. It is made from the documents of arrays and the elements of coordinates,
//! never from elements of other arrays, and is cached by the versions of all these. What the caller may not read is as if
//! it was not there.

mod document;
mod request;

pub(crate) use document::DatasetDocument;
pub(crate) use request::DatasetRequest;
