//! The script of pages. Its URL holds a tag of its content, so that it never changes.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};

use crate::error::ErrorClass;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::fixed_text::FixedText;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::http::validators::put_validators;
use crate::page::assets::{SCRIPT_VERSION, script};
use crate::services::state::AppState;
use crate::store::ValueInfo;

/// The script of pages, by the tag of its content.
pub(crate) const SCRIPT: RouteSpec =
    RouteSpec::new("/view/-/{version}/page.js", Resource::Public).admitted_by(AdmittedBy::Exempt);

const SCRIPT_TYPE: HeaderValue = HeaderValue::from_static("text/javascript; charset=utf-8");
const NEVER_CHANGES: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// For the URL of another version, which an old page may still name.
const OF_ANOTHER: HeaderValue = HeaderValue::from_static("no-cache");

pub(super) fn route() -> (&'static RouteSpec, MethodRouter<AppState>) {
    (&SCRIPT, get(get_script))
}

/// Its path, below a base path.
pub(super) fn path(base: &str) -> String {
    format!("{base}/view/-/{}/page.js", SCRIPT_VERSION.tag())
}

/// Responds with the script.
async fn get_script(
    State(state): State<AppState>,
    Path(version): Path<String>,
    request: HeaderMap,
) -> Result<Response, Problem> {
    if !state.options.ui {
        return Err(Problem::from_class(ErrorClass::NotFound));
    }
    let mut answer = match Conditions::from_headers(&request).for_read(&SCRIPT_VERSION, None) {
        Verdict::NotModified => StatusCode::NOT_MODIFIED.into_response(),
        // The script cannot be written to, so that `If-Match` has no meaning for it.
        Verdict::Proceed | Verdict::Failed => {
            ([(header::CONTENT_TYPE, SCRIPT_TYPE)], script()).into_response()
        }
    };
    // Encoded once, whatever version the URL names.
    answer.extensions_mut().insert(FixedText(SCRIPT_VERSION.tag().to_owned()));
    let headers = answer.headers_mut();
    put_validators(headers, &ValueInfo { size: 0, version: SCRIPT_VERSION.clone(), modified: None });
    let caching = if version == SCRIPT_VERSION.tag() { NEVER_CHANGES } else { OF_ANOTHER };
    headers.insert(header::CACHE_CONTROL, caching);
    Ok(answer)
}
