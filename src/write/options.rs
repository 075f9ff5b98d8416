//! [`WriteOptions`]: the limits of writes of elements.

use serde::{Deserialize, Serialize};

/// The limits of writes of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WriteOptions {
    /// A body is taken in bands of whole chunks along its first dimension, each of at most this size in memory. A selection
    /// whose chunks need more, side by side, is refused with slices that fit.
    #[serde(with = "crate::units::size")]
    pub band_size: u64,
    /// Size of bodies that are held in memory as a whole: JSON, elements of variable length, and bodies with a digest, which is
    /// checked before anything is stored.
    #[serde(with = "crate::units::size")]
    pub max_whole_size: u64,
    /// Stored values (chunks, or shards) that one request may write.
    pub max_values: u64,
    /// Stored values that one request reads and stores at a time.
    pub max_concurrency: usize,
    /// Whether a chunk that consists of the fill value after a write is erased, where nothing else is stored in its value. Inner
    /// chunks of shards are always left out.
    pub erase_fill: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            band_size: 64 << 20,
            max_whole_size: 16 << 20,
            max_values: 1 << 20,
            max_concurrency: 8,
            erase_fill: false,
        }
    }
}
