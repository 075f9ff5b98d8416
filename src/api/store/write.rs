//! PUT and DELETE of the store routes: `set`, `erase` and `erase_prefix` of Zarr core 3.1.
//!
//! Offered on writable mounts only. A status of 201 or 204 means that the value is stored, whole; 4xx that nothing
//! was. Conditions are checked by the store as it writes, not before. No partial PUT: parts are written by PATCH
//! (`patch`), which shares the rules for uploads.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::TryFutureExt;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::admission::{AdmissionRequest, Priority};
use crate::api::held::Held;
use crate::error::ErrorClass;
use crate::http::body::upload;
use crate::http::conditions::Conditions;
use crate::http::digest::Checking;
use crate::http::options::HttpOptions;
use crate::http::path::KeyOrPrefix;
use crate::http::problem::Problem;
use crate::http::validators::put_validators;
use crate::key::StoreKey;
use crate::services::extract::StoreTarget;
use crate::services::mount::Mount;
use crate::services::state::AppState;
use crate::store::{SetResult, StoreKind, ValueInfo, WriteCondition};

/// Store a value
///
/// Whole or not at all. `If-Match` and `If-None-Match: *` are honoured by every backend that can.
#[utoipa::path(
    put,
    path = super::specs::KEY.template,
    tag = "store",
    params(
        ("mount" = String, Path, description = "Name of a writable mount"),
        ("key" = String, Path, description = "A store key"),
        ("If-Match" = Option<String>, Header, description = "Write only over this version"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: write only if there is no value"),
        ("Content-Digest" = Option<String>, Header, description = "`sha-256=:…:` or `sha-512=:…:` of the body (RFC 9530); `Repr-Digest` means the same here"),
        ("Content-MD5" = Option<String>, Header, description = "MD5 of the body in base64"),
        ("x-amz-checksum-crc32c" = Option<String>, Header, description = "CRC-32C of the body, big-endian, in base64"),
        ("x-amz-checksum-sha256" = Option<String>, Header, description = "SHA-256 of the body in base64"),
    ),
    request_body(content_type = "application/octet-stream", description = "The value"),
    responses(
        (status = 201, description = "Stored; there was no value before"),
        (status = 204, description = "Stored over the value before, or over none where the backend does not tell"),
        (status = 400, description = "The path is not a valid store key, or the body ended early or is not what its digest says; nothing was written"),
        (status = 405, description = "The mount is read-only"),
        (status = 408, description = "The body was not received in time; nothing was written"),
        (status = 409, description = "The key clashes with another; nothing was written"),
        (status = 412, description = "The precondition failed; nothing was written"),
        (status = 413, description = "The value is too large; nothing was written"),
        (status = 415, description = "The body is content-encoded; nothing was written"),
        (status = 503, description = "The backend takes the value only whole, and there is no memory for it now, or too busy; nothing was written"),
        (status = 507, description = "The backend has no storage space left; nothing was written"),
    )
)]
pub(crate) async fn put_key(
    State(state): State<AppState>,
    target: StoreTarget,
    request: Request,
) -> Result<Response, Problem> {
    let (mount, key) = writable_key(&target)?;
    let (parts, body) = request.into_parts();
    let declared = check_upload(&parts.headers, state.options())?;
    if parts.headers.contains_key(header::CONTENT_RANGE) {
        let problem = Problem::from_class(ErrorClass::InvalidRequest);
        return Err(
            problem.detail("PUT stores a value whole; with `Content-Range`, PATCH writes a part of one")
        );
    }
    let checking = Checking::from_headers(&parts.headers, state.cpu())?;
    let condition = condition(&state, mount, key, &parts.headers).await?;

    // The commit is a task of its own: once all bytes are here, it ends well or badly, but not half-way because
    // the client left. Until then the client's leaving ends the stream in an error.
    let (upload, stream) = upload(state.options(), declared);
    let (store, name) = (Arc::clone(&mount.store), key.clone());
    let held = Held::new(
        state.admission().uncharged(AdmissionRequest::new(Priority::StoredBytes, &parts.extensions)),
    );
    let stream = held.charge_body(declared, store.held_by_set(&condition), stream)?;
    let commit = tokio::spawn(async move {
        let _held = held;
        store.set(&name, stream, condition).await
    });
    upload.checked(checking).run(body).await?;
    committed(&state, commit).await?.map(stored).map_err(Problem::from)
}

/// Waits for a commit, which goes on if that takes too long.
pub(crate) async fn committed<T>(state: &AppState, commit: JoinHandle<T>) -> Result<T, Problem> {
    match timeout(state.deadline(), commit).await {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(panic)) => Err(Problem::internal(Arc::new(panic))),
        Err(_) => Err(Problem::from_class(ErrorClass::TimedOut).extension("written", "unknown")),
    }
}

/// Erase a value, or a prefix
///
/// With a slash at its end the path is a prefix, and every key below it is erased, if the mount offers that. Without one
/// it is a key, also where only a prefix is called so: no slip of a client erases more than one value.
#[utoipa::path(
    delete,
    path = super::specs::KEY.template,
    tag = "store",
    params(
        ("mount" = String, Path, description = "Name of a writable mount"),
        ("key" = String, Path, description = "A store key, or a prefix with a trailing slash"),
        ("If-Match" = Option<String>, Header, description = "Erase only this version"),
    ),
    responses(
        (status = 204, description = "There is no value of this key now"),
        (status = 405, description = "The mount is read-only, or does not allow erasing a prefix"),
        (status = 412, description = "The precondition failed; nothing was erased"),
    )
)]
pub(crate) async fn delete_key(
    State(state): State<AppState>,
    target: StoreTarget,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let KeyOrPrefix::Prefix(prefix) = &target.place {
        if !target.mount.may_erase_prefixes() {
            return Err(refusal(&target));
        }
        target.mount.store.erase_prefix(prefix).await?;
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let (mount, key) = writable_key(&target)?;
    let condition = condition(&state, mount, key, &headers).await?;
    let must_exist = matches!(condition, WriteCondition::IfVersion(_));
    if condition == WriteCondition::IfAbsent {
        // Nothing to erase, or a condition that fails.
        let current = mount.store.head(key).await?;
        return current.map_or(Ok(StatusCode::NO_CONTENT.into_response()), |_| Err(failed()));
    }
    let existed = mount.store.erase(key, condition).await?;
    if must_exist && !existed { Err(failed()) } else { Ok(StatusCode::NO_CONTENT.into_response()) }
}

/// Erase everything in a mount
#[utoipa::path(
    delete,
    path = super::specs::ROOT.template,
    tag = "store",
    params(("mount" = String, Path, description = "Name of a mount that offers erasing prefixes")),
    responses(
        (status = 204, description = "The mount is empty now"),
        (status = 405, description = "The mount is read-only, or does not allow erasing a prefix"),
    )
)]
pub(crate) async fn delete_root(
    state: State<AppState>,
    target: StoreTarget,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    delete_key(state, target, headers).await
}

/// The key that a write is about, if its mount takes writes.
pub(crate) fn writable_key(target: &StoreTarget) -> Result<(&Mount, &StoreKey), Problem> {
    match &target.place {
        KeyOrPrefix::Key(key) if target.mount.writable => Ok((&target.mount, key)),
        KeyOrPrefix::Prefix(_) if target.mount.writable => Err(Problem::from_class(ErrorClass::NotAllowed)
            .detail("a path with a slash at its end is a prefix, and values are written to keys: leave the slash out")
            .allow(target.methods())),
        _ => Err(refusal(target)),
    }
}

/// Why nothing is written, moved or erased here, and what would have to be set for that.
pub(crate) fn refusal(target: &StoreTarget) -> Problem {
    let name = &target.mount.name;
    let detail = if target.is_view() {
        format!("views are read only: write to `/store/{name}/`, where the mount is writable")
    } else if !target.mount.writable {
        read_only(&target.mount)
    } else {
        format!(
            "the mount `{name}` does not let prefixes be erased: set `mounts.{name}.allow_prefix_delete = true`"
        )
    };
    Problem::from_class(ErrorClass::NotAllowed).detail(detail).allow(target.methods())
}

/// What would have to be set for a mount to take writes.
pub(crate) fn read_only(mount: &Mount) -> String {
    let name = &mount.name;
    if mount.store.kind() == StoreKind::Zip {
        return format!("the mount `{name}` is a zip file, which is only read: unpack it to write to it");
    }
    format!(
        "the mount `{name}` is read-only: start with `--writable`, or set `mounts.{name}.writable = true`"
    )
}

/// The condition of a write does not hold.
pub(crate) fn failed() -> Problem {
    Problem::from_class(ErrorClass::PreconditionFailed)
        .detail("the condition does not hold; nothing was written")
}

/// Refuses, before a byte of it is read, a body that cannot be stored. Returns the length it declares.
pub(crate) fn check_upload(headers: &HeaderMap, options: &HttpOptions) -> Result<Option<u64>, Problem> {
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    if encodings.any(|coding| !coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity")) {
        let problem = Problem::from_status(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        return Err(problem.detail("send the value as it is to be stored, without `Content-Encoding`"));
    }
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let limit = options.put_body_bytes;
    match declared {
        Some(bytes) if bytes > limit => Err(Problem::from_class(ErrorClass::TooLarge)
            .detail(format!("the body has {bytes} bytes; at most {limit} are stored (`http.put_body_bytes`)"))
            .extension("limit", limit)),
        _ => Ok(declared),
    }
}

/// What the store must check as it writes.
async fn condition(
    state: &AppState,
    mount: &Mount,
    key: &StoreKey,
    headers: &HeaderMap,
) -> Result<WriteCondition, Problem> {
    let conditions = Conditions::from_headers(headers);
    if let Some(condition) = conditions.for_write_unseen() {
        return Ok(condition);
    }
    let look = mount.store.head(key).map_err(Problem::from);
    let current = timeout(state.deadline(), look).await;
    let current = current.unwrap_or_else(|_| Err(Problem::from_class(ErrorClass::TimedOut)))?;
    conditions.for_write(current.as_ref()).ok_or_else(failed)
}

/// The answer to a write.
pub(crate) fn stored(outcome: SetResult) -> Response {
    let mut head = HeaderMap::new();
    if let Some(version) = outcome.version {
        put_validators(&mut head, &ValueInfo { size: 0, version, modified: None });
    }
    let status = if outcome.created { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
    (status, head).into_response()
}
