//! Identity of codec chains: hashes that name a chain in cache keys.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::support::representation::Representation;
use crate::chunk::Runs;
use crate::metadata::CodecMetadata;

/// The hash keys of this process. They are random, so that no client can craft two documents with equal ids.
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The id of the chain of these codecs, bound to this chunk.
pub(super) fn chain_id(codecs: &[CodecMetadata], chunk: &Representation) -> u64 {
    let mut hasher = KEYS.build_hasher();
    codecs.len().hash(&mut hasher);
    for codec in codecs {
        codec.name.hash(&mut hasher);
        codec.must_understand.hash(&mut hasher);
        hash_members(&codec.configuration, &mut hasher);
    }
    (&chunk.data_type, &chunk.shape, &chunk.fill_value).hash(&mut hasher);
    hasher.finish()
}

/// The id of the chain that decodes these bytes of the chunks of another chain.
pub(super) fn part_id(chain: u64, items: &Runs) -> u64 {
    KEYS.hash_one((chain, items))
}

/// Hashes JSON so that the order of members does not matter.
fn hash_json(value: &Value, hasher: &mut impl Hasher) {
    std::mem::discriminant(value).hash(hasher);
    match value {
        Value::Null => {}
        Value::Bool(flag) => flag.hash(hasher),
        Value::Number(number) => number.to_string().hash(hasher),
        Value::String(text) => text.hash(hasher),
        Value::Array(values) => {
            values.len().hash(hasher);
            for value in values {
                hash_json(value, hasher);
            }
        }
        Value::Object(members) => hash_members(members, hasher),
    }
}

fn hash_members(members: &Map<String, Value>, hasher: &mut impl Hasher) {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    sorted.len().hash(hasher);
    for (name, value) in sorted {
        name.hash(hasher);
        hash_json(value, hasher);
    }
}
