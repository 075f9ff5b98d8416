//! [`ChunkKeySet`]: the keys of all chunks of an array, and their overlap with the keys of another array.
//!
//! Most pairs are found disjoint by the beginning or the end that all of their keys have, or by the number of their segments.
//! The rest are compared key by key, within a budget. The keys of a set are held in memory only where both encodings are
//! ambiguous.

use std::collections::HashMap;

use super::{ChunkGrid, extended_keys};
use crate::metadata::{
    ChunkGridMetadata, ChunkKeyEncodingMetadata, ExtendedKeys, KeyCore, KeyPart, Separator,
};

/// The keys of the chunks of one array, relative to a prefix that it shares with others.
#[derive(Clone, Debug)]
pub struct ChunkKeySet {
    grid_shape: Vec<u64>,
    keys: ExtendedKeys,
    /// The beginning of every key, up to a digit.
    lead: Vec<u8>,
    /// The end of every key, backwards, up to a digit.
    trail: Vec<u8>,
    /// The number of slashes in every key; `None` if it differs.
    slashes: Option<usize>,
}

/// The overlap of two sets of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// They share no key.
    Disjoint,
    /// They share keys.
    Shared {
        /// How many.
        count: u64,
        /// One of them.
        example: String,
        /// Whether each shared key has the same coordinates in both.
        same_coords: bool,
    },
    /// There are too many keys to compare.
    Unknown,
}

impl ChunkKeySet {
    /// The keys of the chunks of an array.
    #[must_use]
    pub fn new(shape: &[u64], grid: &ChunkGridMetadata, encoding: &ChunkKeyEncodingMetadata) -> Self {
        Self::from_keys(ChunkGrid::new(shape, grid).grid_shape(), encoding.to_extended())
    }

    fn from_keys(grid_shape: Vec<u64>, mut keys: ExtendedKeys) -> Self {
        let rank = grid_shape.len();
        match &mut keys.core {
            // A separator that separates nothing does not matter.
            KeyCore::Default(separator) if rank == 0 => *separator = Separator::Slash,
            KeyCore::V2(separator) if rank < 2 => *separator = Separator::Slash,
            KeyCore::Default(_) | KeyCore::V2(_) | KeyCore::Fanout { .. } | KeyCore::Template(_) => {}
        }
        let (lead, trail) = ends(&keys, rank);
        let slashes = slashes(&keys, rank);
        let (lead, trail) = (lead.into_bytes(), trail.bytes().rev().collect());
        Self { grid_shape, keys, lead, trail, slashes }
    }

    /// The keys of the same chunks in the default encoding below a prefix, which must end in `/`.
    #[must_use]
    pub fn below(&self, prefix: &str) -> Self {
        let core = KeyCore::Default(Separator::Slash);
        let keys = ExtendedKeys { before: prefix.to_owned(), core, after: String::new() };
        Self::from_keys(self.grid_shape.clone(), keys)
    }

    /// The number of keys; saturates.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.grid_shape.iter().fold(1, |product, &chunks| {
            if product == 0 || chunks == 0 { 0 } else { chunks.saturating_mul(product) }
        })
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.grid_shape.contains(&0)
    }

    /// Whether a key has this first segment and the other segments of the first chunk's key.
    #[must_use]
    pub fn has_first_segment(&self, segment: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        let first = self.key(&vec![0; self.grid_shape.len()]);
        match first.split_once('/') {
            None => self.coords_of(segment).is_some(),
            Some((first, _)) if first == segment => true,
            Some((_, rest)) => self.coords_of(&format!("{segment}/{rest}")).is_some(),
        }
    }

    /// The keys that both sets have. The number of compared keys is subtracted from `budget`.
    #[must_use]
    pub fn overlap(&self, other: &Self, budget: &mut u64) -> Overlap {
        if self.is_empty() || other.is_empty() || self.is_disjoint_by_ends(other) {
            return Overlap::Disjoint;
        }
        let rank = self.grid_shape.len();
        if self.keys == other.keys && rank == other.grid_shape.len() && self.is_unambiguous() {
            let chunks = self.grid_shape.iter().zip(&other.grid_shape).map(|(&one, &other)| one.min(other));
            let count = chunks.fold(1_u64, u64::saturating_mul);
            return Overlap::Shared { count, example: self.key(&vec![0; rank]), same_coords: true };
        }
        let (small, large) = if self.len() <= other.len() { (self, other) } else { (other, self) };
        match (small.is_unambiguous(), large.is_unambiguous()) {
            (_, true) => small.compare(budget, |key| large.coords_of(key)),
            (true, false) => large.compare(budget, |key| small.coords_of(key)),
            (false, false) => {
                if large.len() > *budget {
                    return Overlap::Unknown;
                }
                *budget -= large.len();
                let keys: HashMap<String, Vec<u64>> =
                    large.coords().map(|coords| (large.key(&coords), coords)).collect();
                small.compare(budget, |key| keys.get(key).cloned())
            }
        }
    }

    /// Finds each key in another set by `find`, which returns its coordinates there.
    fn compare(&self, budget: &mut u64, find: impl Fn(&str) -> Option<Vec<u64>>) -> Overlap {
        if self.len() > *budget {
            return Overlap::Unknown;
        }
        *budget -= self.len();
        let (mut count, mut example, mut same_coords) = (0, None, true);
        for coords in self.coords() {
            let key = self.key(&coords);
            let Some(found) = find(&key) else { continue };
            count += 1;
            same_coords &= found == coords;
            if example.as_ref().is_none_or(|example| key < *example) {
                example = Some(key);
            }
        }
        match example {
            None => Overlap::Disjoint,
            Some(example) => Overlap::Shared { count, example, same_coords },
        }
    }

    /// Whether the sets are disjoint by their beginnings, ends or numbers of slashes alone.
    fn is_disjoint_by_ends(&self, other: &Self) -> bool {
        let slashes = self.slashes.zip(other.slashes).is_some_and(|(one, other)| one != other);
        // An array without dimensions has one key, without a digit.
        let has_digits = !self.grid_shape.is_empty() && !other.grid_shape.is_empty();
        slashes || has_digits && (differ(&self.lead, &other.lead) || differ(&self.trail, &other.trail))
    }

    /// Whether each key belongs to exactly one chunk.
    fn is_unambiguous(&self) -> bool {
        match &self.keys.core {
            KeyCore::Default(_) | KeyCore::V2(_) | KeyCore::Fanout { .. } => true,
            KeyCore::Template(template) => template.is_unambiguous(),
        }
    }

    fn key(&self, coords: &[u64]) -> String {
        let mut key = String::new();
        extended_keys::push_key(&mut key, &self.keys, coords);
        key
    }

    /// The coordinates of a key, if it is in the set.
    fn coords_of(&self, key: &str) -> Option<Vec<u64>> {
        let coords = extended_keys::key_coords(key, &self.keys, self.grid_shape.len())?;
        coords.iter().zip(&self.grid_shape).all(|(coord, chunks)| coord < chunks).then_some(coords)
    }

    /// The coordinates of all chunks; there must be at least one.
    fn coords(&self) -> impl Iterator<Item = Vec<u64>> {
        std::iter::successors(Some(vec![0; self.grid_shape.len()]), |coords| {
            let mut next = coords.clone();
            for (coord, chunks) in next.iter_mut().zip(&self.grid_shape).rev() {
                *coord += 1;
                if *coord < *chunks {
                    return Some(next);
                }
                *coord = 0;
            }
            None
        })
    }
}

/// Whether keys with these beginnings always differ. Each beginning is followed by a digit.
fn differ(one: &[u8], other: &[u8]) -> bool {
    if one.iter().zip(other).any(|(one, other)| one != other) {
        return true;
    }
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    long.get(short.len()).is_some_and(|byte| !byte.is_ascii_digit())
}

/// The beginning of every key before the first digit of a coordinate, and the end after the last one, for ranks above 0.
fn ends(keys: &ExtendedKeys, rank: usize) -> (String, String) {
    let literal = |part: Option<&KeyPart>| match part {
        Some(KeyPart::Literal(text)) => text.clone(),
        Some(KeyPart::Number { .. }) | None => String::new(),
    };
    let (lead, trail) = match &keys.core {
        _ if rank == 0 => Default::default(),
        KeyCore::Default(separator) => (format!("c{}", separator.as_char()), String::new()),
        KeyCore::V2(_) => Default::default(),
        KeyCore::Fanout { .. } => ("d0/".to_owned(), "/c".to_owned()),
        KeyCore::Template(template) => (literal(template.parts().first()), literal(template.parts().last())),
    };
    (format!("{}{lead}", keys.before), format!("{trail}{}", keys.after))
}

/// The number of slashes in every key; `None` if it differs.
fn slashes(keys: &ExtendedKeys, rank: usize) -> Option<usize> {
    let count = |text: &str| text.bytes().filter(|&byte| byte == b'/').count();
    let core = match &keys.core {
        KeyCore::Default(Separator::Slash) => rank,
        KeyCore::V2(Separator::Slash) => rank.saturating_sub(1),
        KeyCore::Default(Separator::Dot) | KeyCore::V2(Separator::Dot) => 0,
        KeyCore::Fanout { .. } => return None,
        KeyCore::Template(template) => template
            .parts()
            .iter()
            .map(|part| match part {
                KeyPart::Literal(text) => count(text),
                KeyPart::Number { .. } => 0,
            })
            .sum(),
    };
    Some(count(&keys.before) + core + count(&keys.after))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::{Value, json};

    use super::*;
    use crate::metadata::{MetadataLimits, v3};

    fn keys(encoding: &Value, grid_shape: &[u64]) -> Option<ChunkKeySet> {
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": grid_shape, "data_type": "uint8", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": vec![1; grid_shape.len()]}},
            "chunk_key_encoding": encoding, "codecs": ["bytes"],
        });
        match v3::parse(document.to_string().as_bytes(), &MetadataLimits::default()).ok()? {
            v3::V3Node::Array(array) => {
                Some(ChunkKeySet::new(&array.shape, &array.chunk_grid, &array.chunk_key_encoding))
            }
            v3::V3Node::Group(_) => None,
        }
    }

    fn prefix(prefix: &str, base: &Value) -> Value {
        json!({"name": "prefix", "configuration": {"prefix": prefix, "base_encoding": base}})
    }

    fn v2(separator: &str) -> Value {
        json!({"name": "v2", "configuration": {"separator": separator}})
    }

    #[test]
    fn keys_of_grids_of_any_size_are_compared_within_a_budget() {
        let (huge, flat) = ([1_u64 << 40, 1 << 40], [1_u64 << 40]);
        let suffix = json!({"name": "suffix", "configuration": {"suffix": ".x"}});
        for (one, other, grid_shape) in [
            (json!("default"), v2("/"), &huge[..]),
            (v2("."), v2("/"), &huge[..]),
            (json!("default"), suffix, &huge[..]),
            (prefix("a/", &json!("default")), prefix("b/", &json!("default")), &flat[..]),
            (prefix("a", &v2(".")), prefix("ab", &v2(".")), &flat[..]),
            (json!("default"), json!("fanout"), &huge[..]),
        ] {
            let (one, other) = (keys(&one, grid_shape).unwrap(), keys(&other, grid_shape).unwrap());
            assert_eq!(one.overlap(&other, &mut 0), Overlap::Disjoint, "{one:?} {other:?}");
        }
        // With one encoding, the shared keys are those of the smaller grid along each dimension.
        let (one, other) =
            (keys(&json!("default"), &huge).unwrap(), keys(&json!("default"), &[2, 3]).unwrap());
        let shared = Overlap::Shared { count: 6, example: "c/0/0".to_owned(), same_coords: true };
        assert_eq!(one.overlap(&other, &mut 0), shared);
        // Where every key would have to be compared, the budget ends the comparison.
        let (one, other) = (keys(&prefix("1", &v2(".")), &flat).unwrap(), keys(&v2("."), &flat).unwrap());
        assert_eq!(one.overlap(&other, &mut 1000), Overlap::Unknown);
    }

    fn encodings() -> impl Strategy<Value = Value> {
        let leaf = select(vec![
            json!("default"),
            v2("."),
            v2("/"),
            json!({"name": "default", "configuration": {"separator": "."}}),
            json!({"name": "fanout", "configuration": {"max_children": 4}}),
            json!({"name": "template", "configuration": {"format": "{-1}/{*}", "separator": "."}}),
            json!({"name": "template", "configuration": {"format": "{*}", "separator": ""}}),
        ]);
        let affix = |name: &'static str| move |(text, base): (&str, Value)| json!({"name": name, "configuration": {name: text, "base_encoding": base}});
        prop_oneof![
            leaf.clone(),
            (select(vec!["0", "1", "c/", "c", "0.", "d0/"]), leaf.clone()).prop_map(affix("prefix")),
            (select(vec!["0", "1", "/0", "/c", ".0"]), leaf).prop_map(affix("suffix")),
        ]
    }

    proptest! {
        #[test]
        fn overlap_agrees_with_comparing_all_keys(
            one in encodings(), other in encodings(),
            shapes in prop::collection::vec((0_u64..14, 0_u64..14), 0..3), flat in any::<bool>(),
        ) {
            let (mut left, mut right): (Vec<u64>, Vec<u64>) = shapes.into_iter().unzip();
            if flat { left.truncate(1); right.truncate(2); }
            let (Some(one), Some(other)) = (keys(&one, &left), keys(&other, &right)) else { return Ok(()) };
            let all = |set: &ChunkKeySet| -> BTreeMap<String, Vec<u64>> {
                if set.is_empty() { return BTreeMap::new() }
                set.coords().map(|coords| (set.key(&coords), coords)).collect()
            };
            let (left, right) = (all(&one), all(&other));
            let shared: Vec<_> = left.keys().filter(|key| right.contains_key(*key)).collect();
            match one.overlap(&other, &mut 1_000_000) {
                Overlap::Unknown => prop_assert!(false, "a small grid"),
                Overlap::Disjoint => prop_assert!(shared.is_empty(), "{shared:?}"),
                Overlap::Shared { example, same_coords, .. } => {
                    prop_assert!(shared.contains(&&example));
                    if one.is_unambiguous() && other.is_unambiguous() {
                        prop_assert_eq!(same_coords, shared.iter().all(|key| left[*key] == right[*key]));
                    }
                }
            }
        }
    }
}
