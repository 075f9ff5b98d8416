//! [`CachedResponse`]: a small response with elements that is served again as long as the stored values that it depends
//! on are unchanged.
//!
//! The key is the URL, so only requests that the URL describes fully use it: no range, and no choice of a media type. A
//! hit needs no planning and no rendering: it revalidates the documents and chunks, once for all requests that came
//! before the check.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use super::pinned::PinnedMounts;
use super::shared_text::SharedTexts;
use super::statistics_cache::StatisticsCache;
use crate::admission::{Admission, AdmissionRequest};
use crate::array::Dependencies;
use crate::cache::ResponseCache;
use crate::error::ErrorClass;
use crate::http::cache_status::CACHE_STATUS;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::problem::Problem;
use crate::http::timing::{SERVER_TIMING, put_hit};
use crate::labels::DimensionLabels;
use crate::store::Version;

/// Longer responses are not cached: to render them takes no longer than to send them.
pub(crate) const MAX_CACHED_RESPONSE_BYTES: usize = 128 << 10;
/// Approximate bytes of memory that an entry takes beside its body and its list of chunks.
const ENTRY_OVERHEAD_BYTES: u64 = 2 << 10;

/// Headers that a response without a body does not have.
const BODY_HEADERS: [HeaderName; 3] = [header::CONTENT_LENGTH, header::CONTENT_TYPE, header::ACCEPT_RANGES];

/// Size in bytes of the cache of value ranges.
const RANGES_BYTES: u64 = 1 << 20;

/// The responses that are sent again.
#[derive(Debug)]
pub(crate) struct ResponseCaches {
    /// Small responses with elements.
    pub(crate) elements: ResponseCache<CachedResponse>,
    /// Statistics of chunks and of selections.
    pub(crate) statistics: StatisticsCache,
    /// The labels of dimensions, by a digest of what they were read from.
    pub(crate) coordinates: ResponseCache<Arc<DimensionLabels>>,
    /// The value ranges of sampled arrays, by a digest of what they were read from.
    pub(crate) ranges: ResponseCache<(f64, f64)>,
    /// The long texts that responses in flight share.
    pub(crate) texts: SharedTexts,
}

impl ResponseCaches {
    /// Empty caches, which take up to this number of bytes together; a quarter of them for statistics, and a quarter for labels.
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            elements: ResponseCache::new(bytes / 2),
            statistics: StatisticsCache::new(bytes / 4),
            coordinates: ResponseCache::new(bytes / 4),
            ranges: ResponseCache::new(RANGES_BYTES),
            texts: SharedTexts::default(),
        }
    }
}

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
    body: Bytes,
}

impl CachedResponse {
    /// Caches the response to a request, if its dependencies can be validated without I/O.
    pub(crate) async fn store(
        responses: &ResponseCache<Self>,
        head: &Parts,
        made_of: Dependencies,
        version: Version,
        headers: &HeaderMap,
        body: Bytes,
    ) {
        let Some(asked) = cache_key(head) else { return };
        // Other dependencies would need requests to the store in any case.
        let made_of = Arc::new(made_of);
        if !made_of.is_fresh(Instant::now()).await {
            return;
        }
        let mut headers = headers.clone();
        for of_one_request in [SERVER_TIMING, CACHE_STATUS] {
            headers.remove(of_one_request);
        }
        let disposition = headers.remove(header::CONTENT_DISPOSITION);
        let bytes = made_of.bytes().saturating_add(body.len() as u64).saturating_add(ENTRY_OVERHEAD_BYTES);
        let kept = Self { dependencies: made_of, version, headers, disposition, body };
        responses.insert(&asked, kept, bytes);
    }

    /// The cached response to a request, if it is still valid.
    ///
    /// # Errors
    /// 503 if admission rejects it; 412 if a condition of the request fails.
    pub(crate) async fn lookup(
        responses: &ResponseCache<Self>,
        admission: &Admission,
        head: &Parts,
    ) -> Result<Option<Response>, Problem> {
        let began = Instant::now();
        let Some(kept) = cache_key(head).and_then(|asked| responses.get(&asked)) else {
            return Ok(None);
        };
        if !kept.dependencies.is_fresh(began).await {
            return Ok(None);
        }
        let mut headers = kept.headers.clone();
        let mut answer = match Conditions::from_headers(&head.headers).for_read(&kept.version, None) {
            Verdict::Failed => return Err(Problem::from_class(ErrorClass::PreconditionFailed)),
            Verdict::NotModified => {
                for name in BODY_HEADERS {
                    headers.remove(name);
                }
                StatusCode::NOT_MODIFIED.into_response()
            }
            Verdict::Proceed => {
                let permit =
                    admission.acquire(AdmissionRequest::to_elements(head), kept.body.len() as u64).await?;
                put_hit(&mut headers, began.elapsed());
                if let Some(disposition) = &kept.disposition {
                    headers.insert(header::CONTENT_DISPOSITION, disposition.clone());
                }
                permit.hold(Response::new(Body::from(kept.body.clone())))
            }
        };
        *answer.headers_mut() = headers;
        Ok(Some(answer))
    }
}

/// The cache key of a request, if the URL describes it fully.
fn cache_key(head: &Parts) -> Option<Cow<'_, str>> {
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
