//! [`OwnArea`]: what a store keeps for this server below its reserved name, beside the values of callers.

use super::StoreKind;
use super::reserved_keys::{RECORDS, RESERVED};

/// An area that belongs to the store itself. Its keys are none of a caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnArea {
    /// The parts of uploads. What another process left in it may be gone.
    Uploads,
    /// The records of appends to arrays. They are as durable as values, and stay when the server restarts.
    Appends,
}

impl OwnArea {
    /// Its name below the reserved one.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uploads => "uploads",
            Self::Appends => "appends",
        }
    }

    /// The prefix of its keys in a backend of this kind, below the URL of the store.
    #[must_use]
    pub fn prefix(self, kind: StoreKind) -> String {
        let reserved = if kind == StoreKind::HTTP { RECORDS } else { RESERVED };
        format!("{reserved}/{}/", self.name())
    }
}
