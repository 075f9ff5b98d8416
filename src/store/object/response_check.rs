//! Checks of a backend's response before the crate reads it, for errors that the crate would misread.
//!
//! A body with a content coding is not the value's bytes: no coding was requested, and one that a proxy added cannot be
//! distinguished from one that the value was stored with. A listing that is another document (an error, a page of a
//! portal), is cut off, or lacks its continuation token would be taken for a listing of fewer keys. All of these are
//! failures of the backend, and so is a 404 whose document says that there is no bucket. Nothing else of a response is
//! checked here.

use futures::stream::TryStreamExt;
use object_store::client::{HttpError, HttpErrorKind, HttpResponse, HttpResponseBody};
use reqwest::Method;
use reqwest::header::CONTENT_ENCODING;

use super::bucket_presence::{NoBucket, denies_bucket};
use super::refusal::{OtherRegion, is_region};

/// The longest page of a listing that is read, in bytes: more than enough for 1000 keys of S3 or GCS, or 5000 of Azure.
const MAX_PAGE_BYTES: usize = 64 << 20;

/// The length up to which the document of an error is read, in bytes.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// Why a response cannot be used.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("the backend sent a value under a content coding, so these are not the value's bytes")]
    Encoded,
    #[error("the backend has nothing to send for a value, by the status {0}")]
    NoContent(u16),
    #[error("the backend sent a part of a value, by the status 206, where all of it was requested")]
    Partial,
    #[error("the backend sent something else than a listing, or less than one")]
    NotAListing,
    #[error("the backend sent a page of a listing that does not say where the next begins")]
    NoNextPage,
    #[error("the backend sent a page of a listing longer than {MAX_PAGE_BYTES} bytes")]
    PageTooLong,
    #[error("the backend's listing broke off")]
    BrokeOff(#[source] HttpError),
}

/// The response, if it can be used.
///
/// # Errors
/// As for a broken connection, if a retry may help.
pub(super) async fn checked(
    method: &Method,
    query: Option<&str>,
    has_range: bool,
    response: HttpResponse,
) -> Result<HttpResponse, HttpError> {
    if response.status().as_u16() == 404 && method == Method::GET {
        return check_absence(response).await;
    }
    if response.status().is_redirection()
        && let Some(region) =
            response.headers().get("x-amz-bucket-region").and_then(|region| region.to_str().ok())
        && is_region(region)
    {
        return Err(HttpError::new(HttpErrorKind::Decode, OtherRegion(region.to_owned())));
    }
    if !response.status().is_success() || !matches!(method.as_str(), "GET" | "HEAD" | "PROPFIND") {
        return Ok(response);
    }
    if is_encoded(&response) {
        return Err(HttpError::new(HttpErrorKind::Interrupted, Unusable::Encoded));
    }
    // No status but these comes with a value; 204 would be read as an empty one.
    let status = response.status().as_u16();
    if method == Method::GET && !matches!(status, 200 | 206) {
        return Err(HttpError::new(HttpErrorKind::Decode, Unusable::NoContent(status)));
    }
    if status == 206 && !has_range {
        return Err(HttpError::new(HttpErrorKind::Decode, Unusable::Partial));
    }
    // Any other success is a web server that cannot list.
    let is_multistatus = method.as_str() == "PROPFIND" && response.status().as_u16() == 207;
    if !is_multistatus && !is_listing(query.unwrap_or_default()) {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let page = collect(body).await?;
    let text = String::from_utf8_lossy(&page);
    let find_fault = if is_multistatus { check_multistatus(&text) } else { find_fault(&text) };
    match find_fault {
        None => Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(bytes::Bytes::from(page)))),
        Some(find_fault) => Err(HttpError::new(HttpErrorKind::Interrupted, find_fault)),
    }
}

/// A response with 404, if it does not say that there is no bucket.
async fn check_absence(response: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (parts, body) = response.into_parts();
    let mut document = Vec::new();
    let mut stream = body.bytes_stream();
    while document.len() < MAX_ERROR_BYTES
        && let Some(piece) = stream.try_next().await?
    {
        document.extend_from_slice(&piece);
    }
    if denies_bucket(&document) {
        return Err(HttpError::new(HttpErrorKind::Decode, NoBucket));
    }
    Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(bytes::Bytes::from(document))))
}

/// Whether the bytes have a content coding. `aws-chunked`, which some servers keep from the upload, is none.
fn is_encoded(response: &HttpResponse) -> bool {
    let codings = response.headers().get_all(CONTENT_ENCODING).iter();
    codings.flat_map(|codings| codings.as_bytes().split(|byte| *byte == b',')).any(|coding| {
        let coding = coding.trim_ascii().to_ascii_lowercase();
        !matches!(&coding[..], b"" | b"identity" | b"aws-chunked")
    })
}

/// Whether this query requests a page of a listing from S3, GCS or Azure.
fn is_listing(query: &str) -> bool {
    query.split('&').any(|pair| matches!(pair, "list-type=2" | "comp=list"))
}

async fn collect(body: HttpResponseBody) -> Result<Vec<u8>, HttpError> {
    let mut page = Vec::new();
    let mut stream = body.bytes_stream();
    loop {
        match stream.try_next().await {
            Ok(Some(piece)) if page.len() + piece.len() <= MAX_PAGE_BYTES => page.extend_from_slice(&piece),
            Ok(Some(_)) => return Err(HttpError::new(HttpErrorKind::Decode, Unusable::PageTooLong)),
            Ok(None) => return Ok(page),
            Err(error) if error.kind() == HttpErrorKind::Timeout => return Err(error),
            Err(error) => {
                return Err(HttpError::new(HttpErrorKind::Interrupted, Unusable::BrokeOff(error)));
            }
        }
    }
}

/// Why a page of a bucket's listing cannot be used; `None` if it can.
fn find_fault(page: &str) -> Option<Unusable> {
    if !is_complete(page, "ListBucketResult") && !is_complete(page, "EnumerationResults") {
        return Some(Unusable::NotAListing);
    }
    let goes_on = page.contains("<IsTruncated>true</IsTruncated>");
    let says_where =
        page.split_once("<NextContinuationToken>").is_some_and(|(_, rest)| !rest.starts_with("</"));
    (goes_on && !says_where).then_some(Unusable::NoNextPage)
}

/// As [`find_fault`], for a web server's listing (RFC 4918), which has no pages.
fn check_multistatus(page: &str) -> Option<Unusable> {
    (!is_complete(page, "multistatus")).then_some(Unusable::NotAListing)
}

/// Whether the page has the element of this name, with any namespace prefix, and its end tag is the last on the page.
fn is_complete(page: &str, name: &str) -> bool {
    page.trim_end().split_once(name).is_some_and(|(_, rest)| {
        let is_empty = rest.ends_with("/>") && rest.matches('>').count() == 1;
        is_empty || rest.strip_suffix('>').is_some_and(|rest| rest.ends_with(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_multistatus_is_a_listing_of_a_web_server() {
        for page in [
            "<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\"><D:response/></D:multistatus>\n",
            "<multistatus xmlns='DAV:'/>",
        ] {
            assert!(check_multistatus(page).is_none(), "{page}");
        }
        for page in ["", "<html></html>", "<D:multistatus xmlns:D=\"DAV:\"><D:response/>", "<a/>"] {
            assert!(check_multistatus(page).is_some(), "{page}");
        }
    }

    #[test]
    fn only_a_complete_page_with_a_continuation_is_a_listing() {
        for page in [
            "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\"><Name>b</Name></ListBucketResult>\n",
            "<ListBucketResult/>",
            "<ListBucketResult xmlns=\"x\" />",
            "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>",
            "<EnumerationResults><NextMarker/></EnumerationResults>",
        ] {
            assert!(find_fault(page).is_none(), "{page}");
        }
        for page in [
            "",
            "<Error><Code>InternalError</Code></Error>",
            "<html><body>please log in</body></html>",
            "<ListBucketResult><Contents>",
            "<ListBucketResult><Name>b</Name>",
            "<ListBucketResult",
        ] {
            assert!(matches!(find_fault(page), Some(Unusable::NotAListing)), "{page}");
        }
        for token in ["", "<NextContinuationToken></NextContinuationToken>", "<NextContinuationToken/>"] {
            let page = format!("<ListBucketResult><IsTruncated>true</IsTruncated>{token}</ListBucketResult>");
            assert!(matches!(find_fault(&page), Some(Unusable::NoNextPage)), "{page}");
        }
    }

    #[test]
    fn a_listing_is_recognised_by_its_query() {
        assert!(is_listing("delimiter=%2F&list-type=2"));
        assert!(is_listing("restype=container&comp=list"));
        for query in ["", "uploads=", "versionId=list-type=2", "prefix=comp=listing"] {
            assert!(!is_listing(query), "{query}");
        }
    }
}
