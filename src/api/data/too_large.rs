//! Responses over a limit: the 413 problem with the requested size, the limit, the setting of the limit, and suggested
//! slices that fit if the other parameters stay the same.

use super::error::ElementsError;
use crate::array::{ArrayError, ReadLimits, Suggestions};
use crate::http::problem::Problem;
use crate::render::RenderError;

/// A limit that a response exceeds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken {
    what: &'static str,
    asked: u64,
    limit: u64,
    setting: &'static str,
    is_of_chunk: bool,
}

impl Broken {
    /// The exceeded limit, if an error is about one.
    pub(crate) fn of(limits: &ReadLimits, whole_bytes: u64, error: &ElementsError) -> Option<Self> {
        Some(match error {
            // No setting has this limit.
            ElementsError::Array(ArrayError::TooLarge { what: "bytes of attributes and names", .. }) => {
                return None;
            }
            ElementsError::Array(ArrayError::TooLarge { what, requested: asked, limit }) => {
                let setting = match *what {
                    "decoded chunks" => "read.max_chunks",
                    "decoded bytes" => "read.max_decoded_size",
                    // Elements of variable length may be no longer than what is put together whole, of several columns together.
                    _ if *limit <= whole_bytes && *limit != limits.max_response_size => {
                        "http.max_buffered_response_size"
                    }
                    _ => "read.max_response_size",
                };
                // Numbers above 2^64 are capped: the exact value is of no use to the client.
                let asked = u64::try_from(*asked).unwrap_or(u64::MAX);
                Self { what, asked, limit: *limit, setting, is_of_chunk: false }
            }
            ElementsError::Render(RenderError::TooLarge { bytes, limit }) => Self {
                what: "bytes of the answer",
                asked: *bytes,
                limit: *limit,
                setting: "http.max_buffered_response_size",
                is_of_chunk: false,
            },
            ElementsError::Array(_) | ElementsError::Render(_) | ElementsError::Budget(_) => return None,
        })
    }

    /// The same for a request of a whole chunk, whose URL has no slice.
    pub(crate) fn of_chunk(self) -> Self {
        Self { is_of_chunk: true, ..self }
    }

    /// The problem, with slices to request instead.
    pub(crate) fn problem(self, error: ElementsError, suggestions: Suggestions) -> Problem {
        let Self { what, asked, limit, setting, is_of_chunk } = self;
        let Suggestions { slices, truncated } = suggestions;
        let advice = match (slices.is_empty(), is_of_chunk) {
            (true, _) => "select less",
            (false, false) => "select less; these slices fit (`suggested_slices`)",
            (false, true) => {
                "a chunk is returned whole; these slices of the array fit at `/v1/data` (`suggested_slices`)"
            }
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
