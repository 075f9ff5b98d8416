//! What the routes of pictures have in common: their query, their format, and how they are documented.

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use utoipa::IntoResponses;

use super::query::ImageQuery;
use crate::api::query_params::{ParamError, pairs};
use crate::http::negotiate::{self, Offer};
use crate::http::problem::Problem;

/// The formats of pictures.
const OFFERS: &[Offer] = &[Offer { name: "png", media_type: "image/png" }];

/// Responses of the routes for pictures.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes the answers for the API document")]
pub(crate) enum ImageResponses {
    /// The picture. The headers `Array-Slice`, `Array-Downsample` and `Image-Range` describe it.
    #[response(status = 200, content_type = "image/png")]
    Picture,
    /// A parameter is invalid, or the selection is no plane.
    #[response(status = 400)]
    NotUnderstood,
    /// The mount or the node does not exist.
    #[response(status = 404)]
    NotFound,
    /// `Accept` does not allow PNG.
    #[response(status = 406)]
    NotAcceptable,
    /// More elements would have to be read than the configuration allows.
    #[response(status = 413)]
    TooLarge,
    /// The node has no picture (`no-picture`).
    #[response(status = 422)]
    NoPicture,
}

/// The head of a request. Without an `Accept` that allows PNG, the response depends on the URL alone and can be cached by it.
pub(super) fn plain(request: Request) -> Parts {
    let mut head = request.into_parts().0;
    if negotiate::choose(&head.headers, None, OFFERS).is_ok() {
        head.headers.remove(header::ACCEPT);
    }
    head
}

/// The pairs of a query, and what they say.
pub(super) fn query(uri: &Uri) -> Result<(ImageQuery, Vec<(String, String)>), ParamError> {
    let pairs = pairs(uri)?;
    Ok((ImageQuery::parse(&pairs)?, pairs))
}

/// Rejects a request for another format than PNG.
pub(super) fn check_format(headers: &HeaderMap, format: Option<&str>) -> Result<(), Problem> {
    if let Some("jpeg" | "jpg" | "webp") = format {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "unknown-format")
            .detail("pictures are PNG files, which lose nothing; other formats are not offered"));
    }
    negotiate::choose(headers, format, OFFERS)?;
    Ok(())
}
