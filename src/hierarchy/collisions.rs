//! Which arrays of a family read each other's chunks, and which would do so if they stood at their own paths.
//!
//! Exact, over the chunks there can be: nothing is asked of the store. What it would take too long to tell is called
//! unknown.

use crate::chunk::{KeySet, Overlap};
use crate::metadata::ArrayMetadata;
use crate::metadata::dependents::{Diagnostic, DiagnosticCode, Family};

/// Keys compared for one family, one by one.
const MOST_KEYS: u64 = 1_000_000;

/// Remarks on one array, but for those of a kind that it has none of yet.
const MOST_REMARKS: usize = 16;

/// What is to say about an array's keys.
pub(super) type Standing = Vec<Diagnostic>;

/// An array whose keys are known.
struct Keys<'a> {
    /// Its place in the family.
    place: usize,
    path: &'a str,
    array: &'a ArrayMetadata,
    keys: KeySet,
}

impl Keys<'_> {
    fn shown(&self) -> String {
        if self.path.is_empty() { "the primary".to_owned() } else { format!("`{}`", self.path) }
    }
}

/// What is to say about the keys of each array of a family.
pub(super) fn standings(family: &Family) -> Vec<Standing> {
    let mut standings: Vec<Standing> = family.members.iter().map(|_| Vec::new()).collect();
    let mut remark = |keys: &Keys, code, detail: String| {
        let Some(standing) = standings.get_mut(keys.place) else { return };
        if standing.len() < MOST_REMARKS || standing.iter().all(|remark| remark.code != code) {
            standing.push(Diagnostic::new(code, detail));
        }
    };
    let known: Vec<Keys> = family
        .members
        .iter()
        .enumerate()
        .filter_map(|(place, member)| {
            let array = member.array.as_ref().ok()?;
            let keys = KeySet::new(&array.shape, &array.chunk_grid, &array.chunk_key_encoding);
            Some(Keys { place, path: &member.path, array, keys })
        })
        .collect();
    let mut budget = MOST_KEYS;
    for (index, one) in known.iter().enumerate() {
        for other in known.iter().skip(index + 1) {
            let (code, what) = match one.keys.overlap(&other.keys, &mut budget) {
                Overlap::Disjoint => continue,
                Overlap::Unknown => (
                    DiagnosticCode::CollisionUnknown,
                    "too many chunk keys to compare with those of".to_owned(),
                ),
                Overlap::Shared { count, example, same_coords } => {
                    let code = if same_coords && is_same_view(one.array, other.array) {
                        DiagnosticCode::AliasedChunks
                    } else {
                        DiagnosticCode::KeyCollision
                    };
                    (code, format!("{count} chunk keys, such as `{example}`, are also those of"))
                }
            };
            remark(one, code, format!("{what} {}", other.shown()));
            remark(other, code, format!("{what} {}", one.shown()));
        }
    }
    let primary = known.first().filter(|first| first.path.is_empty());
    for dependent in known.iter().filter(|keys| !keys.path.is_empty()) {
        if let Some((code, detail)) = shadow(dependent, &known, &mut budget) {
            remark(dependent, code, detail);
        }
        if primary.is_some_and(|primary| primary.keys.has_first_segment(dependent.path)) {
            let detail = "chunk keys of the primary begin with this name".to_owned();
            remark(dependent, DiagnosticCode::NameResemblesChunkPrefix, detail);
        }
    }
    standings
}

/// Whether two arrays take the same chunks for the same.
fn is_same_view(one: &ArrayMetadata, other: &ArrayMetadata) -> bool {
    one.shape == other.shape && one.chunk_grid == other.chunk_grid && one.codecs == other.codecs
}

/// Whether the keys that a dependent's chunks would have at its own path are others' chunks, or its own others.
fn shadow(dependent: &Keys, family: &[Keys], budget: &mut u64) -> Option<(DiagnosticCode, String)> {
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

fn shadowed(key: &str, owner: &Keys) -> (DiagnosticCode, String) {
    (DiagnosticCode::NameShadowsChunkKey, format!("`{key}` is the key of a chunk of {}", owner.shown()))
}

fn unknown() -> (DiagnosticCode, String) {
    let detail = "too many chunk keys to tell whether those at its own path are another's".to_owned();
    (DiagnosticCode::CollisionUnknown, detail)
}
