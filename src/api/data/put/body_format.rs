//! [`BodyFormat`]: the format of a body, by `format=` or `Content-Type`.

use axum::http::{HeaderMap, StatusCode, header};

use super::query::BodyParams;
use crate::http::problem::Problem;
use crate::render::{FORMATS, Format};

/// The format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    Npy,
    Bytes,
    Json,
    Arrow,
}

impl BodyFormat {
    const ALL: [Self; 4] = [Self::Npy, Self::Bytes, Self::Json, Self::Arrow];

    /// The name in `format=`.
    const fn name(self) -> &'static str {
        match self {
            Self::Npy => "npy",
            Self::Bytes => "bytes",
            Self::Json => "json",
            Self::Arrow => "arrow",
        }
    }

    /// The format of responses that has the same name, and the elements in the same form.
    pub(super) fn of_responses(self) -> Option<&'static Format> {
        FORMATS.iter().copied().find(|format| format.name == self.name())
    }

    /// The format of a request.
    ///
    /// # Errors
    /// 415.
    pub(crate) fn of(headers: &HeaderMap, params: &BodyParams) -> Result<Self, Problem> {
        if let Some(name) = &params.format {
            let found = Self::ALL.into_iter().find(|format| format.name() == name);
            return found.ok_or_else(|| unknown("`format` names no format of bodies"));
        }
        let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = content_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
        let is_it = |format: &Self| {
            format.of_responses().is_some_and(|format| format.media_type.eq_ignore_ascii_case(media_type))
        };
        Self::ALL.into_iter().find(is_it).ok_or_else(|| unknown("`Content-Type` names no format of elements"))
    }
}

fn unknown(what: &str) -> Problem {
    Problem::from_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
        .detail(format!(
            "{what}: send `application/x-npy`, `application/octet-stream`, `application/json` or \
             `application/vnd.apache.arrow.stream`, or say `format=npy`, `format=bytes`, `format=json` or `format=arrow`"
        ))
        .extension("written", false)
}
