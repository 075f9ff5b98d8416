//! The problem of an append that failed.

use std::sync::Arc;

use axum::http::StatusCode;

use crate::api::data::put::over_limit;
use crate::http::problem::Problem;
use crate::write::{AppendError, LeaseError, NodeWriteError, WriteError};

/// The problem of an append that failed. It says what was written, and what to do.
pub(super) fn problem(error: Arc<AppendError>) -> Problem {
    let text = error.to_string();
    let conflict = |code| Problem::new(StatusCode::CONFLICT, code).detail(text.clone());
    match &*error {
        AppendError::NotTheEnd { length, .. } => conflict("not-the-end").extension("length", *length),
        AppendError::AnotherShape { shape } => conflict("another-shape").extension("shape", shape.clone()),
        AppendError::DifferentLengths { .. } => conflict("different-lengths"),
        AppendError::KeyUsed { .. } => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency-key-used").detail(text)
        }
        AppendError::Contended
        | AppendError::TooLate
        | AppendError::Lease(LeaseError::Owned | LeaseError::Making | LeaseError::Lost)
        | AppendError::Elements(WriteError::Contended { .. }) => {
            let detail = format!("{text}; retry after the time in `Retry-After`");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "contended").detail(detail)
        }
        AppendError::Node(failure) if matches!(**failure, NodeWriteError::Incomplete { .. }) => {
            let detail = "the elements are appended, but consolidated metadata above could not be changed";
            return Problem::from(error).detail(detail).extension("written", "some");
        }
        AppendError::Lease(LeaseError::BrokenRecord { .. }) => Problem::from(error),
        AppendError::Elements(failure) => {
            return over_limit(Problem::from(Arc::clone(&error)), failure, "append in several requests");
        }
        _ => return Problem::from(error),
    }
    .extension("written", false)
}
