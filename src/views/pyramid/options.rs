//! [`PyramidOptions`]: what the levels of pyramids may cost.

use serde::{Deserialize, Serialize};

/// Coarser levels of arrays, as `/pyramid` shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PyramidOptions {
    /// A chunk of a level that is made of at most this much, decoded, is computed on request. A larger one is 503 `being-built`
    /// with `Retry-After` until it was computed in the background.
    #[serde(with = "crate::units::size")]
    pub direct_size: u64,
}

impl Default for PyramidOptions {
    fn default() -> Self {
        Self { direct_size: 256 << 20 }
    }
}
