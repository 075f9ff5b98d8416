//! The labels of coordinates, as far as pages show what they say. A page is complete without them, so it does not wait long.

use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use tokio::time::{Instant, timeout_at};

use crate::array::{Array, OpenNode};
use crate::chunk::AxisRange;
use crate::conventions::coordinate_axis;
use crate::labels::DimensionLabels;
use crate::page::ChildRow;
use crate::services::coordinates::ReadCoordinate;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;

/// Longest wait for the labels of all coordinates of a page.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// Most coordinates whose labels are read.
const MAX_COORDINATES: usize = 32;

/// Reads the labels of coordinates for a page, until it has waited long enough.
#[derive(Clone, Copy)]
pub(super) struct CoordinateReader<'a> {
    state: &'a AppState,
    head: &'a Parts,
    deadline: Instant,
}

impl<'a> CoordinateReader<'a> {
    /// A reader for the page that a request asks for.
    pub(super) fn new(state: &'a AppState, head: &'a Parts) -> Self {
        Self { state, head, deadline: Instant::now() + MAX_WAIT }
    }

    /// Adds from where to where the labels reach to those of the nodes of a group that are coordinates.
    pub(super) async fn add_extents(self, target: &NodeTarget, rows: &mut [ChildRow]) {
        let coordinates = rows.iter_mut().filter(|row| row.is_coordinate()).take(MAX_COORDINATES);
        // One after the other: a request that waits for memory must hold none.
        for row in coordinates {
            let Some((_, Ok(array))) = &row.array else { continue };
            let node = timeout_at(self.deadline, target.opener.find(array.path())).await;
            let Ok(Ok(Some(node))) = node else { continue };
            row.extent = self.asked(&row.item.name, &node, array, |labels| labels.extent().clone()).await;
        }
    }

    /// The axis of a map that a coordinate goes along, `X` or `Y`, if its labels are equally far apart.
    pub(super) async fn map_axis(self, node: &OpenNode, array: &Arc<Array>) -> Option<&'static str> {
        let name = array.path().name();
        let axis = coordinate_axis(name, &array.metadata().attributes);
        let axis = axis.filter(|axis| matches!(*axis, "X" | "Y"))?;
        let is_regular =
            |labels: &DimensionLabels| labels.regular(&AxisRange::full(labels.len() as u64)).is_some();
        self.asked(name, node, array, is_regular).await.filter(|is_regular| *is_regular).map(|_| axis)
    }

    /// What the labels of a coordinate say; `None` if they cannot be read in time.
    async fn asked<T: Send + 'static>(
        self,
        name: &str,
        node: &OpenNode,
        array: &Arc<Array>,
        ask: impl FnOnce(&DimensionLabels) -> T + Send + 'static,
    ) -> Option<T> {
        let reading = ReadCoordinate::of_array(self.state, self.head, name, node, array);
        let read = timeout_at(self.deadline, reading).await.ok()?.ok()?;
        let (labels, length) = (read.coordinate, array.metadata().shape.iter().product());
        self.state.engine.cpu.run_or_inline(length, move || ask(&labels)).await.ok()
    }
}
