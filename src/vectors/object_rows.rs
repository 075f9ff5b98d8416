//! [`object_rows()`]: the rows of one object, in its order.

use std::sync::Arc;

use super::attributes::VertexAttribute;
use super::chunk::ChunkVertices;
use super::level::ResolutionLevel;
use super::objects::VectorObject;
use super::root::Profile;
use super::select::{Batch, Columns, FragmentOwners, find_fragment, gather_rows};
use super::walk::EdgeTraversal;
use super::{VectorError, format_coord};

/// The rows of an object, in its order, in batches of rows of one chunk each. Fails above `most` rows: a manifest may
/// name a fragment any number of times.
///
/// # Errors
/// [`VectorError::CorruptManifest`], [`VectorError::Corrupt`], [`VectorError::TooMany`].
pub async fn object_rows(
    level: &ResolutionLevel,
    object: &VectorObject,
    attributes: &[Arc<VertexAttribute>],
    most: u64,
) -> Result<Vec<Batch>, VectorError> {
    if level.store.root.profile == Profile::Doc {
        return rows_along_edges(level, object, attributes).await;
    }
    let (mut batches, mut total) = (Vec::new(), 0_u64);
    for span in &object.manifest.spans {
        let missing = || VectorError::CorruptManifest {
            object: object.id,
            reason: format!("it names chunk `{}`, which has no vertices", format_coord(&span.chunk)),
        };
        let chunk = ChunkVertices::read(level, &span.chunk, true).await?.ok_or_else(missing)?;
        let owners: FragmentOwners = span.fragments.iter().map(|fragment| (fragment, object.id)).collect();
        let mut values = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            values.push((Arc::clone(attribute), attribute.values(level, &chunk).await?));
        }
        let mut rows = Vec::new();
        for fragment in span.fragments.iter() {
            let fragment = find_fragment(&chunk, fragment, Some(&owners))?;
            total = total.saturating_add(fragment.count());
            if total > most {
                return Err(VectorError::TooMany { what: "rows", estimate: total, limit: most });
            }
            rows.extend(fragment.rows().filter_map(|row| u32::try_from(row).ok()));
        }
        batches.push(gather_rows(&chunk, rows, Columns::default(), None, &values));
    }
    Ok(batches)
}

/// The rows of an object of the documents' profile, found along its edges.
async fn rows_along_edges(
    level: &ResolutionLevel,
    object: &VectorObject,
    attributes: &[Arc<VertexAttribute>],
) -> Result<Vec<Batch>, VectorError> {
    let mut batches: Vec<(ChunkVertices, Vec<u32>)> = Vec::new();
    for (coord, row) in EdgeTraversal::from_object(level, object).await?.rows {
        let outside = || VectorError::CorruptManifest {
            object: object.id,
            reason: format!(
                "its edges lead to row {row} of chunk `{}`, which does not exist",
                format_coord(&coord)
            ),
        };
        if batches.last().is_none_or(|(chunk, _)| chunk.coord != coord) {
            let chunk = ChunkVertices::read(level, &coord, false).await?.ok_or_else(outside)?;
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
        gathered.push(gather_rows(&chunk, rows, Columns::default(), None, &values));
    }
    Ok(gathered)
}
