//! `DeleteObjects`: the erasure of many values, each with a result of its own.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};

use super::error::code_of;
use super::tags::opaque;
use super::xml::Xml;
use super::xml_body::{XmlRecord, records};
use crate::api::store::write::{failed, read_only};
use crate::auth::caller::Caller;
use crate::auth::{KeyScope, Permission, Scope, lacks};
use crate::error::ErrorClass;
use crate::http::problem::{Problem, READ_METHODS};
use crate::http::s3_query::Query;
use crate::key::StoreKey;
use crate::services::extract::StoreTarget;
use crate::services::mount::Mount;
use crate::services::state::AppState;
use crate::store::WriteCondition;

/// The most keys of a request (S3 API reference, `DeleteObjects`).
const KEYS: usize = 1000;
/// Values that are erased concurrently.
const ERASURES: usize = 16;

/// Erase many values through the S3 API
///
/// `DeleteObjects`: a document with at most 1000 keys, each of which has a result of its own. Keys without a value are erased
/// without an error.
#[utoipa::path(
    post,
    path = super::bucket::BUCKET.template,
    tag = "s3",
    params(
        ("mount" = String, Path, description = "Name of a writable mount: the bucket"),
        ("delete" = String, Query, description = "`DeleteObjects`"),
    ),
    request_body(content_type = "application/xml", description = "`Delete`: the keys"),
    responses(
        (status = 200, description = "`DeleteResult`: what was erased, and what was not and why", content_type = "application/xml"),
        (status = 400, description = "`MalformedXML` or `BadDigest`; nothing was erased", content_type = "application/xml"),
        (status = 404, description = "`NoSuchBucket`", content_type = "application/xml"),
        (status = 405, description = "`MethodNotAllowed`: the mount is read-only", content_type = "application/xml"),
        (status = 501, description = "`NotImplemented`: another operation than `DeleteObjects`", content_type = "application/xml"),
    )
)]
pub(crate) async fn post_bucket(
    State(state): State<AppState>,
    target: StoreTarget,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let mount: &Mount = &target.mount;
    if !Query::of(request.uri())?.has("delete") {
        let problem = Problem::from_class(ErrorClass::Unsupported);
        return Err(problem.detail("POST of a bucket is `DeleteObjects`, with `?delete`"));
    }
    if !mount.writable {
        return Err(Problem::from_class(ErrorClass::NotAllowed).detail(read_only(mount)).allow(READ_METHODS));
    }
    let (_, records, _held) = records(&state, request, "Delete").await?;
    let lists_failures_only =
        records.iter().any(|record| record.name == "Quiet" && record.text.trim() == "true");
    let objects: Vec<XmlRecord> = records.into_iter().filter(|record| record.name == "Object").collect();
    if objects.is_empty() || objects.len() > KEYS {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "malformed-xml")
            .detail(format!("`Delete` has 1 to {KEYS} members `Object`")));
    }
    let caller = &caller;
    let erasures = objects.into_iter().map(|object| async move {
        let key = object.field("Key").unwrap_or_default().to_owned();
        let outcome = erase(mount, caller, &key, object.field("ETag")).await;
        (key, outcome)
    });
    let outcomes: Vec<_> = stream::iter(erasures).buffered(ERASURES).collect().await;
    let answer = Xml::answer("DeleteResult", |xml| {
        for (key, outcome) in &outcomes {
            match outcome {
                Ok(()) if lists_failures_only => {}
                Ok(()) => xml.element("Deleted", |xml| xml.text("Key", key)),
                Err(problem) => xml.element("Error", |xml| {
                    xml.text("Key", key);
                    xml.text("Code", code_of(problem));
                    xml.text("Message", problem.message());
                }),
            }
        }
    });
    Ok(answer.into_response())
}

/// Erases one value.
async fn erase(mount: &Mount, caller: &Caller, text: &str, tag: Option<&str>) -> Result<(), Problem> {
    // A folder, which S3 clients erase after its keys.
    let (text, is_folder) = text.strip_suffix('/').map_or((text, false), |text| (text, true));
    let key = StoreKey::parse(text)?;
    let need = Permission::stored(Scope::Delete, KeyScope::Key(key.clone()));
    if !caller.rights().allows(&mount.name, &need) {
        return Err(lacks(Scope::Delete));
    }
    if is_folder {
        return Ok(());
    }
    let Some(tag) = tag else {
        return mount.store.erase(&key, WriteCondition::Always).await.map(drop).map_err(Into::into);
    };
    let current = mount.store.head(&key).await?.ok_or_else(failed)?;
    if !current.version.is_strong() || opaque(tag) != current.version.tag() {
        return Err(failed());
    }
    let existed = mount.store.erase(&key, WriteCondition::IfVersion(current.version)).await?;
    if existed { Ok(()) } else { Err(failed()) }
}
