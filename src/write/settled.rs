//! [`is_settled`]: whether a write that failed can still arrive.

use crate::error::{Classify, WriteEffect};

/// Whether nothing of a write that failed like this can still arrive at the backend.
pub(super) fn is_settled(error: &impl Classify) -> bool {
    error.class().is_caller_fault() || error.written() == Some(WriteEffect::No)
}
