//! The coordinates of dimensions: which array has the labels of a dimension, and its labels in memory.

mod find;
mod label_selection;
mod read;

pub(crate) use find::coordinate_of;
pub(crate) use label_selection::{LabelRequest, LabelSelection, UsedLabels};
pub(crate) use read::ReadCoordinate;
