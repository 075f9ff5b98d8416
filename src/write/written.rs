//! [`Written`]: what a write of elements has stored so far.

use super::error::WriteError;
use crate::store::Version;

/// What a write of elements has stored so far. Of several values some may be stored and others not.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Stored values that are written.
    pub values: u64,
    /// Those of them of which every element was written, so that nothing was read.
    pub whole: u64,
    /// The version of the one value that was written, if there was only one and the backend reports it.
    pub version: Option<Version>,
    /// The first failure; no value is begun after it.
    pub failure: Option<WriteError>,
    /// Whether a value failed whose state is not known.
    pub is_unknown: bool,
}

impl Written {
    /// Those of the written values that were read first, because others of their elements stay.
    #[must_use]
    pub fn merged(&self) -> u64 {
        self.values - self.whole
    }

    /// Adds one value.
    pub(super) fn add(&mut self, outcome: Result<StoredValueReport, WriteError>) {
        match outcome {
            Ok(StoredValueReport { version, is_whole }) => {
                self.version = version.filter(|_| self.values == 0);
                self.values = self.values.saturating_add(1);
                self.whole = self.whole.saturating_add(u64::from(is_whole));
            }
            Err(error) => {
                self.is_unknown |= !error.is_without_effect();
                self.failure.get_or_insert(error);
            }
        }
    }

    /// Adds what another band has written.
    pub fn append(&mut self, other: Self) {
        self.version = if self.values == 0 { other.version } else { None };
        self.values = self.values.saturating_add(other.values);
        self.whole = self.whole.saturating_add(other.whole);
        self.is_unknown |= other.is_unknown;
        self.failure = self.failure.take().or(other.failure);
    }
}

/// One value that was written.
#[derive(Clone, Debug)]
pub(super) struct StoredValueReport {
    pub(super) version: Option<Version>,
    /// Whether this write covered the value.
    pub(super) is_whole: bool,
}
