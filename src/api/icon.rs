//! The icon that browsers show beside a page's title. It is in no API document: no program needs it.

use axum::http::header;
use axum::response::IntoResponse;

const SVG: &str = include_str!("icon/favicon.svg");
const ICO: &[u8] = include_bytes!("icon/favicon.ico");

/// For how long it may be kept: a day.
const CACHE: &str = "public, max-age=86400";

/// The icon as a drawing.
pub(crate) async fn svg() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "image/svg+xml"), (header::CACHE_CONTROL, CACHE)], SVG)
}

/// The icon where browsers look for it unasked.
pub(crate) async fn ico() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "image/x-icon"), (header::CACHE_CONTROL, CACHE)], ICO)
}
