//! Answers over a limit: 413, with what was asked, what is allowed, the setting that says so, and slices that can be asked
//! for instead, all else being the same.

use super::error::ElementsError;
use crate::array::{ArrayError, Suggestions};
use crate::http::problem::Problem;
use crate::render::RenderError;
use crate::services::state::AppState;

/// A limit that an answer is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken {
    what: &'static str,
    asked: u64,
    limit: u64,
    setting: &'static str,
}

impl Broken {
    /// The limit that an error is about, if it is about one.
    pub(crate) fn of(state: &AppState, error: &ElementsError) -> Option<Self> {
        let whole_bytes = state.options().max_buffered_response_size;
        Some(match error {
            ElementsError::Array(ArrayError::TooLarge { what, requested: asked, limit }) => {
                let setting = match *what {
                    "decoded chunks" => "read.max_chunks",
                    "decoded bytes" => "read.max_decoded_size",
                    // Elements of variable length may be no longer than what is put together whole.
                    _ if *limit == whole_bytes && *limit != state.read_limits().max_response_size => {
                        "http.max_buffered_response_size"
                    }
                    _ => "read.max_response_size",
                };
                // Beyond 2^64 the exact number tells nobody more.
                let asked = u64::try_from(*asked).unwrap_or(u64::MAX);
                Self { what, asked, limit: *limit, setting }
            }
            ElementsError::Render(RenderError::TooLarge { bytes, limit }) => Self {
                what: "bytes of the answer",
                asked: *bytes,
                limit: *limit,
                setting: "http.max_buffered_response_size",
            },
            ElementsError::Array(_) | ElementsError::Render(_) => return None,
        })
    }

    /// The problem, with what to ask for instead.
    pub(crate) fn problem(self, error: ElementsError, suggestions: Suggestions) -> Problem {
        let Self { what, asked, limit, setting } = self;
        let Suggestions { slices, truncated } = suggestions;
        let advice = if slices.is_empty() {
            "select less"
        } else {
            "select less; `suggested_slices` fit, in place of what was selected"
        };
        let detail = format!("{error} (`{setting}`): {advice}");
        Problem::from(error)
            .detail(detail)
            .extension("limited", what)
            .extension("asked", asked)
            .extension("limit", limit)
            .extension("setting", setting)
            .extension("suggested_slices", slices)
            .extension("suggested_slices_truncated", truncated)
    }
}
