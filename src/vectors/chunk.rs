//! [`ChunkVertices`]: the vertices of one chunk, and its fragments.

use bytes::Bytes;

use super::level::ResolutionLevel;
use super::payload::{FragmentIndex, PayloadError, Positions, decode_integers};
use super::root::Profile;
use super::{Coord, VectorError};
use crate::metadata::DataType;

/// The vertices of one chunk.
#[derive(Clone, Debug)]
pub struct ChunkVertices {
    /// The coordinates of the chunk.
    pub coord: Coord,
    /// The positions of the vertices.
    pub positions: Positions,
    /// The fragment index, if it was requested and is stored.
    pub fragments: Option<FragmentIndex>,
    /// Whether the number of vertices is known: it is not for a dense array without offsets or a NaN fill value.
    pub is_count_known: bool,
}

impl ChunkVertices {
    /// Reads a chunk of a level; `None` if nothing is stored there.
    ///
    /// # Errors
    /// [`VectorError::Corrupt`].
    pub async fn read(
        level: &ResolutionLevel,
        coord: &[i64],
        with_fragments: bool,
    ) -> Result<Option<Self>, VectorError> {
        let context = &level.store.context;
        let Some(payload) = level.vertices.payload(context, coord).await? else { return Ok(None) };
        let is_doc = level.store.root.profile == Profile::Doc;
        let fragments = match &level.fragments {
            Some(fragments) if with_fragments || is_doc => fragments.payload(context, coord).await?,
            _ => None,
        };
        let (level, coord) = (level.clone(), coord.to_vec());
        let bytes = payload.len() as u64 + fragments.as_ref().map_or(0, |fragments| fragments.len() as u64);
        context
            .cpu
            .run_or_inline(bytes, move || Self::decode(&level, coord, payload, fragments.as_ref()))
            .await?
            .map(Some)
    }

    fn decode(
        level: &ResolutionLevel,
        coord: Coord,
        payload: Bytes,
        fragments: Option<&Bytes>,
    ) -> Result<Self, VectorError> {
        let corrupt =
            |reason: &PayloadError| VectorError::corrupt_chunk(&level.vertices.path, &coord, reason);
        let positions =
            Positions::new(payload, &level.coordinate_type, level.dims).map_err(|reason| corrupt(&reason))?;
        if level.store.root.profile == Profile::Doc {
            return decode_dense(level, coord, positions, fragments);
        }
        let index = match (fragments, &level.fragments) {
            (Some(bytes), Some(cells)) => Some(
                FragmentIndex::decode(bytes, positions.rows() as u64)
                    .map_err(|reason| VectorError::corrupt_chunk(&cells.path, &coord, &reason))?,
            ),
            _ => None,
        };
        Ok(Self { coord, positions, fragments: index, is_count_known: true })
    }

    /// The rows that are vertices, in fragment order and each once. If the fragments cover the chunk, or there is no
    /// index, these are all rows.
    #[must_use]
    pub fn vertex_rows(&self) -> Vec<u32> {
        let rows = u32::try_from(self.positions.rows()).unwrap_or(u32::MAX);
        let Some(fragments) = self.fragments.as_ref().filter(|fragments| !fragments.is_tiling()) else {
            return (0..rows).collect();
        };
        let mut seen = vec![false; self.positions.rows()];
        let mut vertex_rows = Vec::new();
        for row in fragments.iter().flat_map(super::payload::Fragment::rows) {
            let Ok(place) = usize::try_from(row) else { continue };
            // Fragments may share rows; each row is one vertex.
            if let Some(seen) = seen.get_mut(place).filter(|seen| !**seen) {
                *seen = true;
                vertex_rows.extend(u32::try_from(row));
            }
        }
        vertex_rows
    }
}

/// Decodes a chunk of a dense array. The offsets of its groups determine how many of its rows are vertices.
fn decode_dense(
    level: &ResolutionLevel,
    coord: Coord,
    positions: Positions,
    offsets: Option<&Bytes>,
) -> Result<ChunkVertices, VectorError> {
    let Some(offsets) = offsets else {
        let fill = level.vertices.array().map(|array| array.metadata().fill_value.as_bytes().to_vec());
        let is_nan = fill.is_some_and(|fill| {
            Positions::new(fill.into(), &level.coordinate_type, 1)
                .is_ok_and(|fill| fill.coordinates(0).any(f64::is_nan))
        });
        if !is_nan {
            return Ok(ChunkVertices { coord, positions, fragments: None, is_count_known: false });
        }
        let is_filled = |row: &usize| positions.coordinates(*row).all(f64::is_nan);
        let rows = (0..positions.rows()).rev().find(|row| !is_filled(row)).map_or(0, |last| last + 1);
        let positions = positions.truncated(rows);
        return Ok(ChunkVertices { coord, positions, fragments: None, is_count_known: true });
    };
    let path = level.fragments.as_ref().map_or(&level.path, |cells| &cells.path);
    let most = positions.rows() as u64;
    let mut ranges = Vec::new();
    let mut rows = 0;
    let kind = level.fragments.as_ref().and_then(|cells| cells.array());
    let kind = kind.map_or(DataType::Int64, |array| array.metadata().data_type.clone());
    for pair in decode_integers(offsets, &kind).chunks_exact(2) {
        let &[start, count] = pair else { continue };
        let (Ok(start), Ok(count)) = (u64::try_from(start), u64::try_from(count)) else {
            if count > 0 {
                return Err(VectorError::corrupt_chunk(
                    path,
                    &coord,
                    &PayloadError::Row { row: start, rows: most },
                ));
            }
            // Never written: its start has no meaning.
            ranges.push((rows, 0));
            continue;
        };
        if count == 0 {
            ranges.push((rows, 0));
            continue;
        }
        let end = start.saturating_add(count);
        if end > most {
            let row = i64::try_from(end - 1).unwrap_or(i64::MAX);
            return Err(VectorError::corrupt_chunk(path, &coord, &PayloadError::Row { row, rows: most }));
        }
        rows = rows.max(end);
        ranges.push((start, count));
    }
    let positions = positions.truncated(usize::try_from(rows).unwrap_or(usize::MAX));
    let fragments = FragmentIndex::from_ranges(&ranges, rows);
    Ok(ChunkVertices { coord, positions, fragments: Some(fragments), is_count_known: true })
}
