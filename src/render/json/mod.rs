//! JSON (RFC 8259): one element in `element`, nested lists of them in `writer`.

mod element;
mod writer;

pub(super) use element::{longest_text, write_element};
pub(super) use writer::JsonWriter;
pub use writer::json_bytes_estimate;
