//! What the routes of pictures have in common: their query, their format, and how they are documented.

use axum::extract::{Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use utoipa::{IntoParams, IntoResponses};

use super::query::ImageQuery;
use super::words::ImageParamError;
use crate::http::negotiate::{self, Offer};
use crate::http::problem::Problem;

/// The formats of pictures.
const OFFERS: &[Offer] = &[Offer { name: "png", media_type: "image/png" }];

/// Parameters that say how numbers become colours, as `ImageQuery` parses them.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query for the API document; `ImageQuery` reads it")]
pub(crate) struct ColorParams {
    /// Colormap: `viridis`, `magma`, `inferno`, `plasma`, `cividis`, `gray`, `turbo`, `RdBu`, `Spectral` or `coolwarm`, each
    /// also with `_r` at its end for the reverse; `categories` for labels; `none` for the numbers of the range as shades of
    /// gray. The default is `viridis`, `gray` for OME images, and `categories` for labels. Alias: `colormap_name`.
    colormap: Option<String>,
    /// Colours of a colormap at equal distances, such as `000000,ff0000,ffffff`.
    colors: Option<String>,
    /// Range of the colours: `lo,hi`, `auto` (default), `slice` (the extremes of the picture), percentiles of the picture such as
    /// `2%,98%`, or `type`. Aliases: `rescale`, `colorscalerange`.
    range: Option<String>,
    /// Scale of the colours within the range: `linear` (default), `log`, `sqrt` or `gamma:0.5`.
    scale: Option<String>,
    /// Colour of numbers below the range: `extend` (default), `transparent`, or a colour such as `ff0000` or `ff000080`.
    below: Option<String>,
    /// Colour of numbers above the range, as `below`.
    above: Option<String>,
    /// Colour of missing values and NaN: `transparent` (default) or a colour.
    missing: Option<String>,
    /// Channels of a composite: an index each, and after colons a colour and the ends of a range, such as
    /// `0:0000ff:0:1500,2:ff0000`; or `omero` for those that the metadata of an OME image shows.
    channels: Option<String>,
    /// Channels of red, green and blue, such as `0,1,2`.
    rgb: Option<String>,
    /// Part of complex numbers: `abs` (default), `real`, `imag` or `arg`.
    part: Option<String>,
    /// A field of a struct data type.
    fields: Option<String>,
    /// Bits of each pixel: `8` (default), or `16` together with `colormap=none`.
    bits: Option<String>,
    /// `cf` (default) applies `_FillValue`, `missing_value`, `scale_factor`, `add_offset` and `_Unsigned`; `none` draws the stored
    /// numbers.
    decode: Option<String>,
    /// How elements are put together in a smaller picture: `auto` (default: `mode` for labels and bool, else `mean`), `mean`,
    /// `mode`, `min`, `max` or `stride`.
    method: Option<String>,
}

/// Responses of the routes for pictures.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes the answers for the API document")]
pub(crate) enum ImageResponses {
    /// The picture. The headers `Array-Slice`, `Array-Downsample` and `Image-Range` describe it.
    #[response(status = 200, content_type = "image/png")]
    Picture,
    /// Not modified: the picture still has an entity tag of `If-None-Match`.
    #[response(status = 304)]
    NotModified,
    /// A parameter is invalid, or the selection is no plane.
    #[response(status = 400)]
    NotUnderstood,
    /// The mount or the node does not exist.
    #[response(status = 404)]
    NotFound,
    /// `Accept` does not allow PNG.
    #[response(status = 406)]
    NotAcceptable,
    /// The precondition failed.
    #[response(status = 412)]
    PreconditionFailed,
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
pub(super) fn query(uri: &Uri) -> Result<(ImageQuery, Vec<(String, String)>), ImageParamError> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|error| ImageParamError::Unreadable(error.body_text()))?;
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
