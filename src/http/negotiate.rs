//! Content negotiation: selects a response format by `format=`, else by the weighted `Accept` header (RFC 9110,
//! section 12.5.1).
//!
//! Invalid parts of `Accept` are ignored. Media type parameters other than `q` are not compared.

use axum::http::{HeaderMap, StatusCode, header};

use super::problem::Problem;
use crate::error::nearest;
use crate::render::Format;
#[cfg(feature = "vectors")]
use crate::render::VertexFormat;

/// The shortest text that is sought in media types.
const MIN_TYPE_NAME: usize = 4;

/// A format of a route that has formats of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Its name in `format=`.
    pub(crate) name: &'static str,
    /// Its media type, such as `text/html`.
    pub(crate) media_type: &'static str,
}

/// A format among which a request chooses.
pub(crate) trait Offered: Copy {
    /// Its name in `format=`.
    fn name(self) -> &'static str;

    /// Its media type, such as `text/html`.
    fn media_type(self) -> &'static str;
}

impl Offered for Offer {
    fn name(self) -> &'static str {
        self.name
    }

    fn media_type(self) -> &'static str {
        self.media_type
    }
}

impl Offered for &'static Format {
    fn name(self) -> &'static str {
        self.name
    }

    fn media_type(self) -> &'static str {
        self.media_type
    }
}

#[cfg(feature = "vectors")]
impl Offered for VertexFormat {
    fn name(self) -> &'static str {
        Self::name(self)
    }

    fn media_type(self) -> &'static str {
        Self::media_type(self)
    }
}

/// Formats of pictures that may be asked for.
const PICTURES: [&str; 6] = ["png", "jpg", "jpeg", "webp", "gif", "svg"];

/// Why no format was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NegotiateError {
    /// `format=` names none of the offers.
    #[error("`format={asked}` is not known here; {hint}there is: {offered}")]
    UnknownFormat {
        /// The requested name.
        asked: String,
        /// What may have been meant, with a blank after it; or an empty text.
        hint: String,
        /// The names of the offers.
        offered: String,
    },
    /// `Accept` excludes every offer.
    #[error("nothing that `Accept` allows is offered; there is: {0}")]
    NotAcceptable(String),
}

impl From<NegotiateError> for Problem {
    fn from(error: NegotiateError) -> Self {
        match &error {
            NegotiateError::UnknownFormat { .. } => {
                Self::new(StatusCode::BAD_REQUEST, "unknown-format").detail(error.to_string())
            }
            NegotiateError::NotAcceptable(_) => {
                Self::new(StatusCode::NOT_ACCEPTABLE, "not-acceptable").detail(error.to_string())
            }
        }
    }
}

/// Chooses among the offers, of which the first is the default.
///
/// `format` takes precedence over `Accept`. Among the offers with the highest weight the most precisely named one is
/// selected (so that `application/json, */*` means JSON), and among those the first.
pub(crate) fn choose<T: Offered>(
    headers: &HeaderMap,
    format: Option<&str>,
    offers: &[T],
) -> Result<T, NegotiateError> {
    let names = |name: fn(T) -> &'static str| offers.iter().copied().map(name).collect::<Vec<_>>().join(", ");
    if let Some(asked) = format {
        return offers.iter().find(|offer| offer.name() == asked).copied().ok_or_else(|| {
            let known = || offers.iter().copied().map(T::name);
            // A name that is longer than ours is often the type's: `netcdf` of `application/x-netcdf`.
            let is_of_type = |offer: &T| asked.len() >= MIN_TYPE_NAME && offer.media_type().contains(asked);
            let of_type = || offers.iter().copied().find(is_of_type).map(T::name);
            let meant = || known().find(|name| Some(*name) == nearest(asked, known())).or_else(of_type);
            let are_elements = known().any(|name| name == "npy");
            let hint = if PICTURES.contains(&asked) && are_elements {
                "pictures are those of `/v1/image`; ".to_owned()
            } else {
                meant().map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default()
            };
            NegotiateError::UnknownFormat { asked: asked.to_owned(), hint, offered: names(T::name) }
        });
    }
    let ranges: Vec<(&str, u16)> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .filter_map(media_range)
        .collect();
    let weighed = offers.iter().filter_map(|offer| Some((offer, weigh(offer.media_type(), &ranges)?)));
    let mut best: Option<(&T, (u16, u8))> = None;
    for (offer, weight) in weighed {
        if best.is_none_or(|(_, least)| weight > least) {
            best = Some((offer, weight));
        }
    }
    best.map(|(offer, _)| *offer).ok_or_else(|| NegotiateError::NotAcceptable(names(T::media_type)))
}

/// Weight (in thousandths) and precision (0 to 2) of a media type under the ranges; `None` if excluded.
fn weigh(media_type: &str, ranges: &[(&str, u16)]) -> Option<(u16, u8)> {
    if ranges.is_empty() {
        return Some((1000, 0));
    }
    let kind = media_type.split('/').next().unwrap_or_default();
    let precision = |range: &str| match range.split_once('/') {
        _ if range.eq_ignore_ascii_case(media_type) => Some(2),
        Some(("*", "*")) => Some(0),
        Some((asked, "*")) if asked.eq_ignore_ascii_case(kind) => Some(1),
        _ => None,
    };
    // The most precise range decides, even if a less precise one has a higher weight.
    let (precision, weight) =
        ranges.iter().filter_map(|&(range, weight)| Some((precision(range)?, weight))).max()?;
    (weight > 0).then_some((weight, precision))
}

/// Parses `type/subtype;q=0.5` into a range and its weight in thousandths.
fn media_range(text: &str) -> Option<(&str, u16)> {
    let mut parts = text.split(';').map(str::trim);
    let range = parts.next().filter(|range| range.contains('/'))?;
    let weight = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| quality(value.trim()))
    });
    Some((range, weight.unwrap_or(Some(1000))?))
}

/// `qvalue` of RFC 9110, section 12.4.2, in thousandths.
pub(crate) fn quality(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths: u16 = format!("{fraction:0<3}").parse().ok()?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    static OFFERS: &[Offer] = &[
        Offer { name: "html", media_type: "text/html" },
        Offer { name: "json", media_type: "application/json" },
    ];

    fn chosen(accept: &str, format: Option<&str>) -> Result<&'static str, NegotiateError> {
        let mut headers = HeaderMap::new();
        if !accept.is_empty() {
            headers.insert(header::ACCEPT, HeaderValue::from_str(accept).unwrap());
        }
        choose(&headers, format, OFFERS).map(|offer| offer.name)
    }

    #[test]
    fn the_highest_weight_is_selected_then_the_most_precise_then_the_first() {
        for (accept, name) in [
            ("", "html"),
            ("*/*", "html"),
            ("application/json", "json"),
            ("APPLICATION/JSON", "json"),
            ("application/*", "json"),
            ("text/html;q=0.5, application/json", "json"),
            ("text/html, application/json;q=0.9", "html"),
            ("application/json, text/plain, */*", "json"),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "html"),
            ("text/html;q=0, */*", "json"),
            ("*/*;q=0.1, application/json;q=0.2", "json"),
            ("application/json;charset=utf-8;q=0.9, text/html;q=0.8", "json"),
            ("garbage, application/json", "json"),
            ("text/html;q=x, application/json;q=0.001", "json"),
            (";;;,,,", "html"),
        ] {
            assert_eq!(chosen(accept, None).unwrap(), name, "{accept}");
        }
    }

    #[test]
    fn format_takes_precedence_over_accept_and_must_be_known() {
        assert_eq!(chosen("text/html", Some("json")).unwrap(), "json");
        let error = chosen("*/*", Some("xml")).unwrap_err().to_string();
        assert!(error.contains("xml") && error.contains("html, json"), "{error}");
    }

    #[test]
    fn the_error_for_an_unsatisfiable_accept_lists_the_offers() {
        for accept in ["image/png", "*/*;q=0", "application/json;q=0, text/html;q=0.0"] {
            let error = chosen(accept, None).unwrap_err();
            assert_eq!(error, NegotiateError::NotAcceptable("text/html, application/json".to_owned()));
        }
    }
}
