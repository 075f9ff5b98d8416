//! GET, HEAD and OPTIONS of the store routes: `get` and `get_partial_values` of Zarr core 3.1, byte for byte.
//!
//! A 404 means that the backend reported the key as absent: a Zarr client reads it as fill values. Values are never
//! content-encoded. Listings are in `list`, writes in `write`, the methods of WebDAV in `webdav`.
//!
//! A prefix without its trailing slash is redirected (301), as GDAL and Neuroglancer need it. The redirect costs one more
//! listing of the backend for each missing key. It is therefore skipped for the most frequent requests: metadata documents,
//! for which clients probe with every node, and requests with `Range`, which are about values.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::patch::{ACCEPT_PATCH, PATCH_TYPE};
use super::write::{refusal, writable_key};

use super::get::{GetOutcome, HeadOutcome, get, head};
use super::specs::{KEY, MOUNT};
use super::{consolidated, list};
use crate::admission::BufferedBytes;
use crate::api::documented::{MountParam, ReadHeaders, RootRedirect, ValueResponses};
use crate::api::webdav;
use crate::error::ErrorClass;
use crate::http::body::value_body;
use crate::http::cache_status::{CACHE_STATUS, HIT};
use crate::http::conditions::Conditions;
use crate::http::consolidated_query::ConsolidatedQuery;
use crate::http::path::{KeyOrPrefix, encode};
use crate::http::problem::{Problem, READ_METHODS};
use crate::http::range;
use crate::http::validators::{content_type, put_validators};
use crate::key::StoreKey;
use crate::services::extract::StoreTarget;
use crate::services::mount::Mount;
use crate::services::state::AppState;
use crate::store::{ValueBody, ValueInfo};

/// Read a value, or list a prefix
///
/// Returns the stored bytes of a key. A single range in `Range` is honoured; several ranges are ignored and the whole value
/// is returned. A path with a trailing slash is a prefix, and the response is a listing; a prefix without its slash is
/// redirected. A missing key is a 404 only if the backend reports its absence.
///
/// With `?consolidated`, the `.zmetadata` or `zarr.json` of a group is generated as consolidated metadata from the
/// documents of the nodes below it.
#[utoipa::path(
    method(get, head),
    path = KEY.template,
    tag = "store",
    params(
        MountParam,
        ("key" = String, Path, description = "A store key, or a prefix with a trailing slash"),
        list::ListQuery,
        ConsolidatedQuery,
        ReadHeaders,
    ),
    responses(
        ValueResponses,
        (status = 307, description = "Redirect to a signed URL of the backend in `Location`, valid for a limited time"),
        (status = 404, description = "The backend reports that the key does not exist"),
        (status = 413, description = "`?consolidated` exceeds the configured limit of nodes or bytes"),
        (status = 501, description = "`?consolidated` where the backend cannot list"),
    )
)]
pub(crate) async fn get_key(read: ReadRequest) -> Result<Response, Problem> {
    read.respond().await
}

/// A GET or HEAD request to a route that reads a store or a view, with what it names.
pub(crate) struct ReadRequest {
    state: AppState,
    pub(crate) target: StoreTarget,
    pub(crate) head: Parts,
}

impl FromRequest<AppState> for ReadRequest {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let (mut head, _) = request.into_parts();
        let target = StoreTarget::from_request_parts(&mut head, state).await?;
        Ok(Self { state: state.clone(), target, head })
    }
}

impl ReadRequest {
    /// The value or the listing.
    pub(crate) async fn respond(&self) -> Result<Response, Problem> {
        read_or_list(&self.state, &self.target, &self.head).await
    }
}

/// The response to GET or HEAD of a key or a prefix.
///
/// The branches that are rarer than a read of a value are boxed: a future is as large as its largest branch, and each layer
/// moves it.
pub(crate) async fn read_or_list(
    state: &AppState,
    target: &StoreTarget,
    head: &Parts,
) -> Result<Response, Problem> {
    let charged = target
        .is_made_of_many()
        .then(|| target.charged_to_request(&state.traffic.admission, &head.extensions));
    let target = charged.as_deref().unwrap_or(target);
    let (mount, headers) = (&target.mount, &head.headers);
    match &target.place {
        KeyOrPrefix::Prefix(prefix) => Box::pin(list::answer(state, target, prefix, head)).await,
        KeyOrPrefix::Key(key)
            if let Some(made) = consolidated::answer(
                &state.traffic.admission,
                (mount, || target.hierarchy(&state.mounts), target.view.is_some()),
                key,
                head,
            )
            .await? =>
        {
            Ok(made)
        }
        KeyOrPrefix::Key(key) if let Some(good_for) = mount.redirect => {
            Box::pin(to_backend(mount, key, &head.method, good_for)).await
        }
        KeyOrPrefix::Key(key) => {
            let found = match head.method {
                Method::HEAD => head_value(mount, key, headers).await?,
                _ => get_value(mount, key, headers).await?,
            };
            match found {
                Some(response) => Ok(response),
                None => Box::pin(absent(state, target, key, head)).await,
            }
        }
    }
}

/// Redirects the client to a signed URL of the backend. The backend then evaluates existence, range and conditions.
async fn to_backend(
    mount: &Mount,
    key: &StoreKey,
    method: &Method,
    good_for: Duration,
) -> Result<Response, Problem> {
    let Some(signed) = mount.store.signed_url(key, *method == Method::HEAD, good_for) else {
        return Err(Problem::from_class(ErrorClass::NotFound).detail("the store has no value of this key"));
    };
    let location = HeaderValue::try_from(signed.await?);
    let location = location.map_err(|error| Problem::internal(Arc::new(error)))?;
    let head = [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((StatusCode::TEMPORARY_REDIRECT, head).into_response())
}

/// Redirect to a mount's root
#[utoipa::path(
    method(get, head),
    path = MOUNT.template,
    tag = "store",
    params(MountParam),
    responses(RootRedirect)
)]
pub(crate) async fn get_mount(target: StoreTarget, uri: Uri) -> Response {
    with_slash(&target.mount.name, &uri)
}

/// Responds to all other methods: OPTIONS without a store request, the methods of WebDAV, and errors for the rest.
pub(crate) async fn other_method(
    State(state): State<AppState>,
    target: Result<StoreTarget, Problem>,
    request: Request,
) -> Result<Response, Problem> {
    let allow = target.as_ref().map_or(READ_METHODS, StoreTarget::methods);
    match request.method().as_str() {
        "OPTIONS" => {
            let class = (HeaderName::from_static("dav"), HeaderValue::from_static("1"));
            let allow = (header::ALLOW, HeaderValue::from_static(allow));
            let mut answer = (StatusCode::NO_CONTENT, [class, allow]).into_response();
            if matches!(&target, Ok(StoreTarget { mount, place: KeyOrPrefix::Key(_), .. }) if mount.writable)
            {
                answer.headers_mut().insert(ACCEPT_PATCH, PATCH_TYPE);
            }
            Ok(answer)
        }
        "PROPFIND" => webdav::propfind(&state, &target?, request).await,
        "MKCOL" => webdav::mkcol(&target?, request).await,
        "COPY" => {
            webdav::transfer(&state, &target?, webdav::TransferMethod::Copy, &request.into_parts().0).await
        }
        "MOVE" => {
            webdav::transfer(&state, &target?, webdav::TransferMethod::Move, &request.into_parts().0).await
        }
        "PUT" | "PATCH" if let Err(refused) = writable_key(target.as_ref().map_err(Clone::clone)?) => {
            Err(refused)
        }
        "DELETE" => Err(refusal(&target?)),
        _ => Err(Problem::from_status(StatusCode::METHOD_NOT_ALLOWED).allow(allow)),
    }
}

/// The response to GET of a value; `None` if the backend reports that the key does not exist.
pub(crate) async fn get_value(
    mount: &Mount,
    key: &StoreKey,
    headers: &HeaderMap,
) -> Result<Option<Response>, Problem> {
    let (status, value) = match get(&*mount.store, key, headers).await? {
        GetOutcome::Absent => return Ok(None),
        GetOutcome::NotModified(info) => return Ok(Some(not_modified(mount, key, &info))),
        GetOutcome::Failed => return Err(Problem::from_class(ErrorClass::PreconditionFailed)),
        GetOutcome::Unsatisfiable(size) => return Err(range::not_satisfiable(size)),
        GetOutcome::Whole(value) => (StatusCode::OK, value),
        GetOutcome::Part(value) => (StatusCode::PARTIAL_CONTENT, value),
    };
    let mut head = value_headers(mount, key, &value.info);
    head.insert(header::CONTENT_LENGTH, value.len().into());
    if status == StatusCode::PARTIAL_CONTENT {
        head.insert(header::CONTENT_RANGE, range::content_range(&value.range, value.info.size));
    }
    if value.is_cached {
        head.insert(CACHE_STATUS, HIT);
    }
    let is_charged = matches!(value.body, ValueBody::Bytes(_)) && !value.is_accounted;
    let held_whole = is_charged.then(|| value.len());
    let mut answer = Response::new(value_body(value).await?);
    if let Some(bytes) = held_whole {
        BufferedBytes::put(bytes, answer.extensions_mut());
    }
    *answer.status_mut() = status;
    *answer.headers_mut() = head;
    Ok(Some(answer))
}

/// The response to HEAD of a value; `None` if the backend reports that the key does not exist.
pub(crate) async fn head_value(
    mount: &Mount,
    key: &StoreKey,
    headers: &HeaderMap,
) -> Result<Option<Response>, Problem> {
    match head(&*mount.store, key, &Conditions::from_headers(headers)).await? {
        HeadOutcome::Absent => Ok(None),
        HeadOutcome::NotModified(info) => Ok(Some(not_modified(mount, key, &info))),
        HeadOutcome::Failed => Err(Problem::from_class(ErrorClass::PreconditionFailed)),
        HeadOutcome::Found(info) => {
            let mut head = value_headers(mount, key, &info);
            head.insert(header::CONTENT_LENGTH, info.size.into());
            Ok(Some((head, Body::empty()).into_response()))
        }
    }
}

/// Approximate number of headers of a response.
const HEADERS: usize = 16;

/// The headers of a value that do not depend on the status.
fn value_headers(mount: &Mount, key: &StoreKey, info: &ValueInfo) -> HeaderMap {
    // The capacity includes the headers that outer layers add.
    let mut headers = HeaderMap::with_capacity(HEADERS);
    put_validators(&mut headers, info);
    headers.insert(header::CACHE_CONTROL, mount.cache_control.of_value(key));
    headers.insert(header::CONTENT_TYPE, content_type(key));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers
}

fn not_modified(mount: &Mount, key: &StoreKey, info: &ValueInfo) -> Response {
    (StatusCode::NOT_MODIFIED, value_headers(mount, key, info)).into_response()
}

/// The response for a key that does not exist: a redirect if it is a prefix, else 404.
///
/// A failure to list still gives 404: the backend has reported that the key does not exist, and buckets with read but
/// without list permission are common.
async fn absent(
    state: &AppState,
    target: &StoreTarget,
    key: &StoreKey,
    head: &Parts,
) -> Result<Response, Problem> {
    let document = matches!(key.name(), "zarr.json" | ".zarray" | ".zgroup" | ".zattrs" | ".zmetadata");
    if !document && !head.headers.contains_key(header::RANGE) {
        let mount = &target.charged_to_request(&state.traffic.admission, &head.extensions).mount;
        match list::exists(mount, &key.as_prefix()).await {
            Ok(true) => return Ok(with_slash(key.name(), &head.uri)),
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(mount = mount.name, %error, "cannot list a missing key as a prefix");
            }
        }
    }
    Err(Problem::from_class(ErrorClass::NotFound).detail("the store has no value of this key"))
}

/// A redirect to the same URL with a trailing slash. It is relative, so that it is correct behind any proxy.
pub(crate) fn with_slash(last_segment: &str, uri: &Uri) -> Response {
    redirect(&format!("./{}/", encode(last_segment)), uri)
}

/// A redirect to a relative path that keeps the query of the URL.
pub(crate) fn redirect(path: &str, uri: &Uri) -> Response {
    let with_query = uri.query().map(|query| format!("{path}?{query}"));
    let location = with_query.and_then(|text| HeaderValue::from_str(&text).ok());
    let location = location.or_else(|| HeaderValue::from_str(path).ok());
    let location = location.unwrap_or(HeaderValue::from_static("./"));
    // Without this a browser may cache the redirect without limit, but the key may be created later.
    let cache = HeaderValue::from_static("no-cache");
    (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, location), (header::CACHE_CONTROL, cache)])
        .into_response()
}
