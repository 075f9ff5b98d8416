//! The scene of a picture: of which stored level, and of which part of a plane that costs too much.

use std::sync::Arc;

use super::layout::Layout;
use super::query::{DEFAULT_SIDE, ImageQuery};
use super::respond;
use super::scene::{PictureFrame, Refused, Scene};
use super::subject::Subject;
use crate::array::{Array, ReadLimits};
use crate::chunk::AxisRange;
use crate::error::ErrorClass;
use crate::http::problem::Problem;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;

/// The sides of the windows that are shown in place of a plane that costs too much, the largest first.
const WINDOWS: [u64; 8] = [8192, 4096, 2048, 1024, 512, 256, 128, 64];

/// The scene of a layout, and the layout in elements of the finest level. Where the request leaves open which elements are drawn,
/// and all of them cost too much, it is that of the largest window in the middle of the plane that does not.
pub(super) async fn planned(
    state: &AppState,
    target: &NodeTarget,
    query: &ImageQuery,
    subject: Subject,
    layout: Layout,
    frame: PictureFrame,
    limits: &ReadLimits,
) -> Result<(Scene, Layout), Problem> {
    let is_open = !query.selection.selects()
        && query.plane.part_of_plane.is_none()
        && query.plane.level.is_none()
        && matches!(frame, PictureFrame::Within(width, height, _) if width.max(height) <= DEFAULT_SIDE);
    let mut windows = WINDOWS.iter().filter(|_| is_open);
    let (finest, mut shown) = (Arc::clone(&subject.array), layout.clone());
    loop {
        let (subject, scaled) = level(subject.clone(), shown.clone(), target, query, frame).await?;
        match Scene::new(subject, scaled, query, frame, limits) {
            Ok(scene) => return Ok((scene, shown)),
            Err(Refused::Cost(cost)) => match windows.next() {
                Some(side) => shown = centre(&finest, &layout, *side),
                None => return Err(respond::refused(state, Refused::Cost(cost))),
            },
            Err(refused) => return Err(respond::refused(state, refused)),
        }
    }
}

/// The middle of a plane: at most this many rows and columns. A part of a chunk is moved to within the chunk.
fn centre(array: &Array, layout: &Layout, side: u64) -> Layout {
    let middle = |range: AxisRange, dimension: usize| {
        let count = range.count.min(side);
        let start = (range.count - count) / 2;
        let chunk = array.decoded_axes().get(dimension).map(|axis| axis.chunk_containing(range.count / 2));
        let start = match chunk {
            Some(chunk) if count <= chunk.edge => start.clamp(chunk.start, chunk.start + chunk.edge - count),
            _ => start,
        };
        range.part(start.min(range.count - count), count)
    };
    let (rows, columns) = layout.sides();
    layout.clone().with_sides(middle(rows, layout.rows), middle(columns, layout.columns))
}

/// Chooses the stored level of an image that a picture is made from: the smallest that fills the frame.
async fn level(
    subject: Subject,
    layout: Layout,
    target: &NodeTarget,
    query: &ImageQuery,
    frame: PictureFrame,
) -> Result<(Subject, Layout), Problem> {
    match query.plane.level {
        Some(level) if level == subject.level => return Ok((subject, layout)),
        Some(level) if subject.is_image || subject.levels.len() == 1 => {
            return subject.at_level(target, &layout, level).await;
        }
        Some(_) => {
            return Err(Problem::from_class(ErrorClass::InvalidRequest)
                .detail("`level` belongs to the picture of the image; this is the array of one level"));
        }
        None if !subject.is_image => return Ok((subject, layout)),
        None => {}
    }
    for level in (1..subject.levels.len()).rev() {
        // A level that cannot be opened is passed over.
        let Ok((other, scaled)) = subject.at_level(target, &layout, level).await else { continue };
        let (rows, columns) = scaled.sides();
        if frame.is_filled_by(columns.count, rows.count) {
            return Ok((other, scaled));
        }
    }
    Ok((subject, layout))
}
