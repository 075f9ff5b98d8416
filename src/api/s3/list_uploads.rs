//! `ListMultipartUploads` and `ListParts`: the unfinished uploads to a bucket, and the parts of one.
//!
//! The number of uploads is bounded, so that their list has one page; that of parts has several.

use std::time::SystemTime;

use axum::response::{IntoResponse, Response};

use super::copy::soon;
use super::multipart::{find, problem_of, staged};
use super::xml::Xml;
use crate::http::path::encode;
use crate::http::problem::Problem;
use crate::http::s3_query::{Query, S3QueryError};
use crate::http::validators::{entity_tag, rfc3339};
use crate::key::StoreKey;
use crate::services::mount::Mount;
use crate::services::state::AppState;

/// Maximum number of parts on a page, whatever the request.
const PAGE_PARTS: usize = 1000;

/// Lists the uploads to keys that begin with the text `prefix`.
pub(super) async fn list_uploads(
    state: &AppState,
    mount: &Mount,
    query: &Query,
) -> Result<Response, Problem> {
    let prefix = query.value("prefix")?.unwrap_or_default();
    let is_encoded = query.value("encoding-type")? == Some("url");
    let uploads =
        async { state.uploads.list(&state.options.uploads, mount, prefix).await.map_err(problem_of) };
    let uploads = soon(&state.options, uploads).await?;
    // The staging area has no time that is not that of the backend.
    let epoch = rfc3339(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let answer = Xml::answer("ListMultipartUploadsResult", |xml| {
        xml.text("Bucket", &mount.name);
        xml.text("Prefix", prefix);
        xml.text("MaxUploads", &state.options.uploads.max_uploads.to_string());
        xml.text("IsTruncated", "false");
        for (key, id) in &uploads {
            xml.element("Upload", |xml| {
                let key = key.as_str();
                let path = || key.split('/').map(encode).collect::<Vec<_>>().join("/");
                xml.text("Key", &if is_encoded { path() } else { key.to_owned() });
                xml.text("UploadId", id);
                xml.text("StorageClass", "STANDARD");
                xml.text("Initiated", &epoch);
            });
        }
    });
    Ok(answer.into_response())
}

/// Lists the parts of an upload.
pub(super) async fn list_parts(
    state: &AppState,
    mount: &Mount,
    key: &StoreKey,
    query: &Query,
) -> Result<Response, Problem> {
    let number = |name: &'static str| match query.value(name)?.map(str::parse::<u32>) {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(number)),
        Some(Err(_)) => Err(S3QueryError::Value { name, takes: "a number" }),
    };
    let id = query.value("uploadId")?.unwrap_or_default();
    let after = number("part-number-marker")?.unwrap_or_default();
    let most = number("max-parts")?.and_then(|most| usize::try_from(most).ok());
    let most = most.unwrap_or(PAGE_PARTS).min(PAGE_PARTS);
    let place = find(state, mount, id, key, true).await?;
    let parts = soon(&state.options, staged(&place)).await?;
    let mut rest = parts.into_iter().filter(|(number, _)| *number > after);
    let page: Vec<_> = rest.by_ref().take(most).collect();
    let has_more = rest.next().is_some();
    let answer = Xml::answer("ListPartsResult", |xml| {
        xml.text("Bucket", &mount.name);
        xml.text("Key", key.as_str());
        xml.text("UploadId", id);
        xml.text("PartNumberMarker", &after.to_string());
        if let Some((last, _)) = page.last() {
            xml.text("NextPartNumberMarker", &last.to_string());
        }
        xml.text("MaxParts", &most.to_string());
        xml.text("IsTruncated", if has_more { "true" } else { "false" });
        for (number, info) in &page {
            xml.element("Part", |xml| {
                xml.text("PartNumber", &number.to_string());
                let modified = info.modified.and_then(rfc3339);
                xml.text(
                    "LastModified",
                    &modified.or_else(|| rfc3339(SystemTime::UNIX_EPOCH)).unwrap_or_default(),
                );
                xml.text("ETag", &entity_tag(&info.version));
                xml.text("Size", &info.size.to_string());
            });
        }
    });
    Ok(answer.into_response())
}
