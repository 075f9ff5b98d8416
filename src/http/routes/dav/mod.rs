//! The methods of WebDAV (RFC 4918) on the store routes: PROPFIND, MKCOL, COPY and MOVE.
//!
//! A prefix is a collection; it exists while a key is below it, so MKCOL is taken and means nothing. Not offered:
//! PROPPATCH, as values have no properties of a client's own, and LOCK and UNLOCK, in whose place there are conditional
//! writes. PUT and DELETE are in `write`.

mod headers;
mod multistatus;
mod propfind;
mod request_body;
mod transfer;

pub(super) use propfind::propfind;
pub(super) use transfer::{Verb, transfer};

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::list;
use super::write::not_offered;
use crate::error::ErrorClass;
use crate::http::extract::{Place, StoreTarget};
use crate::http::problem::Problem;
use crate::http::state::Mount;
use crate::key::StorePrefix;
use crate::store::StoreError;

/// MKCOL: says yes to a prefix that may come to be.
pub(super) async fn mkcol(target: &StoreTarget, request: Request) -> Result<Response, Problem> {
    let mount = &target.mount;
    if !mount.writable {
        return Err(not_offered().allow(target.methods()));
    }
    if !request.body().is_end_stream() {
        let problem = Problem::of_status(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        return Err(problem.detail("MKCOL takes no body"));
    }
    let (key, prefix) = match &target.place {
        Place::Key(key) => (Some(key.clone()), key.as_prefix()),
        Place::Prefix(prefix) => (prefix.as_key(), prefix.clone()),
    };
    let is_taken = match key {
        None => true,
        Some(key) => mount.store.head(&key).await?.is_some() || holds_keys(mount, &prefix).await?,
    };
    if is_taken {
        let problem = Problem::of_class(ErrorClass::NotAllowed).allow(target.methods());
        return Err(problem.detail("there is a key or a prefix of this name already"));
    }
    Ok(StatusCode::CREATED.into_response())
}

/// Whether a prefix is known to exist. Where the backend cannot list, nobody knows of any.
async fn holds_keys(mount: &Mount, prefix: &StorePrefix) -> Result<bool, StoreError> {
    match list::exists(mount, prefix).await {
        Err(StoreError::NotListable) => Ok(false),
        known => known,
    }
}
