//! The elements of a plane, halved as they are read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt;

use super::scene::Scene;
use crate::array::{ArrayError, ReadContext, Snapshot};
use crate::render::raster::{Plane, Reducer};
use crate::services::state::AppState;

/// Reads the elements of one plane, halved as often as the scene wants. Also how long the halving took.
///
/// # Errors
/// [`ArrayError`].
pub(crate) async fn read_reduced(
    state: &AppState,
    scene: &Scene,
    snapshot: Snapshot,
    context: &Arc<ReadContext>,
) -> Result<(Plane, Duration), ArrayError> {
    let (rows, columns) = scene.layout.sides();
    // In the order of memory.
    let is_transposed = scene.layout.is_transposed();
    let (outer, inner) = if is_transposed { (columns, rows) } else { (rows, columns) };
    let side = |length: u64| usize::try_from(length).map_err(|_too_long| ArrayError::Geometry);
    let mut reducer = Reducer::new(scene.decoding.clone(), scene.method, scene.halvings, side(inner.count)?);
    let mut reducing = Duration::ZERO;
    let bytes = snapshot.plan().response_bytes();
    let mut parts = state.engine.reader.elements(snapshot, 0..bytes, context);
    while let Some(part) = parts.try_next().await? {
        let (items, conversion) = (part.into_items(), scene.conversion.clone());
        let begun = Instant::now();
        let reduced = state.engine.cpu.run_or_inline(items.len() as u64, move || {
            reducer.push(match &conversion {
                Some(conversion) => conversion.convert(items),
                None => items,
            });
            reducer
        });
        reducer = reduced.await?;
        reducing += begun.elapsed();
    }
    let halved = |length: u64| side(crate::render::raster::halved(length, scene.halvings));
    let element_bytes = scene.decoding.data_type().element_bytes();
    let (width, height) = (halved(inner.count)?, halved(outer.count)?);
    let plane = Plane::new(reducer.finish(), element_bytes, width, height).ok_or(ArrayError::Geometry)?;
    let plane = if is_transposed { plane.transposed() } else { plane };
    Ok((plane.flipped(scene.flips_rows, false), reducing))
}
