//! `CopyObject`: the value of a key of any mount, stored under another key.
//!
//! The source is read at one version, under the conditions of `x-amz-copy-source-if-*`. Those on the destination are
//! checked as part of the write. A copy of a value onto itself, with which clients change metadata, does nothing.

use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;

use super::tags::quote;
use super::xml::Xml;
use crate::admission::{AdmissionRequest, Priority};
use crate::api::held::Held;
use crate::api::store::write;
use crate::api::within::within;
use crate::auth::caller::Caller;
use crate::auth::{KeyScope, Permission, Scope, lacks};
use crate::error::ErrorClass;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::options::HttpOptions;
use crate::http::path::copied_key;
use crate::http::problem::Problem;
use crate::http::validators::{entity_tag, rfc3339};
use crate::key::StoreKey;
use crate::services::mount::Mount;
use crate::services::state::AppState;
use crate::store::{ByteRange, SetResult, StoreError, ValueInfo, Version};

/// The header that makes a PUT a copy.
pub(super) const COPY_SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");
/// The conditions on the source, and the headers that they are for other requests.
const CONDITIONS: [(&str, HeaderName); 4] = [
    ("x-amz-copy-source-if-match", header::IF_MATCH),
    ("x-amz-copy-source-if-none-match", header::IF_NONE_MATCH),
    ("x-amz-copy-source-if-modified-since", header::IF_MODIFIED_SINCE),
    ("x-amz-copy-source-if-unmodified-since", header::IF_UNMODIFIED_SINCE),
];

/// The source of a copy, and what the store says of it.
pub(super) struct CopySource {
    pub(super) mount: Arc<Mount>,
    pub(super) key: StoreKey,
    pub(super) info: ValueInfo,
}

impl CopySource {
    /// Finds the source that a request names, and checks the caller's right to it and the conditions on it.
    ///
    /// # Errors
    /// 400 for a name that is no key, 403 without the right, 404 if there is no such value, 412.
    pub(super) async fn of(state: &AppState, caller: &Caller, headers: &HeaderMap) -> Result<Self, Problem> {
        let named = headers.get(COPY_SOURCE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (named, version) = named.split_once("?versionId=").unwrap_or((named, "null"));
        if version != "null" {
            return Err(Problem::from_class(ErrorClass::InvalidRequest)
                .detail("the `versionId` of a source is `null`: values have one version here"));
        }
        let (mount, key) = copied_key(named)?;
        let need = Permission::stored(Scope::Read, KeyScope::Key(key.clone()));
        if !caller.rights().allows(&mount, &need) {
            return Err(lacks(Scope::Read));
        }
        let mount = state.mounts.get(&mount).map(Arc::clone).ok_or_else(|| {
            Problem::new(StatusCode::NOT_FOUND, "unknown-mount")
                .detail("there is no bucket of the source's name")
        })?;
        let info = soon(&state.options, mount.store.head(&key)).await?;
        let info = info.ok_or_else(|| {
            Problem::from_class(ErrorClass::NotFound).detail("the source of the copy has no value")
        })?;
        let of_source = |(name, standard): &(&str, HeaderName)| {
            headers.get(*name).map(|value| (standard.clone(), value.clone()))
        };
        let conditions: HeaderMap = CONDITIONS.iter().filter_map(of_source).collect();
        match Conditions::from_headers(&conditions).for_read(&info.version, info.modified) {
            Verdict::Proceed => Ok(Self { mount, key, info }),
            Verdict::NotModified | Verdict::Failed => Err(write::failed()),
        }
    }

    /// The version to copy; `None` for one that does not identify the bytes.
    pub(super) fn version(&self) -> Option<&Version> {
        self.info.version.pin()
    }
}

/// Copies a value, as `x-amz-copy-source` names it.
pub(super) async fn copy_object(
    state: &AppState,
    (mount, key): (&Mount, &StoreKey),
    caller: &Caller,
    request: Request,
) -> Result<Response, Problem> {
    let (mut head, _) = request.into_parts();
    quote(&mut head.headers);
    let source = CopySource::of(state, caller, &head.headers).await?;
    let condition = write::condition(&state.options, mount, key, &head.headers).await?;
    if source.mount.cache_name == mount.cache_name && source.key == *key {
        let info = ValueInfo { modified: None, ..source.info };
        return Ok(result("CopyObjectResult", &info).into_response());
    }
    let size = source.info.size;
    let held = held_for(state, &head);
    held.charge_set(&*mount.store, &condition, 0, size)?;
    let to = (Arc::clone(&mount.store), mount.cache_name == source.mount.cache_name, key.clone());
    let work = tokio::spawn(async move {
        let _held = held;
        let (store, is_same, key) = to;
        let version = source.version();
        if is_same {
            let copied = store.copy(&source.key, version, &key, condition).await?;
            return Ok(copied.map(|copied| copied.outcome));
        }
        match source.mount.store.get(&source.key, ByteRange::Whole, version).await? {
            Some(value) => store.set(&key, value.into_exact_stream(), condition).await.map(Some),
            None => Ok(None),
        }
    });
    let outcome = finished(&state.options, size, work).await?;
    Ok(result("CopyObjectResult", &info_of(outcome?)).into_response())
}

/// What a copy or an upload wrote, for its response.
fn info_of(outcome: SetResult) -> ValueInfo {
    let version = outcome.version.unwrap_or_else(|| Version::weak("unknown"));
    ValueInfo { size: 0, version, modified: None }
}

/// Waits for a copy of this length.
async fn finished(
    options: &HttpOptions,
    size: u64,
    work: tokio::task::JoinHandle<Result<Option<SetResult>, StoreError>>,
) -> Result<Result<SetResult, Problem>, Problem> {
    let outcome = within(options, size, work).await?;
    Ok(match outcome {
        Ok(Some(outcome)) => Ok(outcome),
        Ok(None) => {
            Err(Problem::from_class(ErrorClass::NotFound)
                .detail("the source of the copy was erased meanwhile"))
        }
        // The conditions on the source no longer hold.
        Err(StoreError::VersionChanged) => Err(write::failed()),
        Err(error) => Err(error.into()),
    })
}

/// Runs a step with the request deadline as its timeout.
pub(super) async fn soon<T, E: Into<Problem>>(
    options: &HttpOptions,
    step: impl Future<Output = Result<T, E>>,
) -> Result<T, Problem> {
    match timeout(options.response_timeout, step).await {
        Ok(result) => result.map_err(Into::into),
        Err(_) => Err(Problem::from_class(ErrorClass::TimedOut)),
    }
}

/// The memory that a store needs to copy a value.
pub(super) fn held_for(state: &AppState, head: &Parts) -> Held {
    let entrant = AdmissionRequest::new(Priority::StoredBytes, &head.extensions);
    Held::new(state.traffic.admission.uncharged(entrant))
}

/// The document of a copy. A store does not say when it stored a value; the epoch means that it is not known.
pub(super) fn result(root: &'static str, info: &ValueInfo) -> Xml {
    let modified = info.modified.and_then(rfc3339).or_else(|| rfc3339(SystemTime::UNIX_EPOCH));
    Xml::answer(root, |xml| {
        xml.text("LastModified", &modified.unwrap_or_default());
        xml.text("ETag", &entity_tag(&info.version));
    })
}
