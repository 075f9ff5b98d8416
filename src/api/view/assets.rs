//! The script of pages. Its URL holds a tag of its content, so that it never changes.

use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};

use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::page::assets::{SCRIPT_NAME, TAG, script};
use crate::services::state::AppState;

/// The script of pages, by the tag of its content and its name.
pub(crate) const ASSET: RouteSpec =
    RouteSpec::new("/view/-/{version}/{file}", Resource::Public).admitted_by(AdmittedBy::Exempt).fixed();

const NEVER_CHANGES: &str = "public, max-age=31536000, immutable";
/// For the URL of another version, which an old page may still name.
const OF_ANOTHER: &str = "no-cache";

pub(super) fn route() -> (&'static RouteSpec, MethodRouter<AppState>) {
    (&ASSET, get(asset))
}

/// Responds with the script.
async fn asset(
    State(state): State<AppState>,
    Path((version, name)): Path<(String, String)>,
) -> Result<Response, Problem> {
    if name != SCRIPT_NAME || !state.options.ui {
        return Err(Problem::from_class(ErrorClass::NotFound));
    }
    let caching = if version == *TAG { NEVER_CHANGES } else { OF_ANOTHER };
    let tag = format!("\"{}\"", TAG.as_str());
    let head = [
        (header::CONTENT_TYPE, "text/javascript; charset=utf-8".to_owned()),
        (header::CACHE_CONTROL, caching.to_owned()),
        (header::ETAG, tag),
    ];
    Ok((head, script()).into_response())
}
