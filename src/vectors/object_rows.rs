//! [`rows_of`]: the rows of one object, in its order.

use std::sync::Arc;

use super::attributes::Attribute;
use super::chunk::ChunkRows;
use super::level::Level;
use super::objects::Object;
use super::root::Profile;
use super::select::{Batch, Columns, Owners, fragment_of, gather};
use super::walk::Walk;
use super::{VectorError, dotted};

/// The rows of an object, in its order: each with its chunk. At most so many: a manifest may name a fragment as often as
/// it likes.
///
/// # Errors
/// [`VectorError::CorruptManifest`], [`VectorError::Corrupt`], [`VectorError::TooMany`].
pub async fn rows_of(
    level: &Level,
    object: &Object,
    attributes: &[Arc<Attribute>],
    most: u64,
) -> Result<Vec<Batch>, VectorError> {
    if level.store.root.profile == Profile::Doc {
        return walked(level, object, attributes).await;
    }
    let (mut batches, mut total) = (Vec::new(), 0_u64);
    for span in &object.manifest.spans {
        let missing = || VectorError::CorruptManifest {
            object: object.id,
            reason: format!("it names chunk `{}`, which has no vertices", dotted(&span.chunk)),
        };
        let chunk = ChunkRows::read(level, &span.chunk, true).await?.ok_or_else(missing)?;
        let owners: Owners = span.fragments.iter().map(|fragment| (fragment, object.id)).collect();
        let mut values = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            values.push((Arc::clone(attribute), attribute.values(level, &chunk).await?));
        }
        let mut rows = Vec::new();
        for fragment in span.fragments.iter() {
            let fragment = fragment_of(&chunk, fragment, Some(&owners))?;
            total = total.saturating_add(fragment.count());
            if total > most {
                return Err(VectorError::TooMany { what: "rows", estimate: total, limit: most });
            }
            rows.extend(fragment.rows().filter_map(|row| u32::try_from(row).ok()));
        }
        batches.push(gather(&chunk, rows, Columns::default(), None, &values));
    }
    Ok(batches)
}

/// The rows of an object that is found along its edges.
async fn walked(
    level: &Level,
    object: &Object,
    attributes: &[Arc<Attribute>],
) -> Result<Vec<Batch>, VectorError> {
    let mut batches: Vec<(ChunkRows, Vec<u32>)> = Vec::new();
    for (coord, row) in Walk::of(level, object).await?.places {
        let outside = || VectorError::CorruptManifest {
            object: object.id,
            reason: format!("its edges lead to row {row} of chunk `{}`, which is not there", dotted(&coord)),
        };
        if batches.last().is_none_or(|(chunk, _)| chunk.coord != coord) {
            let chunk = ChunkRows::read(level, &coord, false).await?.ok_or_else(outside)?;
            batches.push((chunk, Vec::new()));
        }
        let Some((chunk, rows)) = batches.last_mut() else { continue };
        let row = u32::try_from(row).ok().filter(|&row| (row as usize) < chunk.positions.rows());
        rows.push(row.ok_or_else(outside)?);
    }
    let mut gathered = Vec::with_capacity(batches.len());
    for (chunk, rows) in batches {
        let mut values = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            values.push((Arc::clone(attribute), attribute.values(level, &chunk).await?));
        }
        gathered.push(gather(&chunk, rows, Columns::default(), None, &values));
    }
    Ok(gathered)
}
