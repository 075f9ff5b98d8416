//! [`MemoryBound`]: how much memory the server takes at most; and the budgets that come of the memory there is.
//!
//! Pure: what there is was looked up by `machine`. The budgets are kept in the rooms that spend them. Those that the
//! configuration leaves to the server (`"auto"`) share what the others leave of the part of memory that is the server's.

use std::fmt;

use super::tree::{Entry, Node};
use super::{Config, ConfigError};
use crate::views::rechunk::RechunkBudget;

const MIB: u64 = 1 << 20;
/// The program, its threads' stacks and buffers.
const OWN_BYTES: u64 = 64 * MIB;
/// The allocator gives freed memory back a tenth of a second later. The bands of answers are what is freed in large pieces:
/// at full speed about so many are on their way back.
const FREED_BANDS: u64 = 4;
/// A connection: at rest it takes about 40 KiB, in the middle of the longest head this much.
const CONNECTION_KIB: u64 = 160;

/// The word for a budget that the server chooses.
const AUTO: &str = "auto";

/// How much memory there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What this process may take, if something says so: the configuration, or its control group.
    pub limit: Option<u64>,
    /// What the machine has, if that is known.
    pub machine: Option<u64>,
}

impl Memory {
    /// All there is for this process, and how much of it budgets that are chosen may come to: of a limit, which is there
    /// for this process, four fifths (the rest is for connections); of a machine, which others use too, half.
    #[must_use]
    pub fn total_and_share(self) -> Option<(u64, u64)> {
        let limit = self.limit.filter(|limit| self.machine.is_none_or(|machine| *limit <= machine));
        match (limit, self.machine) {
            (Some(limit), _) => Some((limit, limit / 5 * 4)),
            (None, Some(machine)) => Some((machine, machine / 2)),
            (None, None) => None,
        }
    }
}

/// A budget: where it is configured, what it is for, and how it is chosen.
struct Budget {
    key: [&'static str; 2],
    bytes: fn(&Config) -> u64,
    purpose: Purpose,
    choice: Choice,
}

/// What a budget is for, and so how much memory it may come to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// What is cached costs a tenth more than it weighs.
    Cached,
    InFlight,
    /// What is freed all the time, of which the allocator holds some.
    Freed,
}

impl Purpose {
    /// Bytes of memory that ten bytes may come to.
    const fn tenfold_cost(self) -> u64 {
        match self {
            Self::Cached => 11,
            Self::InFlight => 10,
            Self::Freed => 10 * FREED_BANDS,
        }
    }
}

/// How a budget is chosen.
enum Choice {
    /// A part of what there is to share, between bounds.
    Part { of: u64, least: u64, most: u64 },
    /// Of what is left then, so many parts, but no more than so many bytes.
    Parts { parts: u64, most: u64 },
}

const fn cached(name: &'static str, bytes: fn(&Config) -> u64, parts: u64, most: u64) -> Budget {
    Budget { key: ["cache", name], bytes, purpose: Purpose::Cached, choice: Choice::Parts { parts, most } }
}

const fn in_flight(section: &'static str, bytes: fn(&Config) -> u64) -> Budget {
    let choice = Choice::Part { of: 4, least: 64 * MIB, most: 2048 * MIB };
    Budget { key: [section, "inflight_bytes"], bytes, purpose: Purpose::InFlight, choice }
}

/// All of them. The first takes what others may not.
const BUDGETS: [Budget; 9] = [
    cached("decoded_bytes", |config| config.cache.decoded_size, 7, u64::MAX),
    cached("index_bytes", |config| config.cache.index_size, 1, 1024 * MIB),
    cached("node_bytes", |config| config.cache.node_size, 2, 1024 * MIB),
    cached("value_bytes", |config| config.cache.value_size, 2, 4096 * MIB),
    cached("encoded_bytes", |config| config.cache.encoded_size, 2, 4096 * MIB),
    cached("zip_directory_bytes", |config| config.cache.zip_directory_size, 1, 1024 * MIB),
    in_flight("http", |config| config.http.inflight_size),
    in_flight("fetch", |config| config.fetch.inflight_size),
    Budget {
        key: ["read", "band_bytes"],
        bytes: |config| config.read.segment_size,
        purpose: Purpose::Freed,
        choice: Choice::Part { of: 64, least: 4 * MIB, most: 32 * MIB },
    },
];

/// In the order of [`BUDGETS`].
type Bytes<T> = [T; BUDGETS.len()];

/// The budgets, those given as they are, that come to no more than `share` with all else that the server takes; unless the
/// given or the least alone come to more.
fn chosen(share: u64, given: Bytes<Option<u64>>) -> Bytes<u64> {
    let cost = |budget: &Budget, bytes: u64| (bytes / 10 + 1).saturating_mul(budget.purpose.tenfold_cost());
    let all = || BUDGETS.iter().zip(given);
    let taken = all().filter_map(|(budget, given)| Some(cost(budget, given?)));
    let there_is = taken.fold(share, u64::saturating_sub).saturating_sub(OWN_BYTES + RechunkBudget::BYTES);

    let mut bytes = given.map(Option::unwrap_or_default);
    let mut left = there_is;
    for ((budget, given), bytes) in all().zip(&mut bytes) {
        if let (Choice::Part { of, least, most }, None) = (&budget.choice, given) {
            let part = (there_is / of).clamp(*least, *most);
            *bytes = whole(part);
            // Not what it is rounded to: the others would shrink where it comes to the next whole number.
            left = left.saturating_sub(cost(budget, part));
        }
    }

    let parts_of = |budget: &Budget| match budget.choice {
        Choice::Parts { parts, .. } => parts,
        Choice::Part { .. } => 0,
    };
    let parts: u64 = all().filter(|(_, given)| given.is_none()).map(|(budget, _)| parts_of(budget)).sum();
    let mut spare = 0;
    for ((budget, given), bytes) in all().zip(&mut bytes) {
        if let (Choice::Parts { parts: own, most }, None) = (&budget.choice, given) {
            let wanted =
                u128::from(left) * 10 * u128::from(*own) / u128::from(parts * budget.purpose.tenfold_cost());
            let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
            *bytes = whole(wanted.min(*most));
            spare += wanted.saturating_sub(*most);
        }
    }
    if let ([first, ..], [None, ..]) = (&mut bytes, given) {
        *first += whole(spare);
    }
    bytes
}

/// The budgets of a configuration.
fn bytes_of(config: &Config) -> Bytes<u64> {
    BUDGETS.map(|budget| (budget.bytes)(config))
}

/// A size in whole MiB.
fn whole(bytes: u64) -> u64 {
    bytes / MIB * MIB
}

/// Puts numbers in the places of budgets that the server is to choose.
pub(super) fn choose(tree: &mut Entry, memory: Memory) {
    let given = BUDGETS.map(|budget| match tree.get(&budget.key).map(|entry| &entry.node) {
        Some(Node::String(word) | Node::Word(word)) if word == AUTO => None,
        Some(Node::Integer(bytes)) => u64::try_from(*bytes).ok(),
        Some(Node::Word(word)) => word.parse().ok(),
        // Whatever else it is, it is refused when it is read.
        _ => Some(0),
    });
    let bytes = memory.total_and_share().map_or_else(
        // Nothing is known of the memory there is.
        || bytes_of(&Config::default()),
        |(_, share)| chosen(share, given),
    );
    for ((budget, given), bytes) in BUDGETS.iter().zip(given).zip(bytes) {
        if given.is_none() {
            tree.replace(&budget.key, Node::Integer(i64::try_from(bytes).unwrap_or(i64::MAX)));
        }
    }
}

/// Takes the limit out of the tree, where it is a number; `"auto"` is what the machine says.
pub(super) fn limit(tree: &mut Entry, found: Memory) -> Memory {
    const KEY: [&str; 2] = ["server", "memory_limit_bytes"];
    let configured = match tree.get(&KEY).map(|entry| &entry.node) {
        Some(Node::String(word) | Node::Word(word)) if word == AUTO => {
            tree.replace(&KEY, Node::Integer(0));
            None
        }
        Some(Node::Integer(bytes)) => u64::try_from(*bytes).ok(),
        Some(Node::Word(word)) => word.parse().ok(),
        _ => None,
    };
    match configured.filter(|bytes| *bytes > 0) {
        // What is configured is meant, even where the machine has less.
        Some(bytes) => Memory { limit: Some(bytes), machine: None },
        None => found,
    }
}

/// Refuses budgets that do not fit into the memory that the process may take, if that is known.
///
/// # Errors
/// [`ConfigError::InvalidValue`], at the largest budget that somebody has set, or else at the limit.
pub(super) fn check(config: &Config, tree: &Entry) -> Result<(), ConfigError> {
    let (bound, Some(limit)) = (MemoryBound::from_config(config), config.memory.limit) else { return Ok(()) };
    if bound.bytes() <= limit {
        return Ok(());
    }
    let is_set = |key: &[&str]| tree.origin_of(key) != super::Origin::Default;
    let size = |key: &[&str]| match tree.get(key).map(|entry| &entry.node) {
        Some(Node::Integer(bytes)) => *bytes,
        Some(Node::Word(word)) => word.parse().unwrap_or_default(),
        _ => 0,
    };
    let set: Vec<_> = BUDGETS.iter().map(|budget| budget.key).filter(|key| is_set(key)).collect();
    let key = set.iter().copied().max_by_key(|key| size(key)).unwrap_or(["server", "memory_limit_bytes"]);
    let advice = if set.is_empty() {
        "raise the limit".to_owned()
    } else {
        let names: Vec<String> = set.iter().map(|key| format!("`{}`", key.join("."))).collect();
        format!("lower {}, or leave it to be chosen (\"auto\")", names.join(" or "))
    };
    Err(ConfigError::InvalidValue {
        origin: tree.origin_of(&key),
        key: key.join("."),
        reason: format!(
            "the budgets add up to {} MiB, and the process may take {} MiB (`server.memory_limit_bytes`, or the limit of \
             its control group): {advice}",
            bound.bytes().div_ceil(MIB),
            limit / MIB,
        ),
    })
}

impl Config {
    /// The budgets of memory in bytes, by their settings' names.
    #[must_use]
    pub fn budgets(&self) -> [(String, u64); BUDGETS.len()] {
        BUDGETS.map(|budget| (budget.key.join("."), (budget.bytes)(self)))
    }
}

/// Resident memory: so many bytes, and some for each connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBound {
    cached: u64,
    under_way: u64,
    freed: u64,
}

impl MemoryBound {
    /// Bytes that a connection may take besides.
    pub const CONNECTION_BYTES: u64 = CONNECTION_KIB << 10;

    /// By the budgets of a configuration.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        Self::of_budgets(bytes_of(config))
    }

    fn of_budgets(bytes: Bytes<u64>) -> Self {
        let sum = |wanted: Purpose| {
            let all = BUDGETS.iter().zip(bytes).filter(|(budget, _)| budget.purpose == wanted);
            all.fold(0_u64, |sum, (_, bytes)| sum.saturating_add(bytes))
        };
        Self {
            cached: sum(Purpose::Cached),
            under_way: sum(Purpose::InFlight).saturating_add(RechunkBudget::BYTES),
            freed: sum(Purpose::Freed).saturating_mul(FREED_BANDS),
        }
    }

    /// Bytes, without those for connections. What is kept costs a tenth more than it weighs.
    #[must_use]
    pub fn bytes(self) -> u64 {
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
    use crate::cache::CacheOptions;

    #[test]
    fn the_bound_is_what_the_configuration_adds_up_to() {
        let cache = CacheOptions {
            decoded_size: 100 * MIB,
            index_size: 60 * MIB,
            node_size: 30 * MIB,
            value_size: 5 * MIB,
            encoded_size: 3 * MIB,
            zip_directory_size: 2 * MIB,
        };
        let mut config = Config { cache, ..Config::default() };
        config.http.inflight_size = 30 * MIB;
        config.fetch.inflight_size = 5 * MIB;
        config.read.segment_size = 2 * MIB;
        let text = MemoryBound::from_config(&config).to_string();
        let expected = "455 MiB: 64 its own, 1.1 × 200 cached, 163 under way, 8 freed just now; and up to 160 KiB a connection";
        assert_eq!(text, expected);
    }

    /// What the budgets come to by the bound that is printed.
    fn bound(bytes: Bytes<u64>) -> u64 {
        MemoryBound::of_budgets(bytes).bytes()
    }

    #[test]
    fn every_size_of_the_configuration_that_is_cached_or_in_flight_is_a_budget() {
        let config: toml::Table = Config::default().to_toml().parse().unwrap();
        let named = |key: [&str; 2]| BUDGETS.iter().any(|budget| budget.key == key);
        for key in config["cache"].as_table().unwrap().keys().filter(|key| key.ends_with("_bytes")) {
            assert!(named(["cache", key]), "cache.{key}");
        }
        for section in config.keys().filter(|section| config[*section].get("inflight_bytes").is_some()) {
            assert!(named([section, "inflight_bytes"]), "{section}.inflight_bytes");
        }
    }

    const GIB: u64 = 1 << 30;
    const NONE: Bytes<Option<u64>> = [None; BUDGETS.len()];

    #[test]
    fn chosen_budgets_come_to_no_more_than_their_share_and_none_shrinks_with_more_memory() {
        let mut before = [0; BUDGETS.len()];
        let mut total = 424 * MIB;
        while total < 2048 * GIB {
            let (_, share) = Memory { limit: Some(total), machine: None }.total_and_share().unwrap();
            let bytes = chosen(share, NONE);
            assert!(bound(bytes) <= share, "{total}: {bytes:?} come to {}", bound(bytes));
            assert!(
                before.iter().zip(&bytes).all(|(before, now)| before <= now),
                "{total}: {before:?} {bytes:?}"
            );
            before = bytes;
            total += total / 97 + 12_345;
        }
    }

    #[test]
    fn half_a_gibibyte_starts_and_sixty_four_are_used() {
        let of = |total| {
            let (_, share) = Memory { limit: Some(total), machine: Some(total) }.total_and_share().unwrap();
            chosen(share, NONE)
        };
        let small = of(512 * MIB);
        assert!(bound(small) <= 410 * MIB && small.iter().all(|bytes| *bytes >= 4 * MIB), "{small:?}");
        let large = of(64 * GIB);
        assert!(bound(large) > 50 * GIB && large[0] > 30 * GIB, "{large:?}");
        let machine = Memory { limit: None, machine: Some(16 * GIB) };
        assert_eq!(machine.total_and_share(), Some((16 * GIB, 8 * GIB)));
        let wide = Memory { limit: Some(99 * GIB), ..machine };
        assert_eq!(
            wide.total_and_share(),
            machine.total_and_share(),
            "a limit above the machine's memory is none"
        );
    }

    #[test]
    fn what_is_given_stays_and_the_rest_share_what_it_leaves() {
        let (mut given, share) = (NONE, 8 * GIB);
        given[0] = Some(2 * GIB);
        given[5] = Some(GIB);
        let bytes = chosen(share, given);
        assert_eq!((bytes[0], bytes[5]), (2 * GIB, GIB));
        assert!(bound(bytes) <= share && bytes.iter().all(|bytes| *bytes > 0), "{bytes:?}");
        given[0] = Some(100 * GIB);
        assert_eq!(chosen(share, given)[6], 64 * MIB, "the least is chosen where nothing is left");
    }

    #[test]
    fn budgets_beyond_all_memory_have_a_bound_too() {
        let mut config = Config::default();
        config.cache.decoded_size = u64::MAX;
        config.fetch.inflight_size = u64::MAX;
        assert_eq!(MemoryBound::from_config(&config).bytes(), u64::MAX);
    }
}
