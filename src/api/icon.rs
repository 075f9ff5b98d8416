//! The favicon. The OpenAPI document omits it, since only browsers request it.

use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::services::state::AppState;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};

/// The icon in ICO format, at the path that browsers request by default.
pub(crate) const ICON: RouteSpec =
    RouteSpec::new("/favicon.ico", Resource::Public).admitted_by(AdmittedBy::Exempt);

/// The icon in SVG format.
pub(crate) const DRAWING: RouteSpec =
    RouteSpec::new("/favicon.svg", Resource::Public).admitted_by(AdmittedBy::Exempt);

/// The routes of the icon, which the OpenAPI document omits.
pub(crate) fn routes() -> [(&'static RouteSpec, MethodRouter<AppState>); 2] {
    [(&ICON, get(ico)), (&DRAWING, get(svg))]
}

const SVG: &str = include_str!("icon/favicon.svg");
const ICO: &[u8] = include_bytes!("icon/favicon.ico");

/// Browsers cache the icon for a day.
const CACHE: &str = "public, max-age=86400";

/// Responds with the icon in SVG format.
pub(crate) async fn svg() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "image/svg+xml"), (header::CACHE_CONTROL, CACHE)], SVG)
}

/// Responds with the icon in ICO format.
pub(crate) async fn ico() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "image/x-icon"), (header::CACHE_CONTROL, CACHE)], ICO)
}
