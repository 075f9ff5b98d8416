//! [`Extent`]: one key, or all keys below a prefix.

use crate::key::{StoreKey, StorePrefix};

/// The subject of an operation on one or more values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// This key.
    Key(StoreKey),
    /// Every key that begins with the prefix.
    Below(StorePrefix),
}

impl Extent {
    /// Whether some key is in both, by its text alone.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Key(one), Self::Key(other)) => one == other,
            (Self::Key(key), Self::Below(prefix)) | (Self::Below(prefix), Self::Key(key)) => {
                key.as_str().starts_with(prefix.as_str())
            }
            (Self::Below(one), Self::Below(other)) => {
                one.as_str().starts_with(other.as_str()) || other.as_str().starts_with(one.as_str())
            }
        }
    }
}
