//! The files that pages load. Their URLs hold a tag of their content, so that they never change.

use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};

use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::page::assets::{TAG, find};
use crate::services::state::AppState;

/// A file that pages load, by the tag of all of them and its name.
pub(crate) const ASSET: RouteSpec =
    RouteSpec::new("/view/-/{version}/{file}", Resource::Public).admitted_by(AdmittedBy::Exempt).fixed();

const NEVER_CHANGES: &str = "public, max-age=31536000, immutable";
/// For the URL of another version, which an old page may still name.
const OF_ANOTHER: &str = "no-cache";

pub(super) fn route() -> (&'static RouteSpec, MethodRouter<AppState>) {
    (&ASSET, get(asset))
}

/// Responds with a file.
async fn asset(
    State(state): State<AppState>,
    Path((version, name)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let asset = find(&name).filter(|_| state.options.ui);
    let asset = asset.ok_or_else(|| Problem::from_class(ErrorClass::NotFound))?;
    let caching = if version == *TAG { NEVER_CHANGES } else { OF_ANOTHER };
    let tag = format!("\"{}-{name}\"", TAG.as_str());
    let head = [
        (header::CONTENT_TYPE, asset.media_type.to_owned()),
        (header::CACHE_CONTROL, caching.to_owned()),
        (header::ETAG, tag),
    ];
    Ok((head, asset.text.as_str()).into_response())
}
