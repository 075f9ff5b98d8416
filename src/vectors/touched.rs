//! [`TouchedChunks`]: the chunks of a level that boxes touch, known before any vertex is read.

use super::bbox::{Amplification, TouchedRanges};
use super::level::ResolutionLevel;
use super::{Bbox, Coord, VectorError};

/// The chunks that a query touches.
#[derive(Clone, Debug)]
pub struct TouchedChunks {
    /// The touched chunks that hold vertices, sorted.
    pub chunks: Vec<Coord>,
    /// The number of touched chunks, stored or not. A chunk touched by several boxes counts for each.
    pub candidates: u128,
    /// The number of touched bins; one touched by several boxes counts for each.
    pub bins: u128,
    /// The read amplification known so far; empty for several boxes.
    pub amplification: Amplification,
    /// The ranges that each box touches.
    pub touches: Vec<TouchedRanges>,
    /// Names that should be chunk coordinates and are not.
    pub invalid_names: Vec<String>,
    /// The number of all chunks that hold vertices.
    pub non_empty_chunks: usize,
}

impl TouchedChunks {
    /// The chunks of a level that any of the boxes touches. `chunk_filter` restricts them to a value of the attribute
    /// by which chunks are split.
    ///
    /// # Errors
    /// Failures of the store; [`VectorError::BadParam`] for a value by which no chunks are split.
    pub async fn find(
        level: &ResolutionLevel,
        boxes: &[Bbox],
        chunk_filter: Option<&(String, String)>,
    ) -> Result<Self, VectorError> {
        let occupied = level.non_empty_chunks().await?;
        let grid = level.chunk_grid(&occupied.cells);
        let touches: Vec<TouchedRanges> =
            boxes.iter().map(|bbox| TouchedRanges::new(bbox, &level.shapes, &grid)).collect();
        let lead = level.leading_axes();
        let leading = chunk_filter.map(|chunk_filter| leading_coord(level, chunk_filter)).transpose()?;
        let count = occupied.cells.len();
        let spaces = touches.clone();
        let is_selected = move |coord: &Coord| {
            let spatial = coord.get(lead..).unwrap_or_default();
            leading.is_none_or(|at| coord.first() == Some(&at))
                && spaces.iter().any(|touch| touch.contains_chunk(spatial))
        };
        let cells = occupied.cells;
        let filter = move || cells.into_iter().filter(is_selected).collect::<Vec<Coord>>();
        let chunks = level.store.context.cpu.run_or_inline(count as u64 * 64, filter).await?;
        let layers = match (lead, leading) {
            (0, _) | (_, Some(_)) => 1,
            (_, None) => level.vertices.grid().and_then(|grid| grid.first().copied()).unwrap_or(1),
        };
        let total = |of: fn(&TouchedRanges) -> u128| {
            touches
                .iter()
                .fold(0_u128, |sum, touch| sum.saturating_add(of(touch)))
                .saturating_mul(layers.into())
        };
        let loaded = || chunks.iter().map(|coord| coord.get(lead..).unwrap_or_default());
        let amplification = match touches.as_slice() {
            [touch] => touch.amplification(&level.shapes, loaded()),
            // Boxes may overlap, so their bins cannot be added up.
            _ => Amplification::default(),
        };
        let (candidates, bins) = (total(TouchedRanges::chunk_count), total(TouchedRanges::bin_count));
        Ok(Self {
            chunks,
            candidates,
            bins,
            amplification,
            touches,
            invalid_names: occupied.invalid_names,
            non_empty_chunks: count,
        })
    }
}

/// The coordinate along the leading axis of a value of the chunk attribute.
fn leading_coord(level: &ResolutionLevel, (name, value): &(String, String)) -> Result<i64, VectorError> {
    let unknown = |takes: String| VectorError::bad_param("where", takes);
    let (attribute, values) = level.chunk_attribute().ok_or_else(|| {
        unknown("nothing at this level: its chunks are not split by an attribute".to_owned())
    })?;
    let place = values.iter().position(|known| known == value).filter(|_| attribute == *name);
    let place = place.and_then(|place| i64::try_from(place).ok());
    place.ok_or_else(|| unknown(format!("`{attribute}:` and one of {values:?}")))
}
