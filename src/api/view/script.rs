//! The script of pages. Its URL holds a tag of its content, so that it never changes.

use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};

use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::page::assets::{SCRIPT_TAG, script};
use crate::services::state::AppState;

/// The script of pages, by the tag of its content.
pub(crate) const SCRIPT: RouteSpec =
    RouteSpec::new("/view/-/{version}/page.js", Resource::Public).admitted_by(AdmittedBy::Exempt).fixed();

const NEVER_CHANGES: &str = "public, max-age=31536000, immutable";
/// For the URL of another version, which an old page may still name.
const OF_ANOTHER: &str = "no-cache";

pub(super) fn route() -> (&'static RouteSpec, MethodRouter<AppState>) {
    (&SCRIPT, get(get_script))
}

/// Its path, below a base path.
pub(super) fn path(base: &str) -> String {
    format!("{base}/view/-/{}/page.js", SCRIPT_TAG.as_str())
}

/// Responds with the script.
async fn get_script(State(state): State<AppState>, Path(version): Path<String>) -> Result<Response, Problem> {
    if !state.options.ui {
        return Err(Problem::from_class(ErrorClass::NotFound));
    }
    let caching = if version == *SCRIPT_TAG { NEVER_CHANGES } else { OF_ANOTHER };
    let head = [
        (header::CONTENT_TYPE, "text/javascript; charset=utf-8".to_owned()),
        (header::CACHE_CONTROL, caching.to_owned()),
        (header::ETAG, format!("\"{}\"", SCRIPT_TAG.as_str())),
    ];
    Ok((head, script()).into_response())
}
