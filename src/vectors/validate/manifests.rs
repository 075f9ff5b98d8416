//! Level 3, objects: manifests name fragments that exist.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use super::Report;
use super::level_facts::LevelFacts;
use super::structure::{NodeState, read_node};
use crate::vectors::level::ResolutionLevel;
use crate::vectors::objects::ObjectIndex;
use crate::vectors::{Coord, Profile, VectorError, format_coord};

/// The number of manifests read at a time.
const ROWS: usize = 1 << 14;

pub(super) async fn check(
    level: &ResolutionLevel,
    facts: &HashMap<u64, LevelFacts>,
    report: &mut Report,
    deadline: Instant,
) -> Result<(), VectorError> {
    let at = level.path.as_str();
    let index = match ObjectIndex::open(level).await {
        Ok(Some(index)) => index,
        Ok(None) => return Ok(()),
        Err(error @ (VectorError::InvalidMetadata { .. } | VectorError::UnsupportedEncoding { .. })) => {
            report.error("manifests", at, error.to_string());
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let Some(facts) = facts.get(&level.name.index) else { return Ok(()) };
    report.pass("manifests", at);
    report.pass("fragment_owner", at);
    let ids = match index.ids().await {
        Ok(ids) => ids,
        Err(error) if !matches!(error, VectorError::Store { .. }) => {
            report.error("manifests", at, error.to_string());
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let mut present = 0_u64;
    let mut owned: HashSet<(Coord, u32)> = HashSet::new();
    let warns_of_sharing = !level.shares_fragments() && level.store.root.profile != Profile::Doc;
    for start in (0..ids.len()).step_by(ROWS) {
        let end = (start + ROWS).min(ids.len());
        let payloads = match index.manifest_payloads(start as u64..end as u64).await {
            Ok(payloads) => payloads,
            Err(error) if error.is_corrupt_chunk() => {
                report.error("manifests", at, error.to_string());
                continue;
            }
            Err(error) => return Err(error),
        };
        for (payload, &id) in payloads.iter().zip(ids.iter().skip(start)) {
            // A few bytes may name many fragments.
            if Instant::now() >= deadline {
                report.is_complete = false;
                report.skip("manifests", at, "the deadline has passed");
                return Ok(());
            }
            tokio::task::yield_now().await;
            let manifest = match index.decode_manifest(id, payload) {
                Ok(manifest) => manifest,
                Err(error) => {
                    report.error("manifests", at, error.to_string());
                    continue;
                }
            };
            present += u64::from(!manifest.is_empty());
            for (chunk, fragment) in manifest.fragments() {
                match facts.chunks.get(chunk) {
                    None => {
                        report.error(
                            "manifests",
                            at,
                            format!(
                                "object {id} names chunk `{}`, which has no vertices",
                                format_coord(chunk)
                            ),
                        );
                        break;
                    }
                    Some((_, fragments)) if u64::from(fragment) >= *fragments => {
                        let message = format!(
                            "object {id} names fragment {fragment} of chunk `{}`, which has {fragments}",
                            format_coord(chunk)
                        );
                        report.error("manifests", at, message);
                        // A few bytes may name up to 2^32 fragments: one finding is enough.
                        break;
                    }
                    Some(_) if warns_of_sharing && !owned.insert((chunk.to_vec(), fragment)) => {
                        report.warn(
                            "fragment_owner",
                            at,
                            format!("fragment {fragment} of chunk `{}` is named twice", format_coord(chunk)),
                        );
                    }
                    Some(_) => {}
                }
            }
        }
    }
    check_counts(level, &index, present, report).await
}

/// Checks the counts in the index, and the number of rows of object attributes.
async fn check_counts(
    level: &ResolutionLevel,
    index: &ObjectIndex,
    present: u64,
    report: &mut Report,
) -> Result<(), VectorError> {
    let at = level.path.as_str();
    if level.store.root.profile == Profile::Doc {
        return Ok(());
    }
    let rows = index.row_count();
    for (name, found) in [("num_objects", rows), ("num_present", present)] {
        match index.attributes.get(name) {
            None => {}
            Some(declared) if declared.as_u64() == Some(found) => {}
            Some(declared) => {
                report.error("manifests", at, format!("`{name}` is {declared}, but there are {found}"));
            }
        }
    }
    let folder = level.path.child("object_attributes")?;
    for name in level.store.context.child_names(&folder).await?.unwrap_or_default() {
        if let NodeState::Array(metadata) = read_node(&level.store, &folder.child(&name)?).await?
            && metadata.shape.first() != Some(&rows)
        {
            let message =
                format!("`object_attributes/{name}` has the shape {:?} for {rows} objects", metadata.shape);
            report.error("manifests", at, message);
        }
    }
    Ok(())
}
