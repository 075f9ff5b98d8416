//! The icon that browsers show beside a page's title. It is in no API document: no program needs it.

use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::services::state::AppState;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};

/// The icon, as browsers ask for it.
pub(crate) const ICON: RouteSpec =
    RouteSpec::new("/favicon.ico", Resource::Public).admitted_by(AdmittedBy::Nobody);

/// The icon as a drawing.
pub(crate) const DRAWING: RouteSpec =
    RouteSpec::new("/favicon.svg", Resource::Public).admitted_by(AdmittedBy::Nobody);

/// The routes of the icon, which no API document names.
pub(crate) fn routes() -> [(&'static RouteSpec, MethodRouter<AppState>); 2] {
    [(&ICON, get(ico)), (&DRAWING, get(svg))]
}

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
