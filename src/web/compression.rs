//! Content codings of responses: for texts that are in memory as a whole, and for metadata documents.
//!
//! A response is encoded if the request accepts the coding and the size makes it worthwhile: JSON, HTML, CSV, problem
//! documents, the documentation and, of stored values, the metadata documents of Zarr. Never encoded are chunks and
//! other values, ranges, responses of S3 and `WebDAV`, and texts long enough to keep a core busy. Each response still
//! has an exact length, and an entity tag of its own (`coding`). HEAD has the head of the GET: where its handler
//! returns no body, the GET runs as well, and its body is dropped.
//!
//! Without this layer responses are longer, and nothing else changes: if there is no memory for a second copy, the text
//! is sent unencoded.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;

use crate::admission::{Admission, AdmissionRequest, ClientBucket, Priority};
use crate::codec::ContentCoding;
use crate::cpu::ComputePool;
use crate::http::coding::{Accepted, coded_tag};
use crate::http::fixed_text::FixedText;
use crate::http::route::RouteSpec;
use crate::key::last_segment;

/// Shorter texts fit into one packet either way.
const LEAST_BYTES: u64 = 1 << 10;
/// Longer texts would take a core for longer than a tenth of a second.
const MOST_BYTES: u64 = 8 << 20;
/// Largest number of encoded texts in the cache: the documentation has fewer files.
const MOST_KEPT: usize = 32;

/// Prefixes of the media types that are encoded.
const TEXTS: [&str; 8] = [
    "application/json",
    "application/problem+json",
    "application/javascript",
    "image/svg+xml",
    "text/css",
    "text/csv",
    "text/html",
    "text/javascript",
];

/// The metadata documents of Zarr, by the last segment of a path.
const DOCUMENTS: [&str; 5] = ["zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata"];
/// The content codings that a request accepts; most requests name none.
#[derive(Debug)]
pub(crate) struct Wish(Option<Box<Asked>>);

#[derive(Debug)]
struct Asked {
    accepted: Accepted,
    share: ClientBucket,
    is_head: bool,
    /// `If-None-Match`.
    none_match: Option<HeaderValue>,
    /// The path, if the text behind it never changes.
    fixed: Option<FixedText>,
}

impl Wish {
    /// The codings of a request; `None` if this layer does not encode its response.
    pub(crate) fn of(route: Option<&RouteSpec>, request: &Request) -> Option<Self> {
        let path = request.uri().path();
        let is_asked = matches!(*request.method(), Method::GET | Method::HEAD | Method::POST);
        let name = last_segment(path);
        let is_text = name.is_empty() || DOCUMENTS.contains(&name);
        let is_of_value = route.is_some_and(RouteSpec::ends_in_key) && !is_text;
        if !is_asked || is_of_value || route.is_some_and(|route| !route.may_be_encoded) {
            return None;
        }
        let headers = request.headers();
        if !headers.contains_key(header::ACCEPT_ENCODING) {
            return Some(Self(None));
        }
        Some(Self(Some(Box::new(Asked {
            accepted: Accepted::from_headers(headers),
            share: ClientBucket::of(request.extensions()),
            is_head: *request.method() == Method::HEAD,
            none_match: headers.get(header::IF_NONE_MATCH).cloned(),
            fixed: route.is_some_and(|route| route.is_fixed).then(|| FixedText(path.to_owned())),
        }))))
    }

    /// Whether this is a HEAD request whose response may be encoded, so that its head depends on the text.
    pub(crate) fn is_of_head(&self) -> bool {
        self.0.as_ref().is_some_and(|asked| asked.is_head && asked.accepted.chosen().is_some())
    }

    /// Adds `Vary` to a response that depends on the accepted codings; returns the coding to send it in, if any.
    pub(crate) fn judge(&self, answer: &mut Response) -> Option<ContentCoding> {
        if !is_text(answer) {
            return None;
        }
        answer.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
        let asked = self.0.as_ref()?;
        if answer.status() == StatusCode::NOT_MODIFIED {
            asked.name_held(answer.headers_mut());
        }
        asked.accepted.chosen().filter(|_| is_worth_it(answer))
    }
}

impl Asked {
    /// Sets the entity tag of a 304 to that of the encoded text that the client has, if it has one.
    fn name_held(&self, headers: &mut HeaderMap) {
        let (Some(asked), Some(tag)) = (&self.none_match, headers.get(header::ETAG)) else { return };
        let asked = asked.to_str().unwrap_or_default();
        let is_held = |tag: &HeaderValue| {
            let tag = tag.to_str().unwrap_or_default();
            asked.contains(tag.trim_start_matches("W/"))
        };
        let chosen = self.accepted.chosen().and_then(|coding| coded_tag(tag, coding)).filter(is_held);
        if chosen.is_none() && is_held(tag) {
            return;
        }
        let mut accepted = ContentCoding::ALL.into_iter().filter(|coding| self.accepted.has(*coding));
        let other = || accepted.find_map(|coding| coded_tag(tag, coding).filter(is_held));
        if let Some(tag) = chosen.or_else(other) {
            headers.insert(header::ETAG, tag);
        }
    }
}

/// Whether the response is a text without a content coding. A 304 may lack a media type.
fn is_text(answer: &Response) -> bool {
    let headers = answer.headers();
    let is_listed =
        |kind: &HeaderValue| kind.to_str().is_ok_and(|kind| TEXTS.iter().any(|text| kind.starts_with(text)));
    let kind = headers.get(header::CONTENT_TYPE);
    !headers.contains_key(header::CONTENT_ENCODING)
        && kind.map_or(answer.status() == StatusCode::NOT_MODIFIED, is_listed)
}

/// Whether the response is complete, and its length is within the limits for encoding.
fn is_worth_it(answer: &Response) -> bool {
    let status = answer.status();
    let is_whole = status == StatusCode::OK || status.is_client_error() || status.is_server_error();
    let said = || answer.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
    let length = match answer.body().size_hint().exact() {
        None | Some(0) => said(),
        exact => exact,
    };
    is_whole && length.is_some_and(|length: u64| (LEAST_BYTES..=MOST_BYTES).contains(&length))
}

/// Whether a response to HEAD lacks the text that its head depends on.
pub(crate) fn lacks_body(answer: &Response) -> bool {
    answer.body().size_hint().exact() == Some(0) && is_text(answer) && is_worth_it(answer)
}

/// The GET for a HEAD request.
pub(crate) fn with_body(request: &Request) -> Request {
    let mut copy = Request::new(Body::empty());
    *copy.method_mut() = Method::GET;
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    copy
}

/// Encoded texts that do not change, by name and coding.
static KEPT: LazyLock<Mutex<BTreeMap<String, Bytes>>> = LazyLock::new(Mutex::default);

/// Encodes a response; returns it unchanged if the result is not shorter, or if there is no memory for both.
pub(crate) async fn coded(
    admission: &Admission,
    cpu: &ComputePool,
    wish: Wish,
    coding: ContentCoding,
    answer: Response,
) -> Response {
    let (mut head, body) = answer.into_parts();
    let (Some(asked), Some(bytes)) = (wish.0, body.size_hint().exact().filter(|bytes| *bytes > 0)) else {
        return Response::from_parts(head, body);
    };
    let tag = head.headers.get(header::ETAG);
    let coded_tag = tag.and_then(|tag| coded_tag(tag, coding));
    if tag.is_some() != coded_tag.is_some() {
        return Response::from_parts(head, body);
    }
    // The permit covers the text and its encoded form.
    let entrant = AdmissionRequest::of(Priority::Metadata, asked.share);
    let Some(permit) = admission.try_acquire(entrant, bytes.saturating_mul(2)) else {
        return Response::from_parts(head, body);
    };
    let fixed =
        head.extensions.remove::<FixedText>().or(asked.fixed).filter(|_| head.status == StatusCode::OK);
    let name = fixed.map(|FixedText(name)| format!("{} {name}", coding.name()));
    let kept =
        name.as_ref().and_then(|name| KEPT.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned());
    let (shorter, body) = if let Some(kept) = kept {
        (Some(kept), Body::empty())
    } else {
        let text = match to_bytes(body, usize::try_from(bytes).unwrap_or(usize::MAX)).await {
            Ok(text) => text,
            // As without this layer, the body breaks off.
            Err(error) => return Response::from_parts(head, broken(error)),
        };
        let again = text.clone();
        let encoded = cpu.run_or_inline(bytes, move || coding.encode(&again)).await;
        let shorter = match encoded {
            Ok(Ok(encoded)) if encoded.len() < text.len() => Some(Bytes::from(encoded)),
            Ok(Ok(_) | Err(_)) | Err(_) => None,
        };
        if let (Some(name), Some(shorter)) = (name, &shorter) {
            keep(name, shorter.clone());
        }
        (shorter, Body::from(text))
    };
    let body = match shorter {
        None => body,
        Some(shorter) => {
            head.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
            head.headers.insert(header::CONTENT_LENGTH, shorter.len().into());
            if let Some(tag) = coded_tag {
                head.headers.insert(header::ETAG, tag);
            }
            Body::from(shorter)
        }
    };
    permit.hold(Response::from_parts(head, body))
}

fn keep(name: String, encoded: Bytes) {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() >= MOST_KEPT {
        kept.clear();
    }
    kept.insert(name, encoded);
}

/// A body that fails.
fn broken(error: axum::Error) -> Body {
    Body::from_stream(futures::stream::iter([Err::<Bytes, _>(error)]))
}
