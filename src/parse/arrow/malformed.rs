//! The error of a stream that is none of Arrow record batches.

use crate::parse::error::ParseError;

/// What is wrong with a stream.
pub(super) fn malformed(reason: impl Into<String>) -> ParseError {
    ParseError::Malformed { format: "a stream of Arrow record batches", reason: reason.into() }
}
