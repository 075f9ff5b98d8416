//! [`problem_of`]: an error of a vector store as a problem document.

use axum::http::StatusCode;

use crate::error::Classify;
use crate::http::problem::Problem;
use crate::vectors::VectorError;

/// A problem document for an error, with the error's own code and members.
pub(crate) fn problem_of(error: VectorError) -> Problem {
    let status = match &error {
        VectorError::Array(_) | VectorError::Store { .. } | VectorError::Key(_) | VectorError::Cpu(_) => {
            return Problem::from(error);
        }
        // Neither the server nor the stored bytes are at fault: the writer of the metadata can correct it.
        VectorError::InvalidMetadata { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        _ => Problem::from_class(error.class()).status(),
    };
    let problem = Problem::new(status, error.code()).detail(error.to_string());
    match error {
        VectorError::LevelNotFound { known, .. } => problem.extension("levels", known),
        VectorError::ObjectNotFound { ids } => problem.extension("missing", ids),
        VectorError::AttributeNotFound { known, .. } => problem.extension("attributes", known),
        VectorError::Corrupt { path, chunk, reason } => {
            problem.extension("path", path).extension("chunk", chunk).extension("reason", reason)
        }
        VectorError::CorruptManifest { object, reason } => {
            problem.extension("object_id", object).extension("reason", reason)
        }
        VectorError::TooMany { estimate, limit, .. } => {
            problem.extension("estimate", estimate).extension("limit", limit)
        }
        VectorError::InvalidMetadata { checks, .. } => problem.extension("checks", checks),
        VectorError::UnsupportedEncoding { path, encoding } => {
            problem.extension("path", path).extension("encoding", encoding)
        }
        _ => problem,
    }
}
