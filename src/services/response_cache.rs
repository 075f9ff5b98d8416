//! [`CachedResponse`]: a response with elements that is served again as long as the stored values that it depends on are
//! unchanged.
//!
//! The key is the URL, so only requests that the URL describes fully use it: no range, and no choice of a media type. A
//! hit needs no planning and no rendering: it revalidates the documents and chunks, once for all requests that came
//! before the check.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{StreamExt, stream};

use super::pinned::PinnedMounts;
use crate::admission::{Admission, AdmissionRequest};
use crate::array::Dependencies;
use crate::error::ErrorClass;
use crate::http::body::content_length_body;
use crate::http::cache_status::CACHE_STATUS;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::problem::Problem;
use crate::http::timing::{SERVER_TIMING, put_hit};
use crate::store::Version;

/// A longer response is cached only when it is requested again, and apart from these, so that it evicts none of them.
pub(crate) const MAX_SMALL_RESPONSE_BYTES: u64 = 128 << 10;
/// Longer responses are not cached.
pub(crate) const MAX_CACHED_RESPONSE_BYTES: u64 = 8 << 20;
/// Approximate bytes of memory that an entry takes beside its body and its list of chunks.
const ENTRY_OVERHEAD_BYTES: u64 = 2 << 10;

/// Headers that a response without a body does not have.
const BODY_HEADERS: [HeaderName; 3] = [header::CONTENT_LENGTH, header::CONTENT_TYPE, header::ACCEPT_RANGES];

/// A cached response.
#[derive(Debug)]
pub(crate) struct CachedResponse {
    dependencies: Arc<Dependencies>,
    version: Version,
    /// The headers, without those about one request.
    headers: HeaderMap,
    /// The `Content-Disposition`. It is separate from the others, because a header map doubles its capacity when it is
    /// cloned and then extended.
    disposition: Option<HeaderValue>,
    /// The body, in the parts in which it was made.
    parts: Vec<Bytes>,
    length: u64,
}

impl CachedResponse {
    /// The response that has these headers and depends on these, to be sent again.
    pub(crate) fn new(
        made_of: Dependencies,
        version: Version,
        headers: &HeaderMap,
        parts: Vec<Bytes>,
    ) -> Self {
        let mut headers = headers.clone();
        for of_one_request in [SERVER_TIMING, CACHE_STATUS] {
            headers.remove(of_one_request);
        }
        let disposition = headers.remove(header::CONTENT_DISPOSITION);
        let dependencies = Arc::new(made_of);
        Self { dependencies, version, headers, disposition, parts: Vec::new(), length: 0 }.with_parts(parts)
    }

    /// The same response with another body.
    pub(crate) fn with_parts(self, parts: Vec<Bytes>) -> Self {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        Self { parts, length, ..self }
    }

    /// The length of the body in bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Bytes of memory, about.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.dependencies.bytes().saturating_add(self.length).saturating_add(ENTRY_OVERHEAD_BYTES)
    }

    /// Whether it is known without I/O to be current for a request that began at `began`.
    pub(super) async fn is_fresh(&self, began: Instant) -> bool {
        self.dependencies.is_fresh(began).await
    }

    /// The response to another request, which began at `began`.
    ///
    /// # Errors
    /// 503 if admission rejects it; 412 if a condition of the request fails.
    pub(super) async fn respond(
        &self,
        admission: &Admission,
        head: &Parts,
        began: Instant,
    ) -> Result<Response, Problem> {
        let mut headers = self.headers.clone();
        let mut answer = match Conditions::from_headers(&head.headers).for_read(&self.version, None) {
            Verdict::Failed => return Err(Problem::from_class(ErrorClass::PreconditionFailed)),
            Verdict::NotModified => {
                for name in BODY_HEADERS {
                    headers.remove(name);
                }
                StatusCode::NOT_MODIFIED.into_response()
            }
            Verdict::Proceed => {
                let permit = admission.acquire(AdmissionRequest::to_elements(head), self.length).await?;
                put_hit(&mut headers, began.elapsed());
                if let Some(disposition) = &self.disposition {
                    headers.insert(header::CONTENT_DISPOSITION, disposition.clone());
                }
                permit.hold(Response::new(self.body()))
            }
        };
        *answer.headers_mut() = headers;
        Ok(answer)
    }

    fn body(&self) -> Body {
        match &self.parts[..] {
            [] => Body::empty(),
            [whole] => Body::from(whole.clone()),
            [first, rest @ ..] => {
                let rest = stream::iter(rest.to_vec()).map(Ok::<_, Infallible>).boxed();
                content_length_body(first.clone(), rest, self.length)
            }
        }
    }
}

/// The cache key of a request, if the URL describes it fully.
pub(crate) fn cache_key(head: &Parts) -> Option<Cow<'_, str>> {
    let chooses = |value: &HeaderValue| value != "*/*";
    let is_plain = head.method == Method::GET
        && !head.headers.contains_key(header::RANGE)
        && !head.headers.get_all(header::ACCEPT).iter().any(chooses);
    let url = head.uri.path_and_query().filter(|_| is_plain).map(PathAndQuery::as_str)?;
    // What a branch has changes, and each response is of one snapshot.
    Some(match head.extensions.get::<PinnedMounts>() {
        None => Cow::Borrowed(url),
        Some(pinned) => Cow::Owned(format!("{}@{url}", pinned.snapshot())),
    })
}
