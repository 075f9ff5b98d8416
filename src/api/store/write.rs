//! PUT and DELETE of the store routes: `set`, `erase` and `erase_prefix` of Zarr core 3.1.
//!
//! Only writable mounts offer them. A status of 201 or 204 means that the whole value is stored, a 4xx that nothing was
//! written. The store checks conditions as part of the write, not before. PUT of a part is not supported: PATCH
//! (`patch`) writes parts and shares the rules for uploads.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::TryFutureExt;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::admission::{AdmissionRequest, Priority};
use crate::api::documented::{WritablePath, WriteConditions, WriteResponses};
use crate::api::held::Held;
use crate::error::{ErrorClass, setting_key};
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
use crate::store::{SetResult, SharedStore, StoreKind, ValueInfo, WriteCondition};

/// Store a value
///
/// Replaces the value atomically. `If-Match` and `If-None-Match: *` are honoured by every backend with conditional writes.
/// A digest in the request is checked before the value is stored.
#[utoipa::path(
    put,
    path = super::specs::KEY.template,
    tag = "store",
    params(
        WritablePath,
        WriteConditions,
        ("Content-Digest" = Option<String>, Header, description = "`sha-256=:…:` or `sha-512=:…:` of the body (RFC 9530); `Repr-Digest` means the same here"),
        ("Content-MD5" = Option<String>, Header, description = "MD5 of the body in base64"),
        ("x-amz-checksum-crc32c" = Option<String>, Header, description = "CRC-32C of the body, big-endian, in base64"),
        ("x-amz-checksum-sha256" = Option<String>, Header, description = "SHA-256 of the body in base64"),
    ),
    request_body(content_type = "application/octet-stream", description = "The value"),
    responses(
        WriteResponses,
        (status = 201, description = "Stored; there was no value before"),
        (status = 204, description = "Stored; a value was replaced, or the backend does not report whether there was one"),
        (status = 400, description = "The path is not a valid store key, or the body ended early or does not match its digest; nothing was written"),
        (status = 405, description = "The mount is read-only"),
        (status = 409, description = "The key conflicts with another key, as `a` does with `a/b` in a file system; nothing was written"),
        (status = 413, description = "The value is too large; nothing was written"),
        (status = 503, description = "The server is overloaded, or has too little memory to buffer the value; nothing was written unless the problem has `written: unknown`"),
    )
)]
pub(crate) async fn put_key(
    State(state): State<AppState>,
    target: StoreTarget,
    request: Request,
) -> Result<Response, Problem> {
    let (mount, key) = writable_key(&target)?;
    let (head, incoming) = Incoming::new(&state, request)?;
    if head.headers.contains_key(header::CONTENT_RANGE) {
        let problem = Problem::from_class(ErrorClass::InvalidRequest);
        return Err(
            problem.detail("PUT stores a value whole; with `Content-Range`, PATCH writes a part of one")
        );
    }
    let condition = condition(&state.options, mount, key, &head.headers).await?;
    incoming.store(&state.options, &mount.store, key, condition).await.map(stored)
}

/// The body of a request with bytes to store, before the first of them is read.
pub(crate) struct Incoming {
    pub(crate) body: Body,
    /// The length that `Content-Length` declares.
    pub(crate) declared: Option<u64>,
    pub(crate) checking: Checking,
    /// The memory for the body, of which none is charged yet.
    pub(crate) held: Held,
}

impl Incoming {
    /// Checks the head of a request, and returns it.
    ///
    /// # Errors
    /// 413 or 415 if the body cannot be stored, 400 if its digest is invalid.
    pub(crate) fn new(state: &AppState, request: Request) -> Result<(Parts, Self), Problem> {
        let (head, body) = request.into_parts();
        check_coding(&head.headers, &[])?;
        let declared = length_in(&head.headers, &header::CONTENT_LENGTH);
        let checking = Checking::from_headers(&head.headers, &state.engine.cpu)?;
        let incoming = Self::of_body(state, &head, body, declared, checking)?;
        Ok((head, incoming))
    }

    /// The body of a request, decoded, of this length.
    ///
    /// # Errors
    /// 413 if it is too long.
    pub(crate) fn of_body(
        state: &AppState,
        head: &Parts,
        body: Body,
        declared: Option<u64>,
        checking: Checking,
    ) -> Result<Self, Problem> {
        check_length(declared, &state.options)?;
        let admission = AdmissionRequest::new(Priority::StoredBytes, &head.extensions);
        let held = Held::new(state.traffic.admission.uncharged(admission));
        Ok(Self { body, declared, checking, held })
    }

    /// Stores the body as the value of a key.
    ///
    /// The commit runs in its own task: once all bytes have arrived, a disconnect of the client cannot cancel it half-way.
    /// Until then, a disconnect ends the stream with an error.
    ///
    /// # Errors
    /// A failure of the body, of its digest, of the condition or of the store.
    pub(crate) async fn store(
        self,
        options: &HttpOptions,
        store: &SharedStore,
        key: &StoreKey,
        condition: WriteCondition,
    ) -> Result<SetResult, Problem> {
        let Self { body, declared, checking, held } = self;
        let (upload, stream) = upload(options, declared);
        let (store, name) = (Arc::clone(store), key.clone());
        let stream = held.charge_body(declared, store.held_by_set(&condition), stream)?;
        let commit = tokio::spawn(async move {
            let _held = held;
            store.set(&name, stream, condition).await
        });
        upload.checked(checking).run(body).await?;
        committed(options, commit).await?.map_err(Problem::from)
    }
}

/// Waits for a commit up to the request deadline. A slower commit continues in the background.
pub(crate) async fn committed<T>(options: &HttpOptions, commit: JoinHandle<T>) -> Result<T, Problem> {
    match timeout(options.response_timeout, commit).await {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(panic)) => Err(Problem::internal(Arc::new(panic))),
        Err(_) => Err(Problem::unfinished_change()),
    }
}

/// Erase a value, or a prefix
///
/// A path with a trailing slash is a prefix: all keys below it are erased, if the mount allows it
/// (`allow_prefix_delete`). A path without one is always a key, even if only a prefix of this name exists, so that a missing
/// slash never erases more than one value.
#[utoipa::path(
    delete,
    path = super::specs::KEY.template,
    tag = "store",
    params(
        ("mount" = String, Path, description = "Name of a writable mount"),
        ("key" = String, Path, description = "A store key, or a prefix with a trailing slash"),
        ("If-Match" = Option<String>, Header, description = "Erase only if the current value has this entity tag"),
    ),
    responses(
        (status = 204, description = "The key, or every key below the prefix, has no value now"),
        (status = 405, description = "The mount is read-only, or does not allow erasing a prefix"),
        (status = 412, description = "The precondition failed; nothing was erased"),
    )
)]
pub(crate) async fn delete_key(
    State(options): State<Arc<HttpOptions>>,
    target: StoreTarget,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let KeyOrPrefix::Prefix(prefix) = &target.place {
        if !target.mount.may_erase_prefixes() {
            return Err(refusal(&target));
        }
        if !Conditions::from_headers(&headers).is_empty() {
            // Conditions apply to a value, and a prefix has none.
            return Err(failed());
        }
        target.mount.store.erase_prefix(prefix).await?;
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let (mount, key) = writable_key(&target)?;
    let condition = condition(&options, mount, key, &headers).await?;
    let must_exist = matches!(condition, WriteCondition::IfVersion(_));
    if condition == WriteCondition::IfAbsent {
        // `If-None-Match: *` holds only if there is nothing to erase.
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
    params(("mount" = String, Path, description = "Name of a mount that allows erasing a prefix")),
    responses(
        (status = 204, description = "The mount is empty now"),
        (status = 405, description = "The mount is read-only, or does not allow erasing a prefix"),
        (status = 412, description = "The request has a precondition, and a prefix has no entity tag; nothing was erased"),
    )
)]
pub(crate) async fn delete_root(
    options: State<Arc<HttpOptions>>,
    target: StoreTarget,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    delete_key(options, target, headers).await
}

/// The key to write, if its mount is writable.
pub(crate) fn writable_key(target: &StoreTarget) -> Result<(&Mount, &StoreKey), Problem> {
    match &target.place {
        KeyOrPrefix::Key(key) if target.mount.writable => Ok((&target.mount, key)),
        KeyOrPrefix::Prefix(_) if target.mount.writable => Err(Problem::from_class(ErrorClass::NotAllowed)
            .detail("a path with a slash at its end is a prefix, and values are written to keys: leave the slash out")
            .allow(target.methods())),
        _ => Err(refusal(target)),
    }
}

/// The problem of a write, move or erasure that the mount does not allow, with the setting that would allow it.
pub(crate) fn refusal(target: &StoreTarget) -> Problem {
    let name = &target.mount.name;
    let detail = if target.is_view() {
        format!("views are read only: write to `/store/{name}/`, where the mount is writable")
    } else if !target.mount.writable {
        read_only(&target.mount)
    } else {
        erasing_disabled(&target.mount, "prefixes")
    };
    Problem::from_class(ErrorClass::NotAllowed).detail(detail).allow(target.methods())
}

/// The detail for a mount that does not let prefixes, or nodes, be erased, with the setting that would allow it.
pub(crate) fn erasing_disabled(mount: &Mount, what: &str) -> String {
    let name = &mount.name;
    let setting = setting_key(["mounts", name, "allow_prefix_delete"]);
    format!("the mount `{name}` does not let {what} be erased: set `{setting} = true`")
}

/// The name of the built-in demo.
const DEMO: &str = "demo";

/// The detail for a read-only mount, with the setting that would make it writable.
pub(crate) fn read_only(mount: &Mount) -> String {
    let name = &mount.name;
    if mount.store.kind() == StoreKind::ZIP {
        return format!("the mount `{name}` is a zip file, which is only read: unpack it to write to it");
    }
    if name == DEMO && mount.store.kind() == StoreKind::MEMORY {
        return "the demo is read-only; to write: `zarrd serve NAME=DIR --writable`".to_owned();
    }
    format!(
        "the mount `{name}` is read-only: set `{} = true`, or give the mount on the command line with `--writable`",
        setting_key(["mounts", name, "writable"])
    )
}

/// Rejects a write of elements or nodes to a mount that is read-only.
pub(crate) fn check_writable(mount: &Mount) -> Result<(), Problem> {
    if mount.writable {
        return Ok(());
    }
    Err(Problem::from_class(ErrorClass::NotAllowed).detail(read_only(mount)))
}

/// The problem of a write whose precondition failed.
pub(crate) fn failed() -> Problem {
    Problem::from_class(ErrorClass::PreconditionFailed)
        .detail("the condition does not hold; nothing was written")
}

/// Rejects a body in a content coding, besides those of `decoded`.
pub(crate) fn check_coding(headers: &HeaderMap, decoded: &[&str]) -> Result<(), Problem> {
    let codings = headers.get_all(header::CONTENT_ENCODING).iter().flat_map(|value| {
        value
            .as_bytes()
            .split(|byte| *byte == b',')
            .map(<[u8]>::trim_ascii)
            .filter(|coding| !coding.is_empty())
    });
    let is_decoded = |coding: &[u8]| {
        let mut plain = decoded.iter().chain(&["identity"]);
        plain.any(|known| coding.eq_ignore_ascii_case(known.as_bytes()))
    };
    if codings.into_iter().all(is_decoded) {
        return Ok(());
    }
    let problem = Problem::from_status(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    Err(problem.detail("send the value as it is to be stored, without `Content-Encoding`"))
}

/// The length of a body in a header.
pub(crate) fn length_in(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    headers.get(name).and_then(|length| length.to_str().ok()?.parse().ok())
}

/// Rejects a body that is too long, before its first byte is read.
fn check_length(declared: Option<u64>, options: &HttpOptions) -> Result<(), Problem> {
    let limit = options.max_value_size;
    match declared {
        Some(bytes) if bytes > limit => Err(Problem::from_class(ErrorClass::TooLarge)
            .detail(format!("the body has {bytes} bytes; at most {limit} are stored (`http.max_value_size`)"))
            .extension("limit", limit)),
        _ => Ok(()),
    }
}

/// The condition that the store must check during the write.
pub(crate) async fn condition(
    options: &HttpOptions,
    mount: &Mount,
    key: &StoreKey,
    headers: &HeaderMap,
) -> Result<WriteCondition, Problem> {
    let conditions = Conditions::from_headers(headers);
    if let Some(condition) = conditions.for_write_unseen() {
        return Ok(condition);
    }
    let head = mount.store.head(key).map_err(Problem::from);
    let current = timeout(options.response_timeout, head).await;
    let current = current.unwrap_or_else(|_| Err(Problem::from_class(ErrorClass::TimedOut)))?;
    conditions.for_write(current.as_ref()).ok_or_else(failed)
}

/// The response to a successful write.
pub(crate) fn stored(outcome: SetResult) -> Response {
    let mut head = HeaderMap::new();
    if let Some(version) = outcome.version {
        put_validators(&mut head, &ValueInfo { size: 0, version, modified: None });
    }
    let status = if outcome.created { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
    (status, head).into_response()
}
