//! MKCOL (RFC 4918, section 9.3). A prefix exists while a key is below it, so MKCOL succeeds and changes nothing.

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use crate::api::store::list;
use crate::api::store::write::refusal;
use crate::error::ErrorClass;
use crate::http::base_path::BasePath;
use crate::http::path::KeyOrPrefix;
use crate::http::problem::Problem;
use crate::http::webdav_headers;
use crate::key::StorePrefix;
use crate::services::extract::StoreTarget;
use crate::services::mount::Mount;
use crate::store::StoreError;

/// MKCOL: responds with 201 if a prefix of this name can be created by a write below it.
pub(crate) async fn mkcol(target: &StoreTarget, request: Request) -> Result<Response, Problem> {
    let mount = &target.mount;
    if !mount.writable {
        return Err(refusal(target));
    }
    if !request.body().is_end_stream() {
        let problem = Problem::from_status(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        return Err(problem.detail("MKCOL takes no body"));
    }
    let (key, prefix) = match &target.place {
        KeyOrPrefix::Key(key) => (Some(key.clone()), key.as_prefix()),
        KeyOrPrefix::Prefix(prefix) => (prefix.as_key(), prefix.clone()),
    };
    let is_taken = match key {
        None => true,
        Some(key) => mount.store.head(&key).await?.is_some() || holds_keys(mount, &prefix).await?,
    };
    if is_taken {
        let problem = Problem::from_class(ErrorClass::NotAllowed).allow(target.methods());
        return Err(problem.detail("there is a key or a prefix of this name already"));
    }
    Ok(StatusCode::CREATED.into_response())
}

/// The destination of a COPY or MOVE in the same mount, and whether existing values may be replaced.
pub(super) fn destination_place(
    target: &StoreTarget,
    uri: &Uri,
    headers: &HeaderMap,
    base: &BasePath,
) -> Result<(KeyOrPrefix, bool), Problem> {
    let destination = webdav_headers::destination(uri, headers)?;
    let path = base.strip(destination.path()).ok_or_else(webdav_headers::remote_destination)?;
    let place = target.resolve_destination(path)?.ok_or_else(webdav_headers::remote_destination)?;
    Ok((place, webdav_headers::overwrite(headers)?))
}

/// Whether a prefix is known to exist. On a backend that cannot list, none is known.
pub(super) async fn holds_keys(mount: &Mount, prefix: &StorePrefix) -> Result<bool, StoreError> {
    match list::exists(mount, prefix).await {
        Err(StoreError::NotListable) => Ok(false),
        known => known,
    }
}
