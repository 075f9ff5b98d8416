//! A look at a backend's answer before the crate reads it, for what the crate would take for something else.
//!
//! A value under a content coding is not the value's bytes: nobody asked for one, and nothing tells a coding that a proxy
//! put on from one that the value was stored with. A listing that is another document (an error, a page of a portal), is
//! cut off, or does not say where it goes on, would be taken for a listing of fewer keys. All of these are failures of
//! the backend. Nothing else of an answer is judged here.

use futures::stream::TryStreamExt;
use object_store::client::{HttpError, HttpErrorKind, HttpResponse, HttpResponseBody};
use reqwest::Method;
use reqwest::header::CONTENT_ENCODING;

/// The longest page of a listing that is read: 1000 keys of S3 or GCS, 5000 of Azure, with room to spare.
const MAX_PAGE_BYTES: usize = 64 << 20;

/// What is wrong with an answer.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("the backend sent a value under a content coding, so these are not the value's bytes")]
    Encoded,
    #[error("the backend sent something else than a listing, or less than one")]
    NotAListing,
    #[error("the backend sent a page of a listing that does not say where the next begins")]
    NoNextPage,
    #[error("the backend sent a page of a listing longer than {MAX_PAGE_BYTES} bytes")]
    PageTooLong,
    #[error("the backend's listing broke off")]
    BrokeOff(#[source] HttpError),
}

/// The answer, if it can be used.
///
/// # Errors
/// As of a connection that broke, where asking again can help.
pub(super) async fn checked(
    method: &Method,
    query: Option<&str>,
    response: HttpResponse,
) -> Result<HttpResponse, HttpError> {
    if !response.status().is_success() || !matches!(method.as_str(), "GET" | "HEAD" | "PROPFIND") {
        return Ok(response);
    }
    if is_encoded(&response) {
        return Err(HttpError::new(HttpErrorKind::Interrupted, Unusable::Encoded));
    }
    // Any other success is a web server that cannot list.
    let is_multistatus = method.as_str() == "PROPFIND" && response.status().as_u16() == 207;
    if !is_multistatus && !is_listing(query.unwrap_or_default()) {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let page = collect(body).await?;
    let text = String::from_utf8_lossy(&page);
    let complaint = if is_multistatus { complaint_of_multistatus(&text) } else { complaint(&text) };
    match complaint {
        None => Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(bytes::Bytes::from(page)))),
        Some(complaint) => Err(HttpError::new(HttpErrorKind::Interrupted, complaint)),
    }
}

/// Whether the bytes went through a coding. `aws-chunked`, which some servers keep from the upload, is none.
fn is_encoded(response: &HttpResponse) -> bool {
    let codings = response.headers().get_all(CONTENT_ENCODING).iter();
    codings.flat_map(|codings| codings.as_bytes().split(|byte| *byte == b',')).any(|coding| {
        let coding = coding.trim_ascii().to_ascii_lowercase();
        !matches!(&coding[..], b"" | b"identity" | b"aws-chunked")
    })
}

/// Whether this asks S3, GCS or Azure for a page of a listing.
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

/// What is wrong with a page of a bucket's listing, if anything is.
fn complaint(page: &str) -> Option<Unusable> {
    if !is_whole(page, "ListBucketResult") && !is_whole(page, "EnumerationResults") {
        return Some(Unusable::NotAListing);
    }
    let goes_on = page.contains("<IsTruncated>true</IsTruncated>");
    let says_where =
        page.split_once("<NextContinuationToken>").is_some_and(|(_, rest)| !rest.starts_with("</"));
    (goes_on && !says_where).then_some(Unusable::NoNextPage)
}

/// As [`complaint`], of a web server's listing (RFC 4918), which has no pages.
fn complaint_of_multistatus(page: &str) -> Option<Unusable> {
    (!is_whole(page, "multistatus")).then_some(Unusable::NotAListing)
}

/// Whether the element of this name, with any prefix, begins on the page and is the last to end.
fn is_whole(page: &str, name: &str) -> bool {
    page.trim_end().split_once(name).is_some_and(|(_, rest)| {
        let is_empty = rest.ends_with("/>") && rest.matches('>').count() == 1;
        is_empty || rest.strip_suffix('>').is_some_and(|rest| rest.ends_with(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_multistatus_is_a_listing_of_a_web_server() {
        for page in [
            "<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\"><D:response/></D:multistatus>\n",
            "<multistatus xmlns='DAV:'/>",
        ] {
            assert!(complaint_of_multistatus(page).is_none(), "{page}");
        }
        for page in ["", "<html></html>", "<D:multistatus xmlns:D=\"DAV:\"><D:response/>", "<a/>"] {
            assert!(complaint_of_multistatus(page).is_some(), "{page}");
        }
    }

    #[test]
    fn only_a_whole_page_that_says_where_it_goes_on_is_a_listing() {
        for page in [
            "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\"><Name>b</Name></ListBucketResult>\n",
            "<ListBucketResult/>",
            "<ListBucketResult xmlns=\"x\" />",
            "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>",
            "<EnumerationResults><NextMarker/></EnumerationResults>",
        ] {
            assert!(complaint(page).is_none(), "{page}");
        }
        for page in [
            "",
            "<Error><Code>InternalError</Code></Error>",
            "<html><body>please log in</body></html>",
            "<ListBucketResult><Contents>",
            "<ListBucketResult><Name>b</Name>",
            "<ListBucketResult",
        ] {
            assert!(matches!(complaint(page), Some(Unusable::NotAListing)), "{page}");
        }
        for token in ["", "<NextContinuationToken></NextContinuationToken>", "<NextContinuationToken/>"] {
            let page = format!("<ListBucketResult><IsTruncated>true</IsTruncated>{token}</ListBucketResult>");
            assert!(matches!(complaint(&page), Some(Unusable::NoNextPage)), "{page}");
        }
    }

    #[test]
    fn a_listing_is_told_by_what_was_asked() {
        assert!(is_listing("delimiter=%2F&list-type=2"));
        assert!(is_listing("restype=container&comp=list"));
        for query in ["", "uploads=", "versionId=list-type=2", "prefix=comp=listing"] {
            assert!(!is_listing(query), "{query}");
        }
    }
}
