//! JSON (RFC 8259): `element` writes one element, `writer` nested lists of them.

mod element;
mod writer;

pub(super) use element::{max_text_bytes, write_element};
pub(super) use writer::FORMAT;
