//! The page of an array that is selected by label: that of the same positions, which links and scripts of pages know.

use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::api::label_params::positions;
use crate::api::query_params::{ParseParams, pairs};
use crate::api::selection::SelectionParams;
use crate::array::Array;
use crate::auth::SignedUrl;
use crate::http::base_path::BasePath;
use crate::http::problem::Problem;
use crate::http::validators::from_text;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;

/// A redirect (307) to the page of the positions that labels select; `None` if the request selects by none.
///
/// # Errors
/// Those of [`positions`].
pub(super) async fn redirect(
    state: &AppState,
    head: &Parts,
    target: &NodeTarget,
    array: &Array,
) -> Result<Option<Response>, Problem> {
    if !head.uri.query().is_some_and(|query| query.contains("sel.")) {
        return Ok(None);
    }
    let mut selection = SelectionParams::default();
    let mut others = Vec::new();
    for (name, value) in pairs(&head.uri)? {
        if !selection.take(&name, &value)? {
            others.push((name, value));
        }
    }
    let request = (state, head, target);
    let Some(found) = positions(request, &selection, array.path(), array.metadata(), None).await? else {
        return Ok(None);
    };
    let slice = found.selection.subset(array.metadata())?.to_string();
    let signature = head.extensions.get::<SignedUrl>().map(|signed| format!("{}&", signed.query()));
    let start = format!("{}slice={slice}", signature.unwrap_or_default());
    let words = url::form_urlencoded::Serializer::new(start).extend_pairs(others).finish();
    let (base, path) = (BasePath::of(&head.extensions), head.uri.path());
    let text = format!("{}{path}?{words}", base.as_str());
    let location = from_text(text).unwrap_or(HeaderValue::from_static("?"));
    let headers =
        [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
    Ok(Some((StatusCode::TEMPORARY_REDIRECT, headers).into_response()))
}
