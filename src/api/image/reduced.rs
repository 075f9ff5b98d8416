//! The elements of a plane, halved as often as its picture wants.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::TryStreamExt;

use super::scene::Scene;
use crate::array::{ArrayError, ReadContext, Snapshot};
use crate::chunk::Elements;
use crate::reduce::halved;
use crate::render::raster::Plane;
use crate::services::state::AppState;

/// Reads the elements of one plane. They are halved as they are read; those of a field after it is selected.
///
/// # Errors
/// [`ArrayError`].
pub(crate) async fn read_reduced(
    state: &AppState,
    scene: &Scene,
    snapshot: Snapshot,
    context: &Arc<ReadContext>,
) -> Result<Plane, ArrayError> {
    let bytes = snapshot.plan().response_bytes();
    let mut parts = state.engine.reader.elements(snapshot, 0..bytes, context).map_ok(Elements::into_items);
    let items = match parts.try_next().await? {
        None => Bytes::new(),
        Some(first) if first.len() as u64 == bytes => first,
        Some(first) => {
            let mut items = Vec::new();
            let mut next = Some(first);
            while let Some(part) = next {
                let append = move || {
                    items.reserve_exact(
                        usize::try_from(bytes).unwrap_or_default().saturating_sub(items.len()),
                    );
                    items.extend_from_slice(&part);
                    items
                };
                items = state.engine.cpu.run(append).await?;
                next = parts.try_next().await?;
            }
            items.into()
        }
    };
    let started = Instant::now();
    let (conversion, reduction) = (scene.conversion.clone(), Arc::clone(&scene.reduction));
    let lengths = scene.layout.plane(None);
    let lengths: Vec<usize> = lengths.axes().iter().map(|axis| side(axis.count)).collect::<Result<_, _>>()?;
    let items = state.engine.cpu.run_or_inline(bytes, move || match &conversion {
        Some(conversion) => reduction.apply(&conversion.convert(items), &lengths).into(),
        None => items,
    });
    let items: Bytes = items.await?;
    context.add_encode_time(started);
    let (rows, columns) = scene.layout.sides();
    // In the order of memory.
    let is_transposed = scene.layout.is_transposed();
    let (outer, inner) = if is_transposed { (columns, rows) } else { (rows, columns) };
    let (width, height) =
        (side(halved(inner.count, scene.halvings))?, side(halved(outer.count, scene.halvings))?);
    let element_bytes = scene.decoding.data_type().element_bytes();
    let plane = Plane::new(items, element_bytes, width, height).ok_or(ArrayError::Geometry)?;
    let plane = if is_transposed { plane.transposed() } else { plane };
    Ok(plane.flipped(scene.flips_rows, false))
}

/// A length of a plane that fits in memory.
pub(super) fn side(length: u64) -> Result<usize, ArrayError> {
    usize::try_from(length).map_err(|_too_long| ArrayError::Geometry)
}
