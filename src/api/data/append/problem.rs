//! The problem of an append that failed.

use std::sync::Arc;

use axum::http::StatusCode;

use crate::http::problem::Problem;
use crate::write::{AppendError, NodeWriteError, WriteError};

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
        | AppendError::Lease(_)
        | AppendError::Elements(WriteError::Contended { .. })
        | AppendError::Node(NodeWriteError::Lease(_))
            if Problem::from(Arc::clone(&error)).status() == StatusCode::SERVICE_UNAVAILABLE =>
        {
            let detail = format!("{text}; retry after the time in `Retry-After`");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "contended").detail(detail)
        }
        AppendError::Node(NodeWriteError::Incomplete { left, .. }) => {
            let detail = format!("the elements are appended, but {left}");
            return Problem::from(error.clone()).detail(detail).extension("written", "some");
        }
        _ => return Problem::from(error),
    }
    .extension("written", false)
}
