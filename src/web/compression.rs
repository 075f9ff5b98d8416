//! Answers in a content coding: texts that are whole in memory, and metadata documents.
//!
//! Encoded is what the request accepts and is worth it: JSON, HTML, CSV, problem documents, the documentation, and of
//! stored values the metadata documents of Zarr. Never chunks and other values, never a range, nothing of S3 or `WebDAV`,
//! and nothing so long that it would keep a core busy. Each answer still has an exact length, and a tag of its own
//! (`coding`). HEAD has the head of the GET: where its handler makes no body, the GET is answered as well, and dropped.
//!
//! Take this layer away and answers are longer, and nothing else: if there is no room for a second copy, the text goes as
//! it is.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;

use crate::admission::{AdmissionRequest, ClientBucket, Priority};
use crate::codec::ContentCoding;
use crate::http::coding::{Accepted, coded_tag};
use crate::http::fixed_text::FixedText;
use crate::http::route::RouteSpec;
use crate::services::state::AppState;

/// Shorter texts fit into one packet either way.
const LEAST_BYTES: u64 = 1 << 10;
/// Longer ones would take a core for longer than a tenth of a second.
const MOST_BYTES: u64 = 8 << 20;
/// Most texts that are kept encoded: the documentation has fewer files.
const MOST_KEPT: usize = 32;

/// Types whose texts are worth it, as they begin.
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

/// Stored values that are metadata documents of Zarr, by the last segment of a path.
const DOCUMENTS: [&str; 5] = ["zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata"];
/// What a request says of content codings; most say nothing.
#[derive(Debug)]
pub(crate) struct Wish(Option<Box<Asked>>);

#[derive(Debug)]
struct Asked {
    accepted: Accepted,
    share: ClientBucket,
    is_head: bool,
    /// `If-None-Match`.
    none_match: Option<HeaderValue>,
    /// The path, where the text behind it never changes.
    fixed: Option<FixedText>,
}

impl Wish {
    /// That of a request; `None` if its answer is not for this layer.
    pub(crate) fn of(route: Option<&RouteSpec>, request: &Request) -> Option<Self> {
        let path = request.uri().path();
        let is_asked = matches!(*request.method(), Method::GET | Method::HEAD | Method::POST);
        let is_of_value = route.is_some_and(RouteSpec::ends_in_key)
            && !path.rsplit('/').next().is_some_and(|name| name.is_empty() || DOCUMENTS.contains(&name));
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

    /// Whether the head of the answer may be that of a text in a coding, for which the text must be had.
    pub(crate) fn is_of_head(&self) -> bool {
        self.0.as_ref().is_some_and(|asked| asked.is_head && asked.accepted.chosen().is_some())
    }

    /// Says of an answer that it depends on what codings are accepted, if it does; and in which it is to be sent, if in
    /// any.
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
    /// Has a 304 name what the client holds, if that is the text in a coding.
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

/// Whether the answer is a text that nothing has encoded. A 304 may be silent of its type.
fn is_text(answer: &Response) -> bool {
    let headers = answer.headers();
    let is_listed =
        |kind: &HeaderValue| kind.to_str().is_ok_and(|kind| TEXTS.iter().any(|text| kind.starts_with(text)));
    let kind = headers.get(header::CONTENT_TYPE);
    !headers.contains_key(header::CONTENT_ENCODING)
        && kind.map_or(answer.status() == StatusCode::NOT_MODIFIED, is_listed)
}

/// Whether the answer is whole, and as long as is worth it.
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

/// Whether an answer to HEAD has the head of a text that may be encoded, and not the text.
pub(crate) fn lacks_body(answer: &Response) -> bool {
    answer.body().size_hint().exact() == Some(0) && is_text(answer) && is_worth_it(answer)
}

/// A request for the body of what another asks for the head of.
pub(crate) fn with_body(request: &Request) -> Request {
    let mut copy = Request::new(Body::empty());
    *copy.method_mut() = Method::GET;
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    copy
}

/// Encoded texts that do not change, by their names and codings.
static KEPT: LazyLock<Mutex<BTreeMap<String, Bytes>>> = LazyLock::new(Mutex::default);

/// An answer in a coding; as it is if that makes it no shorter, or if there is no room for both.
pub(crate) async fn coded(state: &AppState, wish: Wish, coding: ContentCoding, answer: Response) -> Response {
    let (mut head, body) = answer.into_parts();
    let (Some(asked), Some(bytes)) = (wish.0, body.size_hint().exact().filter(|bytes| *bytes > 0)) else {
        return Response::from_parts(head, body);
    };
    let tag = head.headers.get(header::ETAG);
    let coded_tag = tag.and_then(|tag| coded_tag(tag, coding));
    if tag.is_some() != coded_tag.is_some() {
        return Response::from_parts(head, body);
    }
    // The text, and what is made of it.
    let entrant = AdmissionRequest::of(Priority::Metadata, asked.share);
    let Some(permit) = state.admission().try_acquire(entrant, bytes.saturating_mul(2)) else {
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
            // The client sees it as it would have without this layer: the body breaks off.
            Err(error) => return Response::from_parts(head, broken(error)),
        };
        let again = text.clone();
        let encoded = state.cpu().run_or_inline(bytes, move || coding.encode(&again)).await;
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

/// A body that is an error.
fn broken(error: axum::Error) -> Body {
    Body::from_stream(futures::stream::iter([Err::<Bytes, _>(error)]))
}
