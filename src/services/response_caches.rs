//! [`ResponseCaches`]: the caches of responses, and of what several requests for elements need.

use std::sync::Arc;
use std::time::Instant;

use axum::http::request::Parts;
use axum::response::Response;

use super::known_coordinates::KnownCoordinates;
use super::response_cache::{CachedResponse, MAX_CACHED_RESPONSE_BYTES, MAX_SMALL_RESPONSE_BYTES, cache_key};
use super::shared_text::SharedTexts;
use super::statistics_cache::StatisticsCache;
use crate::admission::Admission;
use crate::cache::{CacheUsage, RecentRequests, ResponseCache};
use crate::http::problem::Problem;
use crate::labels::DimensionLabels;

/// Size in bytes of the cache of coordinates without their labels.
const KNOWN_COORDINATES_BYTES: u64 = 1 << 20;
/// Size in bytes of the cache of value ranges.
const RANGES_BYTES: u64 = 1 << 20;

/// The memory for small responses divided by this is the most that one takes with its list of chunks. A series through a year of daily
/// chunks takes 150 KiB, which is more than a tenth of this memory where a server has 512 MiB.
const LARGEST_SMALL_SHARE: u64 = 3;

/// The responses that are sent again.
#[derive(Debug)]
pub(crate) struct ResponseCaches {
    /// Responses with elements of up to [`MAX_SMALL_RESPONSE_BYTES`].
    elements: ResponseCache<CachedResponse>,
    /// Longer ones, of up to [`MAX_CACHED_RESPONSE_BYTES`].
    long_elements: ResponseCache<CachedResponse>,
    /// Recent requests for elements.
    pub(crate) recent: RecentRequests,
    /// Statistics of chunks and of selections.
    pub(crate) statistics: StatisticsCache,
    /// The labels of dimensions, by a digest of what they were read from.
    pub(crate) coordinates: ResponseCache<Arc<DimensionLabels>>,
    /// The coordinates of the dimensions of arrays as they were last found, by the array and the dimensions.
    pub(crate) known_coordinates: ResponseCache<KnownCoordinates>,
    /// The value ranges of sampled arrays, by a digest of what they were read from.
    pub(crate) ranges: ResponseCache<(f64, f64)>,
    /// The long texts that responses in flight share.
    pub(crate) texts: SharedTexts,
}

impl ResponseCaches {
    /// Empty caches, which take up to this number of bytes together: half of them for long responses, and of the rest a quarter for
    /// statistics and a quarter for labels.
    pub(super) fn new(bytes: u64) -> Self {
        let (long, small) = (bytes / 2, bytes / 2);
        Self {
            elements: ResponseCache::with_largest(small / 2, LARGEST_SMALL_SHARE),
            long_elements: ResponseCache::new(long),
            recent: RecentRequests::new(),
            statistics: StatisticsCache::new(small / 4),
            coordinates: ResponseCache::new(small / 4),
            known_coordinates: ResponseCache::new(KNOWN_COORDINATES_BYTES),
            ranges: ResponseCache::new(RANGES_BYTES),
            texts: SharedTexts::default(),
        }
    }

    /// The cached response to a request, if it is still valid.
    ///
    /// # Errors
    /// 503 if admission rejects it; 412 if a condition of the request fails.
    pub(crate) async fn lookup(
        &self,
        admission: &Admission,
        head: &Parts,
    ) -> Result<Option<Response>, Problem> {
        let began = Instant::now();
        let Some(key) = cache_key(head) else { return Ok(None) };
        let found = self.elements.get(&key).or_else(|| self.long_elements.get(&key));
        match found {
            Some(cached) if cached.is_fresh(began).await => {
                cached.respond(admission, head, began).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Caches the response to a request, if its dependencies can be validated without I/O. Others would need requests to the
    /// store in any case.
    pub(crate) async fn insert(&self, key: &str, response: CachedResponse) {
        let bytes = response.memory_bytes();
        let Some(cache) = self.of_length(response.length()).filter(|cache| cache.fits(bytes)) else { return };
        if response.is_fresh(Instant::now()).await {
            cache.insert(key, response, bytes);
        }
    }

    /// The responses with elements of this length; `None` if no response of this length is cached.
    fn of_length(&self, bytes: u64) -> Option<&ResponseCache<CachedResponse>> {
        if bytes <= MAX_SMALL_RESPONSE_BYTES {
            Some(&self.elements)
        } else {
            (bytes <= MAX_CACHED_RESPONSE_BYTES).then_some(&self.long_elements)
        }
    }

    /// Whether a response of this length, whose list of chunks takes `chunks` bytes, can be cached.
    pub(crate) fn fits(&self, length: u64, chunks: u64) -> bool {
        self.of_length(length).is_some_and(|cache| cache.fits(length.saturating_add(chunks)))
    }

    /// Removes about half of what is cached.
    pub(crate) fn evict_half(&self) {
        self.coordinates.evict_half();
        self.known_coordinates.evict_half();
        self.ranges.evict_half();
        self.elements.evict_half();
        self.long_elements.evict_half();
        self.statistics.evict_half();
    }

    /// Removes all that is cached, and returns how many responses it was.
    pub(crate) fn purge(&self) -> u64 {
        self.coordinates.purge();
        self.known_coordinates.purge();
        self.ranges.purge();
        self.statistics.purge();
        self.elements.purge() + self.long_elements.purge()
    }

    /// How much the responses with elements take, and how often they were used.
    pub(crate) fn usage(&self) -> CacheUsage {
        // Both are searched, the long ones last: what is found there was no miss.
        let (small, long) = (self.elements.usage(), self.long_elements.usage());
        CacheUsage { misses: long.misses, ..small.and(long) }
    }
}
