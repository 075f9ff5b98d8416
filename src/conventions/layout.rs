//! The levels of a group according to the Zarr convention `multiscales` (its `layout`).

use serde_json::Value;

use super::values::{exactly, numbers, objects, path};
use crate::metadata::Attributes;

/// A level of a layout.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LayoutLevel {
    /// The path of its node.
    pub(super) asset: String,
    /// Its scale relative to the level it was derived from.
    pub(super) scale: Option<Vec<f64>>,
    /// The affine transform of its elements, if it has its own.
    pub(super) transform: Option<[f64; 6]>,
}

/// The levels that attributes declare; `None` without a layout.
pub(super) fn layout(attributes: &Attributes) -> Option<Vec<LayoutLevel>> {
    let multiscales = attributes.get("multiscales")?;
    let layout = multiscales.get("layout").filter(|layout| layout.is_array());
    let level = |level: &super::values::Members| {
        let transform = level.get("transform").and_then(Value::as_object);
        Some(LayoutLevel {
            asset: path(level.get("asset"))?,
            scale: numbers(transform.and_then(|transform| transform.get("scale"))),
            transform: exactly(level.get("spatial:transform")),
        })
    };
    Some(objects(Some(layout?)).filter_map(level).collect())
}
