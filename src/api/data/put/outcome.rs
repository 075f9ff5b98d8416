//! [`WriteProgress`]: what a request has written so far, and what its problem document says about that.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::Value;

use crate::array::{Array, Suggestions};
use crate::chunk::Subset;
use crate::error::{Classify, ErrorClass};
use crate::http::problem::Problem;
use crate::parse::ParseError;
use crate::write::{STORED_CHUNKS, WriteError, WriteOptions, WritePlan, Written};

/// The most bands that a problem document lists.
const LISTED: usize = 64;

/// What a request has written so far.
#[derive(Debug, Default)]
pub(super) struct WriteProgress {
    written: Written,
    /// The first of the bands that are stored, as slices.
    stored: Vec<String>,
    bands: u64,
}

impl WriteProgress {
    pub(super) fn written(&self) -> &Written {
        &self.written
    }

    /// Adds a band.
    ///
    /// # Errors
    /// The problem of its failure.
    pub(super) fn add(&mut self, band: &Subset, mut written: Written) -> Result<(), Problem> {
        let failure = written.failure.take();
        self.written.append(written);
        match failure {
            None => {
                self.bands = self.bands.saturating_add(1);
                if self.stored.len() < LISTED {
                    self.stored.push(band.to_string());
                }
                Ok(())
            }
            Some(error) => Err(problem_of(error)),
        }
    }

    /// The problem of a band whose outcome is not known.
    pub(super) fn lost(&mut self, problem: Problem) -> Problem {
        self.written.is_unknown = true;
        problem
    }

    /// A problem with what was written until then.
    pub(super) fn describe(&self, problem: Problem) -> Problem {
        let Written { values, is_unknown, .. } = self.written;
        let effect = match (values, is_unknown) {
            (0, false) => Value::from(false),
            (0, true) => "unknown".into(),
            (1.., _) => "some".into(),
        };
        let problem = problem.extension("written", effect);
        if values == 0 {
            return problem;
        }
        let text = problem.message().replace("; nothing was written", "");
        problem
            .detail(format!(
                "{text}; {values} stored values are written by now, and sending the same elements again is always right"
            ))
            .extension("values", values)
            .extension("stored_slices", self.stored.clone())
            .extension("stored_slices_truncated", self.bands > self.stored.len() as u64)
    }
}

fn problem_of(error: WriteError) -> Problem {
    match error {
        WriteError::Contended { .. } => {
            let detail = format!("{error}; retry after the time in `Retry-After`");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "contended").detail(detail)
        }
        error => error.into(),
    }
}

/// The problem of a body that is not the elements of its selection.
pub(crate) fn unparsed(error: ParseError) -> Problem {
    let code = error.code();
    let text = error.to_string();
    let problem = if error.class() == ErrorClass::InvalidRequest {
        Problem::new(StatusCode::BAD_REQUEST, code)
    } else {
        Problem::from_class(error.class())
    };
    let problem = problem.detail(text).extension("written", false);
    match error {
        ParseError::Shape { given, expected } => {
            problem.extension("given", given).extension("expected", expected)
        }
        ParseError::DataType { given, expected, .. } => {
            problem.extension("given", given).extension("expected", expected)
        }
        _ => problem,
    }
}

/// The problem of a body that must be in memory as a whole and is too long for that.
pub(crate) fn too_long_to_hold(code: &'static str, length: Option<u64>, limit: u64) -> Problem {
    let length = length.map_or_else(|| "more".to_owned(), |length| format!("{length} bytes"));
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, code)
        .detail(format!(
            "the body has {length}, and at most {limit} bytes are held in memory (`write.max_whole_size`), as JSON, elements \
             of variable length and bodies with a digest must be: write smaller selections, or send npy or plain bytes without \
             a digest"
        ))
        .extension("limit", limit)
        .extension("written", false)
}

/// The problem of an exceeded limit, with its setting and what to do. Other problems are unchanged.
pub(crate) fn over_limit(problem: Problem, error: &WriteError, advice: &str) -> Problem {
    let WriteError::TooLarge { what, requested, limit } = *error else { return problem };
    let setting = if what == STORED_CHUNKS { "write.max_values" } else { "write.band_size" };
    problem
        .detail(format!("{error} (`{setting}`): {advice}"))
        .extension("limited", what)
        .extension("asked", u64::try_from(requested).unwrap_or(u64::MAX))
        .extension("limit", limit)
        .extension("setting", setting)
}

/// The problem of a selection that cannot be planned. For an exceeded limit it suggests slices within the limit.
pub(super) fn too_large(
    error: WriteError,
    array: &Arc<Array>,
    subset: &Subset,
    options: &WriteOptions,
    band_bytes: u64,
) -> Problem {
    if !matches!(error, WriteError::TooLarge { .. }) {
        return problem_of(error);
    }
    let fits = |subset: &Subset| WritePlan::new(array, subset.clone(), band_bytes, options).is_ok();
    let suggestions = Suggestions::of_write(array, subset, fits);
    let advice = if suggestions.slices.is_empty() {
        "write less"
    } else {
        "write less; these slices fit (`suggested_slices`)"
    };
    over_limit(Problem::from(error.clone()), &error, advice)
        .extension("suggested_slices", suggestions.slices)
        .extension("suggested_slices_truncated", suggestions.truncated)
}
