//! `Cache-Status` (RFC 9211): whether a response was made of what a cache of this server has.

use axum::http::{HeaderName, HeaderValue};

pub(crate) const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// All stored bytes or decoded chunks came from a cache.
pub(crate) const HIT: HeaderValue = HeaderValue::from_static("zarrd; hit");
/// None of them did.
pub(crate) const MISS: HeaderValue = HeaderValue::from_static("zarrd; fwd=miss");
/// Some of them did.
pub(crate) const PARTIAL: HeaderValue = HeaderValue::from_static("zarrd; fwd=partial");
/// The backend fails or is slow, and the response may be older than the mount's freshness allows.
pub(crate) const STALE: HeaderValue = HeaderValue::from_static("zarrd; hit; detail=stale");
