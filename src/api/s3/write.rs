//! `PutObject`, `DeleteObject` and the other operations that change an object: what each method of a key selects.
//!
//! A value is written as by `/store`: whole or not at all, under the conditions of the request. A key that ends in a slash is
//! how S3 clients make a folder. Folders exist here while they hold keys, so that an empty object of such a name is
//! accepted and stored nowhere.

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::copy::{COPY_SOURCE, copy_object};
use super::error::WRITE_METHODS;
use super::multipart::{abort, begin, complete, copy_part, part};
use super::payload::Payload;
use super::tags::quote;
use crate::api::store::write;
use crate::auth::caller::Caller;
use crate::error::ErrorClass;
use crate::http::conditions::Conditions;
use crate::http::path::KeyOrPrefix;
use crate::http::problem::{Problem, READ_METHODS};
use crate::http::s3_query::{Query, S3QueryError};
use crate::key::StoreKey;
use crate::services::extract::StoreTarget;
use crate::services::mount::Mount;
use crate::services::state::AppState;
use crate::store::WriteCondition;

/// The entity tag of an object without bytes, as S3 has it: its MD5.
const EMPTY_TAG: HeaderValue = HeaderValue::from_static("\"d41d8cd98f00b204e9800998ecf8427e\"");

/// Write a value through the S3 API
///
/// `PutObject`; with `x-amz-copy-source` `CopyObject`; with `partNumber` and `uploadId` `UploadPart`, or, with
/// `x-amz-copy-source` as well, `UploadPartCopy`. The body may be signed or not, and in the coding `aws-chunked`. Its
/// checksums are checked before anything is stored. Metadata, classes of storage and encryption are accepted and ignored.
#[utoipa::path(
    put,
    path = super::object::OBJECT.template,
    tag = "s3",
    params(
        ("mount" = String, Path, description = "Name of a writable mount: the bucket"),
        ("key" = String, Path, description = "A store key"),
        ("uploadId" = Option<String>, Query, description = "`UploadPart`: the upload"),
        ("partNumber" = Option<u32>, Query, description = "`UploadPart`: 1 to 10000"),
        ("If-Match" = Option<String>, Header, description = "Write only if the value has this entity tag"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: write only if there is no value"),
        ("x-amz-copy-source" = Option<String>, Header, description = "`mount/key`: copy this value"),
        ("x-amz-copy-source-range" = Option<String>, Header, description = "`UploadPartCopy`: `bytes=0-99`"),
        ("x-amz-content-sha256" = Option<String>, Header,
            description = "SHA-256 of the body in hexadecimal digits, `UNSIGNED-PAYLOAD`, or a form of streaming"),
        ("Content-MD5" = Option<String>, Header, description = "MD5 of the body in base64"),
        ("x-amz-checksum-crc32" = Option<String>, Header,
            description = "CRC-32 of the body in base64; also `-crc32c`, `-crc64nvme`, `-sha1` and `-sha256`"),
    ),
    request_body(content_type = "application/octet-stream", description = "The value"),
    responses(
        (status = 200, description = "Stored. `CopyObjectResult` or `CopyPartResult` for a copy", content_type = "application/xml"),
        (status = 400, description = "`InvalidArgument`, `BadDigest`, `XAmzContentSHA256Mismatch` or `IncompleteBody`; nothing was written",
            content_type = "application/xml"),
        (status = 403, description = "`AccessDenied`, `InvalidAccessKeyId`, `SignatureDoesNotMatch` or `RequestTimeTooSkewed`",
            content_type = "application/xml"),
        (status = 404, description = "`NoSuchBucket`, `NoSuchUpload`, or `NoSuchKey` of the source of a copy", content_type = "application/xml"),
        (status = 405, description = "`MethodNotAllowed`: the mount is read-only", content_type = "application/xml"),
        (status = 412, description = "`PreconditionFailed`; nothing was written", content_type = "application/xml"),
        (status = 413, description = "`EntityTooLarge`; nothing was written", content_type = "application/xml"),
        (status = 501, description = "`NotImplemented`: the operation is not supported", content_type = "application/xml"),
        (status = 503, description = "`SlowDown`: the server is overloaded", content_type = "application/xml"),
    )
)]
pub(crate) async fn put_object(
    State(state): State<AppState>,
    target: StoreTarget,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let query = Query::of(request.uri())?;
    query.reject(&["uploads"])?;
    let copies = request.headers().contains_key(COPY_SOURCE);
    if let Some(id) = query.value("uploadId")? {
        let (mount, key) = writable_key(&target)?;
        let number = part_number(&query)?;
        return if copies {
            copy_part(&state, (mount, key), &caller, (id, number), request).await
        } else {
            part(&state, (mount, key), (id, number), request).await
        };
    }
    query.reject(&["partNumber"])?;
    if copies {
        let (mount, key) = writable_key(&target)?;
        return copy_object(&state, (mount, key), &caller, request).await;
    }
    if matches!(&target.place, KeyOrPrefix::Prefix(prefix) if !prefix.is_root()) && target.mount.writable {
        return folder(&request);
    }
    let (mount, key) = writable_key(&target)?;
    let (head, incoming, checksums) = Payload::new(&state, request)?.into_parts();
    let condition = write::condition(&state.options, mount, key, &head.headers).await?;
    let outcome = incoming.store(&state.options, &mount.store, key, condition).await?;
    Ok(checksums.stored(outcome))
}

/// Begin or complete an upload through the S3 API
///
/// `CreateMultipartUpload` with `uploads`, `CompleteMultipartUpload` with `uploadId`. Parts are staged where nothing shows
/// them; the value appears when the upload is completed, whole and in one step.
#[utoipa::path(
    post,
    path = super::object::OBJECT.template,
    tag = "s3",
    params(
        ("mount" = String, Path, description = "Name of a writable mount: the bucket"),
        ("key" = String, Path, description = "A store key"),
        ("uploads" = Option<String>, Query, description = "`CreateMultipartUpload`"),
        ("uploadId" = Option<String>, Query, description = "`CompleteMultipartUpload`: the upload"),
        ("If-Match" = Option<String>, Header, description = "Complete only if the value has this entity tag"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: complete only if there is no value"),
    ),
    request_body(content_type = "application/xml", description = "`CompleteMultipartUpload`: the parts"),
    responses(
        (status = 200, description = "`InitiateMultipartUploadResult` or `CompleteMultipartUploadResult`", content_type = "application/xml"),
        (status = 400, description = "`InvalidPart`, `InvalidPartOrder`, `EntityTooSmall` or `MalformedXML`; nothing was written",
            content_type = "application/xml"),
        (status = 404, description = "`NoSuchBucket` or `NoSuchUpload`", content_type = "application/xml"),
        (status = 405, description = "`MethodNotAllowed`: the mount is read-only", content_type = "application/xml"),
        (status = 412, description = "`PreconditionFailed`; nothing was written", content_type = "application/xml"),
        (status = 413, description = "`EntityTooLarge`; nothing was written", content_type = "application/xml"),
        (status = 501, description = "`NotImplemented`: the operation is not supported", content_type = "application/xml"),
        (status = 503, description = "`SlowDown`: too many uploads are unfinished, or the server is overloaded", content_type = "application/xml"),
    )
)]
pub(crate) async fn post_object(
    State(state): State<AppState>,
    target: StoreTarget,
    request: Request,
) -> Result<Response, Problem> {
    let query = Query::of(request.uri())?;
    let (mount, key) = writable_key(&target)?;
    if query.has("uploads") {
        return begin(&state, mount, key).await;
    }
    match query.value("uploadId")? {
        Some(id) => complete(&state, (mount, key), id, request).await,
        None => {
            Err(S3QueryError::Value { name: "uploadId", takes: "an upload, or `uploads` begins one" }.into())
        }
    }
}

/// Erase a value, or abort an upload, through the S3 API
///
/// `DeleteObject`, or `AbortMultipartUpload` with `uploadId`. A key without a value is erased without an error. A key that ends
/// in a slash is a folder, which S3 clients erase after its keys: nothing is done.
#[utoipa::path(
    delete,
    path = super::object::OBJECT.template,
    tag = "s3",
    params(
        ("mount" = String, Path, description = "Name of a writable mount: the bucket"),
        ("key" = String, Path, description = "A store key"),
        ("uploadId" = Option<String>, Query, description = "`AbortMultipartUpload`: the upload"),
        ("If-Match" = Option<String>, Header, description = "Erase only if the value has this entity tag"),
    ),
    responses(
        (status = 204, description = "The key has no value now, or the upload is aborted"),
        (status = 404, description = "`NoSuchBucket` or `NoSuchUpload`", content_type = "application/xml"),
        (status = 405, description = "`MethodNotAllowed`: the mount is read-only", content_type = "application/xml"),
        (status = 412, description = "`PreconditionFailed`; nothing was erased", content_type = "application/xml"),
        (status = 501, description = "`NotImplemented`: the operation is not supported", content_type = "application/xml"),
    )
)]
pub(crate) async fn delete_object(
    State(state): State<AppState>,
    target: StoreTarget,
    mut request: Request,
) -> Result<Response, Problem> {
    quote(request.headers_mut());
    let query = Query::of(request.uri())?;
    query.reject(&["uploads", "partNumber"])?;
    if let Some(id) = query.value("uploadId")? {
        let (mount, key) = writable_key(&target)?;
        return abort(&state, mount, key, id).await;
    }
    if matches!(target.place, KeyOrPrefix::Prefix(_)) && target.mount.writable {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let (mount, key) = writable_key(&target)?;
    let condition = match Conditions::from_headers(request.headers()) {
        conditions if conditions.is_empty() => WriteCondition::Always,
        _ => write::condition(&state.options, mount, key, request.headers()).await?,
    };
    let must_exist = condition != WriteCondition::Always;
    let existed = mount.store.erase(key, condition).await?;
    if must_exist && !existed { Err(write::failed()) } else { Ok(StatusCode::NO_CONTENT.into_response()) }
}

/// The response to an empty object whose name ends in a slash.
fn folder(request: &Request) -> Result<Response, Problem> {
    if write::length_in(request.headers(), &header::CONTENT_LENGTH) != Some(0) {
        return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(
            "a key does not end in a slash: leave the slash out, or send no bytes to make a folder",
        ));
    }
    Ok((StatusCode::OK, [(header::ETAG, EMPTY_TAG)]).into_response())
}

fn part_number(query: &Query) -> Result<u32, Problem> {
    let takes = "1 to 10000";
    let number = query.value("partNumber")?.and_then(|number| number.parse().ok());
    let number = number.filter(|number| (1..=super::multipart::PARTS).contains(number));
    number.ok_or_else(|| S3QueryError::Value { name: "partNumber", takes }.into())
}

/// The key to write, if its mount is writable.
pub(super) fn writable_key(target: &StoreTarget) -> Result<(&Mount, &StoreKey), Problem> {
    write::writable_key(target).map_err(|problem| {
        let methods = if target.mount.writable { WRITE_METHODS } else { READ_METHODS };
        problem.allow(methods)
    })
}
