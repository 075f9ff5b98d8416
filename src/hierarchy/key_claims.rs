//! Chunk keys that arrays of a family share, or would share if they were served from their own paths.
//!
//! The comparison is exact over all possible chunks and needs no I/O. Comparisons that would take too long are reported as
//! unknown. A thousand arrays are half a million pairs, so the text of a diagnostic is formatted only if it is kept.

use std::collections::HashMap;

use serde_json::Value;

use crate::chunk::{ChunkKeySet, Overlap};
use crate::metadata::ArrayMetadata;
use crate::metadata::dependents::{Diagnostic, DiagnosticCode, Family};

/// Maximum number of keys compared one by one for one family.
const MAX_COMPARED_KEYS: u64 = 1_000_000;

/// Maximum number of diagnostics for one array; the first one of each code is kept even beyond it.
const MAX_DIAGNOSTICS: usize = 16;

/// The diagnostics about an array's chunk keys.
pub(crate) type KeyDiagnostics = Vec<Diagnostic>;

/// An array of the family with its set of chunk keys.
struct KeyedArray<'a> {
    /// Its index in the family.
    index: usize,
    path: &'a str,
    /// Equal for arrays that interpret the same chunks alike.
    view_id: usize,
    keys: ChunkKeySet,
}

impl KeyedArray<'_> {
    fn display_name(&self) -> String {
        if self.path.is_empty() { "the primary".to_owned() } else { format!("`{}`", self.path) }
    }
}

/// The diagnostics about the chunk keys of each array of a family, in the family's order.
pub(crate) fn key_claims(family: &Family) -> Vec<KeyDiagnostics> {
    let mut claims: Vec<KeyDiagnostics> = family.members.iter().map(|_| Vec::new()).collect();
    let mut report = |keys: &KeyedArray, code, detail: &dyn Fn() -> String| {
        let Some(diagnostics) = claims.get_mut(keys.index) else { return };
        if diagnostics.len() < MAX_DIAGNOSTICS || diagnostics.iter().all(|diagnostic| diagnostic.code != code)
        {
            diagnostics.push(Diagnostic::new(code, detail()));
        }
    };
    let mut views = HashMap::new();
    let known: Vec<KeyedArray> = family
        .members
        .iter()
        .enumerate()
        .filter_map(|(index, member)| {
            let array = member.array.as_ref().ok()?;
            let keys = ChunkKeySet::new(&array.shape, &array.chunk_grid, &array.chunk_key_encoding);
            let views_before = views.len();
            let view = *views.entry(chunk_view(array)).or_insert(views_before);
            Some(KeyedArray { index, path: &member.path, view_id: view, keys })
        })
        .collect();
    let mut budget = MAX_COMPARED_KEYS;
    for (index, one) in known.iter().enumerate() {
        for other in known.iter().skip(index + 1) {
            let overlap = one.keys.overlap(&other.keys, &mut budget);
            let code = match &overlap {
                Overlap::Disjoint => continue,
                Overlap::Unknown => DiagnosticCode::CollisionUnknown,
                Overlap::Shared { same_coords: true, .. } if one.view_id == other.view_id => {
                    DiagnosticCode::AliasedChunks
                }
                Overlap::Shared { .. } => DiagnosticCode::KeyCollision,
            };
            report(one, code, &|| overlap_detail(&overlap, other));
            report(other, code, &|| overlap_detail(&overlap, one));
        }
    }
    let primary = known.first().filter(|first| first.path.is_empty());
    for dependent in known.iter().filter(|keys| !keys.path.is_empty()) {
        if let Some((code, detail)) = find_shadow(dependent, &known, &mut budget) {
            report(dependent, code, &|| detail.clone());
        }
        if primary.is_some_and(|primary| primary.keys.has_first_segment(dependent.path)) {
            let detail = || "chunk keys of the primary begin with this name".to_owned();
            report(dependent, DiagnosticCode::NameResemblesChunkPrefix, &detail);
        }
    }
    claims
}

/// A text that is equal for arrays that interpret the same chunks alike.
fn chunk_view(array: &ArrayMetadata) -> String {
    let codecs = array.codecs.iter().map(|codec| {
        // The order of members has no meaning.
        let mut configuration = Value::Object(codec.configuration.clone());
        configuration.sort_all_objects();
        (&codec.name, codec.must_understand, configuration.to_string())
    });
    format!("{:?}", (&array.shape, &array.chunk_grid, codecs.collect::<Vec<_>>()))
}

/// The detail of a diagnostic about chunk keys that another array has, or may have, too.
fn overlap_detail(overlap: &Overlap, other: &KeyedArray) -> String {
    let other = other.display_name();
    match overlap {
        Overlap::Shared { count, example, .. } => {
            format!("{count} chunk keys, such as `{example}`, are also chunk keys of {other}")
        }
        Overlap::Unknown | Overlap::Disjoint => {
            format!("too many chunk keys to compare with those of {other}")
        }
    }
}

/// Checks whether the keys that a dependent's chunks would have at its own path are keys of other chunks.
fn find_shadow(
    dependent: &KeyedArray,
    family: &[KeyedArray],
    budget: &mut u64,
) -> Option<(DiagnosticCode, String)> {
    let rebased = dependent.keys.below(&format!("{}/", dependent.path));
    match rebased.overlap(&dependent.keys, budget) {
        // All keys stay the same; arrays that share them are already reported.
        Overlap::Shared { count, same_coords: true, .. } if count == dependent.keys.len() => return None,
        Overlap::Shared { same_coords: true, .. } | Overlap::Disjoint => {}
        Overlap::Shared { example, .. } => return Some(shadow_diagnostic(&example, dependent)),
        Overlap::Unknown => return Some(unknown_diagnostic()),
    }
    family.iter().filter(|other| other.index != dependent.index).find_map(|other| {
        match rebased.overlap(&other.keys, budget) {
            Overlap::Disjoint => None,
            Overlap::Shared { example, .. } => Some(shadow_diagnostic(&example, other)),
            Overlap::Unknown => Some(unknown_diagnostic()),
        }
    })
}

fn shadow_diagnostic(key: &str, owner: &KeyedArray) -> (DiagnosticCode, String) {
    (
        DiagnosticCode::NameShadowsChunkKey,
        format!("`{key}` is the key of a chunk of {}", owner.display_name()),
    )
}

fn unknown_diagnostic() -> (DiagnosticCode, String) {
    let detail = "too many chunk keys to compare those at its own path with other arrays'".to_owned();
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

    /// The diagnostic codes of the primary and of each dependent, in the order of their names.
    fn codes(shape: u64, encoding: &Value, dependents: &Value) -> Vec<Vec<&'static str>> {
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": [shape], "data_type": "uint8", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}}, "codecs": ["bytes"],
            "chunk_key_encoding": encoding, "attributes": {"dependent-arrays": dependents},
        });
        let family =
            Family::from_primary(document.as_object().unwrap(), Reading::Lenient, &MetadataLimits::default());
        let names = |diagnostics: &KeyDiagnostics| {
            diagnostics.iter().map(|diagnostic| diagnostic.code.as_str()).collect()
        };
        key_claims(&family).iter().map(names).collect()
    }

    #[test]
    fn a_dependent_stored_below_its_own_name_has_no_diagnostics() {
        let dependents = json!({"s1": {"chunk_key_encoding": prefix("s1/")}});
        assert_eq!(codes(1 << 40, &json!("default"), &dependents), [[""; 0]; 2]);
    }

    #[test]
    fn equal_views_of_chunks_are_reported_as_aliases_and_others_as_collisions() {
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
                // The name is also the first segment of the primary's keys.
                vec!["key_collision", "key_collision", "name_resembles_chunk_prefix"],
            ]
        );
    }

    #[test]
    fn a_dependent_whose_name_is_a_prefix_of_the_primarys_chunk_keys_is_reported() {
        let dependents = json!({"s0": {"chunk_key_encoding": prefix("s1/")}});
        assert_eq!(
            codes(3, &prefix("s0/"), &dependents),
            [vec![], vec!["name_shadows_chunk_key", "name_resembles_chunk_prefix"]]
        );
    }

    #[test]
    fn comparisons_that_take_too_long_are_reported_as_unknown() {
        let affixed = |name: &str, text: &str| json!({"chunk_key_encoding": {"name": name, "configuration": {name: text, "base_encoding": "v2"}}});
        let dependents = json!({"a": affixed("prefix", "1"), "b": affixed("suffix", "1")});
        let found = codes(1 << 40, &json!("default"), &dependents);
        assert_eq!(found, [vec![], vec!["collision_unknown"], vec!["collision_unknown"]]);
    }

    #[test]
    fn diagnostics_of_a_thousand_arrays_with_the_same_chunks_are_bounded() {
        let dependents: Map<String, Value> =
            (0..1000).map(|number| (format!("d{number}"), json!({}))).collect();
        let found = codes(3, &json!("default"), &Value::Object(dependents));
        assert_eq!(found.len(), 1001);
        assert!(found.iter().all(|codes| (1..=MAX_DIAGNOSTICS + 2).contains(&codes.len())));
    }
}
