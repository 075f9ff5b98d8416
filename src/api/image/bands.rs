//! A picture that is drawn band by band as its elements are read, so that no more of them is in memory than is being read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::TryStreamExt;

use super::reduced::side;
use super::scene::Scene;
use crate::api::data::error::ElementsError;
use crate::array::{ArrayError, ReadContext, Snapshot};
use crate::reduce::halved;
use crate::render::RenderError;
use crate::render::raster::{Decoding, Picture, Plane, Style};
use crate::services::state::AppState;

/// A picture in the making.
struct Bands {
    style: Style,
    decoding: Decoding,
    width: usize,
    height: usize,
    /// The bytes of a row.
    row: usize,
    /// The beginning of a row that was not read to its end.
    rest: Bytes,
    picture: Option<Picture>,
}

/// Reads and draws the only plane of a scene, and how long drawing took.
///
/// # Errors
/// Those of reading.
pub(super) async fn draw_in_bands(
    state: &AppState,
    scene: &Scene,
    snapshot: Snapshot,
    style: Style,
    context: &Arc<ReadContext>,
) -> Result<(Picture, Duration), ElementsError> {
    let (rows, columns) = scene.layout.sides();
    let (width, height) =
        (side(halved(columns.count, scene.halvings))?, side(halved(rows.count, scene.halvings))?);
    let decoding = scene.decoding.clone();
    let row = width.checked_mul(decoding.data_type().element_bytes()).ok_or(ArrayError::Geometry)?;
    let mut bands = Bands { style, decoding, width, height, row, rest: Bytes::new(), picture: None };
    let bytes = snapshot.plan().response_bytes();
    let mut parts = state.engine.reader.elements(snapshot, 0..bytes, context);
    let mut drawing = Duration::ZERO;
    while let Some(part) = parts.try_next().await? {
        let begun = Instant::now();
        let items = part.into_items();
        let work = move || {
            bands.add(items)?;
            Some(bands)
        };
        let drawn = state.engine.cpu.spawn_background(work).await.map_err(ArrayError::from)?;
        bands = drawn.ok_or(RenderError::ElementCount)?;
        drawing += begun.elapsed();
    }
    let picture = bands.picture.filter(|picture| usize::try_from(picture.height()) == Ok(height));
    Ok((picture.ok_or(RenderError::ElementCount)?, drawing))
}

impl Bands {
    /// Draws the rows that end in these elements; `None` if they do not fit the picture.
    fn add(&mut self, items: Bytes) -> Option<()> {
        let items =
            if self.rest.is_empty() { items } else { [self.rest.as_ref(), items.as_ref()].concat().into() };
        let rows = items.len().checked_div(self.row)?;
        // A copy, which does not hold the elements before it.
        self.rest = Bytes::copy_from_slice(&items[rows * self.row..]);
        if rows == 0 {
            return Some(());
        }
        let element = self.row / self.width;
        let plane = Plane::new(items.slice(..rows * self.row), element, self.width, rows)?;
        let band = self.style.draw(&[(plane, self.decoding.clone())])?;
        self.picture = Some(match self.picture.take() {
            None => band.with_capacity_for(self.height),
            Some(above) => above.above(band)?,
        });
        Some(())
    }
}
