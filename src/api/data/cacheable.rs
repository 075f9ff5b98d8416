//! [`Cacheable`]: a response that is worth caching, and how it enters the cache.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;

use crate::array::{ChunkVersions, Dependencies, Plan};
use crate::http::collected_body::collected;
use crate::services::response_cache::{CachedResponse, MAX_SMALL_RESPONSE_BYTES, cache_key};
use crate::services::response_caches::ResponseCaches;
use crate::store::Version;

/// The fixed cost of a chunk (lookup, opening, checks), as the number of bytes that are decoded in the same time.
const CHUNK_WORK_BYTES: u64 = 16 << 10;
/// A response is cached on its first request if its cost, in decoded bytes, is at least this multiple of its size in memory.
const COSTLY: u64 = 16;

/// Elements of fewer chunks are copied from memory in no more time than it takes to cache the response.
const FEW_CHUNKS: u64 = 16;

/// What decides whether a response is worth caching.
pub(super) struct Worth<'a> {
    pub(super) plan: &'a Plan,
    /// Whether all of its chunks were in memory.
    pub(super) is_hit: bool,
    /// Whether it was requested shortly before.
    pub(super) is_repeated: bool,
}

/// A response that is worth caching, and the chunks that it was made from.
pub(super) struct Cacheable {
    pub(super) chunks: ChunkVersions,
    pub(super) contents: CacheableContents,
}

/// What is cached of a response beside its headers.
pub(super) struct CacheableContents {
    version: Version,
    /// The body; `None` if it is made while it is sent.
    body: Option<Bytes>,
}

impl Cacheable {
    /// A response that was made from these chunks, with its body unless that is made while it is sent; `None` if it is not worth
    /// caching.
    pub(super) fn new(
        worth: &Worth<'_>,
        chunks: ChunkVersions,
        version: &Version,
        body: Option<Bytes>,
    ) -> Option<Self> {
        let is_worth = match &body {
            Some(body) if body.len() as u64 <= MAX_SMALL_RESPONSE_BYTES => {
                worth.is_repeated || worth.is_costly(body.len() as u64 + chunks.bytes())
            }
            _ => worth.is_hit && worth.is_repeated,
        };
        let contents = CacheableContents { version: version.clone(), body };
        is_worth.then_some(Self { chunks, contents })
    }
}

impl CacheableContents {
    /// Caches the response that has these dependencies: now, or once all of it was sent.
    pub(super) async fn cache(
        self,
        responses: &Arc<ResponseCaches>,
        head: &Parts,
        made_of: Dependencies,
        answer: Response,
    ) -> Response {
        let Some(key) = cache_key(head) else { return answer };
        let (is_sent, parts) = (self.body.is_none(), self.body.into_iter().collect());
        let cached = CachedResponse::new(made_of, self.version, answer.headers(), parts);
        if !is_sent {
            responses.insert(&key, cached).await;
            return answer;
        }
        let (responses, key) = (Arc::clone(responses), key.into_owned());
        let insert = move |parts| {
            tokio::spawn(async move { responses.insert(&key, cached.with_parts(parts)).await });
        };
        answer.map(|body| collected(body, insert))
    }
}

impl Worth<'_> {
    /// Whether making the response again would cost far more than the memory to cache it ([`COSTLY`]).
    fn is_costly(&self, kept_bytes: u64) -> bool {
        let Self { plan, is_hit, .. } = self;
        if *is_hit && plan.chunks() < FEW_CHUNKS && plan.reduced_source_bytes() == 0 {
            return false;
        }
        let work = plan.decoded_bytes().saturating_add(plan.chunks().saturating_mul(CHUNK_WORK_BYTES));
        work / COSTLY >= kept_bytes
    }
}
