//! Which arrays of a family read each other's chunks, and which would do so if they stood at their own paths.
//!
//! Exact, over the chunks there can be: nothing is asked of the store. What it would take too long to tell is called
//! unknown. A thousand arrays are half a million pairs: what is said is put in words only where it is kept.

use std::collections::HashMap;

use serde_json::Value;

use crate::chunk::{KeySet, Overlap};
use crate::metadata::ArrayMetadata;
use crate::metadata::dependents::{Diagnostic, DiagnosticCode, Family};

/// Keys compared for one family, one by one.
const MOST_KEYS: u64 = 1_000_000;

/// Remarks on one array, but for those of a kind that it has none of yet.
const MOST_REMARKS: usize = 16;

/// What is to say about an array's keys.
pub(crate) type KeyClaim = Vec<Diagnostic>;

/// An array whose keys are known.
struct Placed<'a> {
    /// Its place in the family.
    place: usize,
    path: &'a str,
    /// The same for arrays that take the same chunks for the same.
    view: usize,
    keys: KeySet,
}

impl Placed<'_> {
    fn shown(&self) -> String {
        if self.path.is_empty() { "the primary".to_owned() } else { format!("`{}`", self.path) }
    }
}

/// What is to say about the keys of each array of a family.
pub(crate) fn key_claims(family: &Family) -> Vec<KeyClaim> {
    let mut standings: Vec<KeyClaim> = family.members.iter().map(|_| Vec::new()).collect();
    let mut remark = |keys: &Placed, code, detail: &dyn Fn() -> String| {
        let Some(standing) = standings.get_mut(keys.place) else { return };
        if standing.len() < MOST_REMARKS || standing.iter().all(|remark| remark.code != code) {
            standing.push(Diagnostic::new(code, detail()));
        }
    };
    let mut views = HashMap::new();
    let known: Vec<Placed> = family
        .members
        .iter()
        .enumerate()
        .filter_map(|(place, member)| {
            let array = member.array.as_ref().ok()?;
            let keys = KeySet::new(&array.shape, &array.chunk_grid, &array.chunk_key_encoding);
            let views_before = views.len();
            let view = *views.entry(view(array)).or_insert(views_before);
            Some(Placed { place, path: &member.path, view, keys })
        })
        .collect();
    let mut budget = MOST_KEYS;
    for (index, one) in known.iter().enumerate() {
        for other in known.iter().skip(index + 1) {
            let overlap = one.keys.overlap(&other.keys, &mut budget);
            let code = match &overlap {
                Overlap::Disjoint => continue,
                Overlap::Unknown => DiagnosticCode::CollisionUnknown,
                Overlap::Shared { same_coords: true, .. } if one.view == other.view => {
                    DiagnosticCode::AliasedChunks
                }
                Overlap::Shared { .. } => DiagnosticCode::KeyCollision,
            };
            remark(one, code, &|| overlapping(&overlap, other));
            remark(other, code, &|| overlapping(&overlap, one));
        }
    }
    let primary = known.first().filter(|first| first.path.is_empty());
    for dependent in known.iter().filter(|keys| !keys.path.is_empty()) {
        if let Some((code, detail)) = shadow(dependent, &known, &mut budget) {
            remark(dependent, code, &|| detail.clone());
        }
        if primary.is_some_and(|primary| primary.keys.has_first_segment(dependent.path)) {
            let detail = || "chunk keys of the primary begin with this name".to_owned();
            remark(dependent, DiagnosticCode::NameResemblesChunkPrefix, &detail);
        }
    }
    standings
}

/// What is equal for arrays that take the same chunks for the same.
fn view(array: &ArrayMetadata) -> String {
    let codecs = array.codecs.iter().map(|codec| {
        // The order of members says nothing.
        let mut configuration = Value::Object(codec.configuration.clone());
        configuration.sort_all_objects();
        (&codec.name, codec.must_understand, configuration.to_string())
    });
    format!("{:?}", (&array.shape, &array.chunk_grid, codecs.collect::<Vec<_>>()))
}

/// What is to say of chunk keys that are another array's as well, or may be.
fn overlapping(overlap: &Overlap, other: &Placed) -> String {
    let other = other.shown();
    match overlap {
        Overlap::Shared { count, example, .. } => {
            format!("{count} chunk keys, such as `{example}`, are also those of {other}")
        }
        Overlap::Unknown | Overlap::Disjoint => {
            format!("too many chunk keys to compare with those of {other}")
        }
    }
}

/// Whether the keys that a dependent's chunks would have at its own path are others' chunks, or its own others.
fn shadow(dependent: &Placed, family: &[Placed], budget: &mut u64) -> Option<(DiagnosticCode, String)> {
    let rebased = dependent.keys.below(&format!("{}/", dependent.path));
    match rebased.overlap(&dependent.keys, budget) {
        // The keys are what they would be: whoever else has them reads the same chunks, and that has been said.
        Overlap::Shared { count, same_coords: true, .. } if count == dependent.keys.len() => return None,
        Overlap::Shared { same_coords: true, .. } | Overlap::Disjoint => {}
        Overlap::Shared { example, .. } => return Some(shadowed(&example, dependent)),
        Overlap::Unknown => return Some(unknown()),
    }
    family.iter().filter(|other| other.place != dependent.place).find_map(|other| {
        match rebased.overlap(&other.keys, budget) {
            Overlap::Disjoint => None,
            Overlap::Shared { example, .. } => Some(shadowed(&example, other)),
            Overlap::Unknown => Some(unknown()),
        }
    })
}

fn shadowed(key: &str, owner: &Placed) -> (DiagnosticCode, String) {
    (DiagnosticCode::NameShadowsChunkKey, format!("`{key}` is the key of a chunk of {}", owner.shown()))
}

fn unknown() -> (DiagnosticCode, String) {
    let detail = "too many chunk keys to tell whether those at its own path are another's".to_owned();
    (DiagnosticCode::CollisionUnknown, detail)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::metadata::MetadataLimits;
    use crate::metadata::dependents::Reading;

    fn prefix(prefix: &str) -> Value {
        json!({"name": "prefix", "configuration": {"prefix": prefix, "base_encoding": "default"}})
    }

    /// The codes of the primary and of each dependent, in the order of their names.
    fn codes(shape: u64, encoding: &Value, dependents: &Value) -> Vec<Vec<&'static str>> {
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": [shape], "data_type": "uint8", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}}, "codecs": ["bytes"],
            "chunk_key_encoding": encoding, "attributes": {"dependent-arrays": dependents},
        });
        let family = Family::of(document.as_object().unwrap(), Reading::Lenient, &MetadataLimits::default());
        let names = |standing: &KeyClaim| standing.iter().map(|remark| remark.code.name()).collect();
        key_claims(&family).iter().map(names).collect()
    }

    #[test]
    fn a_dependent_stored_below_its_own_name_is_where_it_seems_to_be() {
        let dependents = json!({"s1": {"chunk_key_encoding": prefix("s1/")}});
        assert_eq!(codes(1 << 40, &json!("default"), &dependents), [[""; 0]; 2]);
    }

    #[test]
    fn two_views_of_the_same_chunks_are_aliases_and_neither_shadows_anything() {
        let dependents = json!({
            "a": {"chunk_key_encoding": prefix("a/")},
            "b": {"chunk_key_encoding": prefix("a/"), "data_type": "int8"},
            "c": {"chunk_key_encoding": prefix("a/"), "codecs": ["bytes", "crc32c"]},
        });
        assert_eq!(
            codes(3, &json!("default"), &dependents),
            [
                vec![],
                vec!["aliased_chunks", "key_collision"],
                vec!["aliased_chunks", "key_collision"],
                // As a name, it is the first segment of the primary's keys as well.
                vec!["key_collision", "key_collision", "name_resembles_chunk_prefix"],
            ]
        );
    }

    #[test]
    fn a_name_below_which_the_primary_keeps_its_chunks_shadows_them() {
        let dependents = json!({"s0": {"chunk_key_encoding": prefix("s1/")}});
        assert_eq!(
            codes(3, &prefix("s0/"), &dependents),
            [vec![], vec!["name_shadows_chunk_key", "name_resembles_chunk_prefix"]]
        );
    }

    #[test]
    fn what_takes_too_long_to_tell_is_unknown() {
        let affixed = |name: &str, text: &str| json!({"chunk_key_encoding": {"name": name, "configuration": {name: text, "base_encoding": "v2"}}});
        let dependents = json!({"a": affixed("prefix", "1"), "b": affixed("suffix", "1")});
        let found = codes(1 << 40, &json!("default"), &dependents);
        assert_eq!(found, [vec![], vec!["collision_unknown"], vec!["collision_unknown"]]);
    }

    #[test]
    fn a_thousand_arrays_of_the_same_chunks_are_told_in_a_few_words_each() {
        let dependents: Map<String, Value> =
            (0..1000).map(|number| (format!("d{number}"), json!({}))).collect();
        let found = codes(3, &json!("default"), &Value::Object(dependents));
        assert_eq!(found.len(), 1001);
        assert!(found.iter().all(|codes| (1..=MOST_REMARKS + 2).contains(&codes.len())));
    }
}
