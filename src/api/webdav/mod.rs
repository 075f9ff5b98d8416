//! The methods of WebDAV (RFC 4918) on the store routes: PROPFIND, MKCOL, COPY and MOVE.
//!
//! A prefix is a collection; it exists while a key is below it, so MKCOL is taken and means nothing. Not offered:
//! PROPPATCH, as values have no properties of a client's own, and LOCK and UNLOCK, in whose place there are conditional
//! writes. PUT and DELETE are in `write`.

mod mkcol;
mod multistatus;
mod propfind;
mod request_body;
mod transfer;

pub(crate) use mkcol::mkcol;
pub(crate) use propfind::propfind;
pub(crate) use transfer::{Verb, transfer};
