//! Arithmetic on sizes of responses: saturating products, and the check against a limit.

use super::RenderError;

/// The product of lengths (saturated); 0 if any of them is 0, whatever their order.
pub(super) fn product(lengths: &[u64]) -> u64 {
    if lengths.contains(&0) {
        return 0;
    }
    lengths.iter().fold(1, |product, &length| product.saturating_mul(length))
}

/// Rejects a response that could be longer than the limit.
pub(super) fn check_bytes(bytes: u64, limit: u64) -> Result<(), RenderError> {
    if bytes > limit { Err(RenderError::TooLarge { bytes, limit }) } else { Ok(()) }
}
