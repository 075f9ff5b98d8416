//! [`MemoryBound`]: how much memory the server takes at most, from its configuration alone.
//!
//! Said at the start, so that whoever sets a container's limit need not add up budgets. The budgets are kept in the rooms
//! that spend them, not here.

use std::fmt;

use super::AppError;
use crate::cache::CacheOptions;
use crate::config::Config;
use crate::views::rechunk::RechunkRoom;

const MIB: u64 = 1 << 20;
/// The program, its threads' stacks and buffers.
const OWN_BYTES: u64 = 64 * MIB;
/// The allocator gives freed memory back a tenth of a second later. The bands of answers are what is freed in large pieces:
/// at full speed about so many are on their way back.
const FREED_BANDS: u64 = 4;
/// A connection: at rest it takes about 40 KiB, in the middle of the longest head this much.
const CONNECTION_KIB: u64 = 160;

/// Resident memory: so many bytes, and some for each connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryBound {
    cached: u64,
    under_way: u64,
    freed: u64,
}

impl MemoryBound {
    pub(super) fn of(config: &Config) -> Self {
        // All of them by name: who adds a cache adds it here.
        let CacheOptions {
            decoded_bytes,
            index_bytes,
            node_bytes,
            value_bytes,
            encoded_bytes,
            zip_directory_bytes,
        } = config.cache;
        Self {
            cached: [decoded_bytes, index_bytes, node_bytes, value_bytes, encoded_bytes, zip_directory_bytes]
                .into_iter()
                .fold(0, u64::saturating_add),
            under_way: [config.http.inflight_bytes, config.fetch.inflight_bytes, RechunkRoom::BYTES]
                .into_iter()
                .fold(0, u64::saturating_add),
            freed: config.read.band_bytes.saturating_mul(FREED_BANDS),
        }
    }

    /// Refuses budgets that do not fit into the memory that the process may take, if that is known.
    ///
    /// # Errors
    /// [`AppError::Memory`].
    pub(super) fn check(self, limit: Option<u64>) -> Result<(), AppError> {
        match limit {
            Some(limit) if self.bytes() > limit => {
                Err(AppError::Memory { budget_mib: self.bytes().div_ceil(MIB), limit_mib: limit / MIB })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Bytes, without those for connections. What is kept costs a tenth more than it weighs.
    fn bytes(self) -> u64 {
        let cached = self.cached.saturating_add(self.cached / 10);
        OWN_BYTES.saturating_add(cached).saturating_add(self.under_way).saturating_add(self.freed)
    }
}

impl fmt::Display for MemoryBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes.div_ceil(MIB);
        write!(
            f,
            "{} MiB: {} its own, 1.1 × {} cached, {} under way, {} freed just now; and up to {CONNECTION_KIB} KiB a connection",
            mib(self.bytes()),
            mib(OWN_BYTES),
            mib(self.cached),
            mib(self.under_way),
            mib(self.freed),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_what_the_configuration_adds_up_to() {
        let cache = CacheOptions {
            decoded_bytes: 100 * MIB,
            index_bytes: 60 * MIB,
            node_bytes: 30 * MIB,
            value_bytes: 5 * MIB,
            encoded_bytes: 5 * MIB,
            zip_directory_bytes: 10 * MIB,
        };
        let mut config = Config { cache, ..Config::default() };
        config.http.inflight_bytes = 30 * MIB;
        config.fetch.inflight_bytes = 5 * MIB;
        config.read.band_bytes = 2 * MIB;
        let text = MemoryBound::of(&config).to_string();
        let expected = "466 MiB: 64 its own, 1.1 × 210 cached, 163 under way, 8 freed just now; and up to 160 KiB a connection";
        assert_eq!(text, expected);
    }

    #[test]
    fn budgets_that_do_not_fit_are_refused_with_the_keys_to_lower() {
        let bound = MemoryBound::of(&Config::default());
        let bytes = bound.bytes();
        assert!(bound.check(None).is_ok() && bound.check(Some(bytes)).is_ok());
        let refused = bound.check(Some(bytes - 1)).unwrap_err().to_string();
        for key in [
            "server.memory_limit_bytes",
            "cache.decoded_bytes",
            "cache.index_bytes",
            "cache.node_bytes",
            "cache.value_bytes",
            "cache.encoded_bytes",
            "cache.zip_directory_bytes",
            "http.inflight_bytes",
            "fetch.inflight_bytes",
            "read.band_bytes",
        ] {
            assert!(refused.contains(key), "{refused}");
        }
    }

    #[test]
    fn budgets_beyond_all_memory_have_a_bound_too() {
        let mut config = Config::default();
        config.cache.decoded_bytes = u64::MAX;
        config.fetch.inflight_bytes = u64::MAX;
        assert_eq!(MemoryBound::of(&config).bytes(), u64::MAX);
    }
}
