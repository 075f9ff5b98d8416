//! Budgets of memory: those that are `"auto"` are derived from the available memory, and [`MemoryBound`] is what all add up to.
//!
//! Without I/O: `machine` reads how much memory there is. The modules that use a budget enforce it. Budgets that are `"auto"`
//! share what the others leave of the server's share of memory.

use std::fmt;

use super::error::ConfigError;
use super::machine::AvailableMemory;
use super::options::Config;
use super::origin::Origin;
use super::tree::{ConfigValue, LocatedValue};
use crate::cache::DiskCacheOptions;
use crate::units::size;
use crate::views::rechunk::RechunkBudget;

const MIB: u64 = 1 << 20;
/// The program itself: code, stacks of threads, buffers, and tables of a fixed size, such as that of the encoded chunks that
/// were found current.
const OWN_BYTES: u64 = 64 * MIB;
/// Freed segments of responses that the allocator still holds. It returns memory after a tenth of a second; segments are what is
/// freed in large pieces, and at full speed about this many wait to be returned.
const FREED_SEGMENTS: u64 = 4;
/// Memory of a connection in the middle of the longest head. An idle one takes about 40 KiB.
const CONNECTION_KIB: u64 = 160;

/// The memory for responses in flight divided by this is the most for a buffered response.
const BUFFERED_PARTS: u64 = 4;

/// What the budgets leave of memory divided by this is for a chunk that is longer than the memory for fetches.
const LONG_CHUNK_PARTS: u64 = 5;

/// The value of a budget that the server chooses.
const AUTO: &str = "auto";

/// A budget: its key, its purpose, and how it is chosen if it is `"auto"`.
struct Budget {
    key: [&'static str; 2],
    bytes: fn(&Config) -> u64,
    purpose: Purpose,
    choice: Choice,
}

/// What a budget is for, which decides how much memory it can cost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Cached data, which costs a tenth more than its weight.
    Cached,
    InFlight,
    /// Data that is freed continually; the allocator still holds some of it.
    Freed,
}

impl Purpose {
    /// Bytes of memory that ten bytes of the budget can cost.
    const fn tenfold_cost(self) -> u64 {
        match self {
            Self::Cached => 11,
            Self::InFlight => 10,
            Self::Freed => 10 * FREED_SEGMENTS,
        }
    }
}

/// How a budget is chosen.
enum Choice {
    /// A fraction, 1/`divisor`, of the memory to share, between bounds.
    Fraction { divisor: u64, min: u64, max: u64 },
    /// A number of parts of what is left then, up to a maximum.
    Parts { parts: u64, max: u64 },
}

const fn cached(name: &'static str, bytes: fn(&Config) -> u64, parts: u64, max: u64) -> Budget {
    Budget { key: ["cache", name], bytes, purpose: Purpose::Cached, choice: Choice::Parts { parts, max } }
}

const fn in_flight(section: &'static str, bytes: fn(&Config) -> u64) -> Budget {
    let choice = Choice::Fraction { divisor: 4, min: 64 * MIB, max: 2048 * MIB };
    Budget { key: [section, "inflight_size"], bytes, purpose: Purpose::InFlight, choice }
}

/// All budgets. The first takes what exceeds the maximum of others.
const BUDGETS: [Budget; 10] = [
    cached("decoded_size", |config| config.cache.decoded_size, 7, u64::MAX),
    cached("index_size", |config| config.cache.index_size, 1, 1024 * MIB),
    cached("node_size", |config| config.cache.node_size, 2, 1024 * MIB),
    cached("value_size", |config| config.cache.value_size, 2, 4096 * MIB),
    cached("encoded_size", |config| config.cache.encoded_size, 2, 4096 * MIB),
    cached("zip_directory_size", |config| config.cache.zip_directory_size, 1, 1024 * MIB),
    cached("references_size", |config| config.cache.references_size, 1, 1024 * MIB),
    in_flight("http", |config| config.http.inflight_size),
    in_flight("fetch", |config| config.fetch.inflight_size),
    Budget {
        key: ["read", "segment_size"],
        bytes: |config| config.read.segment_size,
        purpose: Purpose::Freed,
        choice: Choice::Fraction { divisor: 64, min: 4 * MIB, max: 32 * MIB },
    },
];

/// In the order of [`BUDGETS`].
type Bytes<T> = [T; BUDGETS.len()];

/// All budgets: the given ones unchanged, and the others so that all of them and the rest of the server fit in `share`. They exceed
/// it only if the given budgets, or the minima, alone do.
fn choose_budgets(share: u64, given: Bytes<Option<u64>>) -> Bytes<u64> {
    let cost = |budget: &Budget, bytes: u64| (bytes / 10 + 1).saturating_mul(budget.purpose.tenfold_cost());
    let all = || BUDGETS.iter().zip(given);
    let taken = all().filter_map(|(budget, given)| Some(cost(budget, given?)));
    let available = taken.fold(share, u64::saturating_sub).saturating_sub(OWN_BYTES + RechunkBudget::BYTES);

    let mut bytes = given.map(Option::unwrap_or_default);
    let mut left = available;
    for ((budget, given), bytes) in all().zip(&mut bytes) {
        if let (Choice::Fraction { divisor, min, max }, None) = (&budget.choice, given) {
            let fraction = (available / divisor).clamp(*min, *max);
            *bytes = floor_to_mib(fraction);
            // The unrounded size is subtracted: otherwise the others would shrink where it reaches the next MiB.
            left = left.saturating_sub(cost(budget, fraction));
        }
    }

    let parts_of = |budget: &Budget| match budget.choice {
        Choice::Parts { parts, .. } => parts,
        Choice::Fraction { .. } => 0,
    };
    let parts: u64 = all().filter(|(_, given)| given.is_none()).map(|(budget, _)| parts_of(budget)).sum();
    let mut spare = 0;
    for ((budget, given), bytes) in all().zip(&mut bytes) {
        if let (Choice::Parts { parts: own, max }, None) = (&budget.choice, given) {
            let fair =
                u128::from(left) * 10 * u128::from(*own) / u128::from(parts * budget.purpose.tenfold_cost());
            let fair = u64::try_from(fair).unwrap_or(u64::MAX);
            *bytes = floor_to_mib(fair.min(*max));
            spare += fair.saturating_sub(*max);
        }
    }
    if let ([first, ..], [None, ..]) = (&mut bytes, given) {
        *first += floor_to_mib(spare);
    }
    bytes
}

/// The budgets of a configuration.
fn budgets_of(config: &Config) -> Bytes<u64> {
    BUDGETS.map(|budget| (budget.bytes)(config))
}

/// A size rounded down to whole MiB.
fn floor_to_mib(bytes: u64) -> u64 {
    bytes / MIB * MIB
}

/// The size that a value of the tree is, in bytes.
fn size_of(node: &ConfigValue) -> Option<u64> {
    match node {
        ConfigValue::Integer(bytes) => u64::try_from(*bytes).ok(),
        ConfigValue::String(text) => size::parse(text),
        ConfigValue::Word(word) => size::parse(word).or_else(|| word.parse().ok()),
        _ => None,
    }
}

/// Whether a value of the tree is `"auto"`.
fn is_auto(node: &ConfigValue) -> bool {
    matches!(node, ConfigValue::String(word) | ConfigValue::Word(word) if word == AUTO)
}

/// Replaces budgets that are `"auto"` by sizes.
pub(super) fn resolve_auto(tree: &mut LocatedValue, memory: AvailableMemory) {
    let given = BUDGETS.map(|budget| match tree.get(&budget.key).map(|entry| &entry.node) {
        Some(node) if is_auto(node) => None,
        // A value of another kind is rejected when it is read.
        node => Some(node.and_then(size_of).unwrap_or_default()),
    });
    let bytes = memory.total_and_share().map_or_else(
        // It is not known how much memory there is.
        || budgets_of(&Config::default()),
        |(_, share)| choose_budgets(share.saturating_sub(disk_bytes(tree)), given),
    );
    for ((budget, given), bytes) in BUDGETS.iter().zip(given).zip(bytes) {
        if given.is_none() {
            tree.replace(&budget.key, ConfigValue::Integer(i64::try_from(bytes).unwrap_or(i64::MAX)));
        }
    }
}

/// Limits the size of a buffered response, which the elements that it is made of are held beside.
pub(super) fn limit_buffered(config: &mut Config) {
    let http = &mut config.http;
    http.max_buffered_response_size =
        http.max_buffered_response_size.min(http.inflight_size / BUFFERED_PARTS);
}

/// Limits the size of a decoded chunk. One that is longer than the memory for fetches is decoded alone, and takes a part of what
/// all budgets leave; the rest is for connections.
pub(super) fn limit_chunks(config: &mut Config) {
    let Some((total, _)) = config.memory.total_and_share() else { return };
    let left = total.saturating_sub(MemoryBound::from_config(config).bytes());
    let most = config.fetch.inflight_size.saturating_add(left / LONG_CHUNK_PARTS);
    config.limits.max_chunk_size = config.limits.max_chunk_size.min(most);
}

/// Memory of the disk cache, which is set aside only if there is one.
fn disk_bytes(tree: &LocatedValue) -> u64 {
    if tree.get(&["cache", "disk", "path"]).is_none() {
        return 0;
    }
    let index = tree.get(&DISK_INDEX).and_then(|entry| size_of(&entry.node)).unwrap_or_default();
    (index / 10 + 1)
        .saturating_mul(Purpose::Cached.tenfold_cost())
        .saturating_add(DiskCacheOptions::IN_FLIGHT_BYTES)
}

/// The key of the index of the disk cache.
const DISK_INDEX: [&str; 3] = ["cache", "disk", "index_size"];

/// The key of the limit of memory.
const MAX_MEMORY: [&str; 2] = ["server", "max_memory"];

/// The memory that budgets are derived from: the configured limit, or else the detected memory. `"auto"` becomes 0 in the tree.
pub(super) fn apply_limit(tree: &mut LocatedValue, detected: AvailableMemory) -> AvailableMemory {
    let node = tree.get(&MAX_MEMORY).map(|entry| &entry.node);
    let configured = node.and_then(size_of);
    if node.is_some_and(is_auto) {
        tree.replace(&MAX_MEMORY, ConfigValue::Integer(0));
    }
    match configured.filter(|bytes| *bytes > 0) {
        // A configured limit holds even if the machine has less.
        Some(bytes) => AvailableMemory { limit: Some(bytes), machine: None },
        None => detected,
    }
}

/// Rejects budgets that exceed the memory that the process may use, if that is known.
///
/// # Errors
/// [`ConfigError::InvalidValue`], at the largest budget that is configured, or else at the limit.
pub(super) fn check(config: &Config, tree: &LocatedValue) -> Result<(), ConfigError> {
    let (bound, Some(limit)) = (MemoryBound::from_config(config), config.memory.limit) else { return Ok(()) };
    if bound.bytes() <= limit {
        return Ok(());
    }
    let is_set = |key: &[&str]| tree.origin_of(key) != Origin::Default;
    let size = |key: &[&str]| tree.get(key).and_then(|entry| size_of(&entry.node)).unwrap_or_default();
    let keys = BUDGETS.iter().map(|budget| budget.key.as_slice()).chain([DISK_INDEX.as_slice()]);
    let set: Vec<&[&str]> = keys.filter(|key| is_set(key)).collect();
    let key = set.iter().copied().max_by_key(|key| size(key)).unwrap_or(&MAX_MEMORY);
    let advice = if set.is_empty() {
        "raise the limit".to_owned()
    } else {
        let names: Vec<String> = set.iter().map(|key| format!("`{}`", key.join("."))).collect();
        format!("lower {}, or set it to \"auto\"", names.join(" or "))
    };
    Err(ConfigError::InvalidValue {
        origin: tree.origin_of(key),
        key: key.join("."),
        reason: format!(
            "the budgets add up to {} MiB, and the process may use {} MiB (`server.max_memory`, or the limit of \
             its control group): {advice}",
            bound.bytes().div_ceil(MIB),
            limit / MIB,
        ),
    })
}

impl Config {
    /// The budgets of memory in bytes, by their keys.
    #[must_use]
    pub fn budgets(&self) -> [(String, u64); BUDGETS.len()] {
        BUDGETS.map(|budget| (budget.key.join("."), (budget.bytes)(self)))
    }

    /// A warning if the server may use more memory than was detected.
    #[must_use]
    pub fn memory_warning(&self) -> Option<String> {
        let there_is = self.detected_memory?;
        let mib = |bytes: u64| bytes.div_ceil(MIB);
        let bound = MemoryBound::from_config(self).bytes();
        let (what, bytes, advice) = if bound > there_is {
            ("the budgets of memory add up to", bound, "lower the sizes of caches and budgets")
        } else if self.server.max_memory > there_is {
            ("`server.max_memory` is", self.server.max_memory, "lower it")
        } else {
            return None;
        };
        Some(format!("{what} {} MiB, more than there is ({} MiB): {advice}", mib(bytes), mib(there_is)))
    }

    /// The budget of the index of the disk cache, with its key, if there is such a cache.
    #[must_use]
    pub fn disk_budget(&self) -> Option<(String, u64)> {
        self.disk_index().map(|bytes| (DISK_INDEX.join("."), bytes))
    }

    fn disk_index(&self) -> Option<u64> {
        self.cache.disk.path.is_some().then_some(self.cache.disk.index_size)
    }
}

/// An upper bound of resident memory, without that of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBound {
    cached: u64,
    in_flight: u64,
    freed: u64,
}

impl MemoryBound {
    /// Bytes of memory of each connection.
    pub const CONNECTION_BYTES: u64 = CONNECTION_KIB << 10;

    /// The bound for the budgets of a configuration. It has no memory for a chunk that is longer than the memory for fetches.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        let bound = Self::from_budgets(budgets_of(config));
        match config.disk_index() {
            None => bound,
            Some(index) => Self {
                cached: bound.cached.saturating_add(index),
                in_flight: bound.in_flight.saturating_add(DiskCacheOptions::IN_FLIGHT_BYTES),
                ..bound
            },
        }
    }

    fn from_budgets(bytes: Bytes<u64>) -> Self {
        let sum = |purpose: Purpose| {
            let all = BUDGETS.iter().zip(bytes).filter(|(budget, _)| budget.purpose == purpose);
            all.fold(0_u64, |sum, (_, bytes)| sum.saturating_add(bytes))
        };
        Self {
            cached: sum(Purpose::Cached),
            in_flight: sum(Purpose::InFlight).saturating_add(RechunkBudget::BYTES),
            freed: sum(Purpose::Freed).saturating_mul(FREED_SEGMENTS),
        }
    }

    /// The bound in bytes, without connections.
    #[must_use]
    pub fn bytes(self) -> u64 {
        let cached = self.cached.saturating_add(self.cached / 10);
        OWN_BYTES.saturating_add(cached).saturating_add(self.in_flight).saturating_add(self.freed)
    }
}

impl fmt::Display for MemoryBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes.div_ceil(MIB);
        write!(
            f,
            "{} MiB: {} its own, 1.1 × {} cached, {} in flight, {} freed recently; and up to {CONNECTION_KIB} KiB per connection",
            mib(self.bytes()),
            mib(OWN_BYTES),
            mib(self.cached),
            mib(self.in_flight),
            mib(self.freed),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::CacheOptions;

    #[test]
    fn the_bound_is_the_sum_of_the_budgets() {
        let cache = CacheOptions {
            decoded_size: 100 * MIB,
            index_size: 60 * MIB,
            node_size: 30 * MIB,
            value_size: 5 * MIB,
            encoded_size: 3 * MIB,
            zip_directory_size: MIB,
            references_size: MIB,
            disk: DiskCacheOptions::default(),
        };
        let mut config = Config { cache, ..Config::default() };
        config.http.inflight_size = 30 * MIB;
        config.fetch.inflight_size = 5 * MIB;
        config.read.segment_size = 2 * MIB;
        let text = MemoryBound::from_config(&config).to_string();
        let expected = "455 MiB: 64 its own, 1.1 × 200 cached, 163 in flight, 8 freed recently; and up to 160 KiB per connection";
        assert_eq!(text, expected);
        config.cache.disk =
            DiskCacheOptions { path: Some("/c".into()), index_size: 10 * MIB, ..config.cache.disk };
        let with_disk = MemoryBound::from_config(&config).bytes();
        assert_eq!(with_disk, (455 + 11) * MIB + DiskCacheOptions::IN_FLIGHT_BYTES);
    }

    #[test]
    fn chunks_that_are_longer_than_memory_for_fetches_are_limited_by_what_budgets_leave() {
        let mut config = Config::default();
        config.fetch.inflight_size = 100 * MIB;
        config.limits.max_chunk_size = 512 * MIB;
        let budgets = MemoryBound::from_config(&config).bytes();
        for (left, expected) in [(0, 100), (60 * MIB, 112), (4096 * MIB, 512)] {
            let mut config = Config {
                memory: AvailableMemory { limit: Some(budgets + left), machine: None },
                ..config.clone()
            };
            limit_chunks(&mut config);
            assert_eq!(config.limits.max_chunk_size, expected * MIB);
        }
    }

    /// The bound of budgets.
    fn bound(bytes: Bytes<u64>) -> u64 {
        MemoryBound::from_budgets(bytes).bytes()
    }

    #[test]
    fn every_size_for_caches_and_data_in_flight_is_a_budget() {
        let config: toml::Table = Config::default().to_toml().parse().unwrap();
        let named = |key: [&str; 2]| BUDGETS.iter().any(|budget| budget.key == key);
        for key in config["cache"].as_table().unwrap().keys().filter(|key| key.ends_with("_size")) {
            assert!(named(["cache", key]), "cache.{key}");
        }
        for section in config.keys().filter(|section| config[*section].get("inflight_size").is_some()) {
            assert!(named([section, "inflight_size"]), "{section}.inflight_size");
        }
    }

    const GIB: u64 = 1 << 30;
    const NONE: Bytes<Option<u64>> = [None; BUDGETS.len()];

    #[test]
    fn chosen_budgets_fit_in_their_share_and_grow_with_memory() {
        let mut before = [0; BUDGETS.len()];
        let mut total = 424 * MIB;
        while total < 2048 * GIB {
            let (_, share) = AvailableMemory { limit: Some(total), machine: None }.total_and_share().unwrap();
            let bytes = choose_budgets(share, NONE);
            assert!(bound(bytes) <= share, "{total}: {bytes:?} add up to {}", bound(bytes));
            assert!(
                before.iter().zip(&bytes).all(|(before, now)| before <= now),
                "{total}: {before:?} {bytes:?}"
            );
            before = bytes;
            total += total / 97 + 12_345;
        }
    }

    #[test]
    fn budgets_fit_in_half_a_gibibyte_and_use_sixty_four() {
        let of = |total| {
            let (_, share) =
                AvailableMemory { limit: Some(total), machine: Some(total) }.total_and_share().unwrap();
            choose_budgets(share, NONE)
        };
        let small = of(512 * MIB);
        assert!(bound(small) <= 410 * MIB && small.iter().all(|bytes| *bytes >= 4 * MIB), "{small:?}");
        let large = of(64 * GIB);
        assert!(bound(large) > 50 * GIB && large[0] > 30 * GIB, "{large:?}");
        let machine = AvailableMemory { limit: None, machine: Some(16 * GIB) };
        assert_eq!(machine.total_and_share(), Some((16 * GIB, 8 * GIB)));
        let wide = AvailableMemory { limit: Some(99 * GIB), ..machine };
        assert_eq!(
            wide.total_and_share(),
            machine.total_and_share(),
            "a limit above the machine's memory is none"
        );
    }

    #[test]
    fn given_budgets_stay_and_the_others_share_the_rest() {
        let (mut given, share) = (NONE, 8 * GIB);
        given[0] = Some(2 * GIB);
        given[5] = Some(GIB);
        let bytes = choose_budgets(share, given);
        assert_eq!((bytes[0], bytes[5]), (2 * GIB, GIB));
        assert!(bound(bytes) <= share && bytes.iter().all(|bytes| *bytes > 0), "{bytes:?}");
        given[0] = Some(100 * GIB);
        assert_eq!(choose_budgets(share, given)[7], 64 * MIB, "the minimum is chosen if nothing is left");
    }

    #[test]
    fn the_bound_of_excessive_budgets_saturates() {
        let mut config = Config::default();
        config.cache.decoded_size = u64::MAX;
        config.fetch.inflight_size = u64::MAX;
        assert_eq!(MemoryBound::from_config(&config).bytes(), u64::MAX);
    }
}
