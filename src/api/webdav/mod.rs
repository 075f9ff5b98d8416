//! The methods of WebDAV (RFC 4918) on the store routes: PROPFIND, MKCOL, COPY and MOVE.
//!
//! A prefix is a collection. It exists while a key is below it, so MKCOL is accepted and changes nothing. PROPPATCH is not
//! supported, as values have no client-defined properties. LOCK and UNLOCK are not supported either; conditional writes
//! replace them. PUT and DELETE are in `write`.

mod mkcol;
mod multistatus;
mod propfind;
mod request_body;
mod transfer;

pub(crate) use mkcol::mkcol;
pub(crate) use propfind::propfind;
pub(crate) use transfer::{TransferMethod, transfer};
