//! Long tables: a row for each element, a column for each dimension with the labels of the elements, and one for each variable.
//!
//! Rows are in C order. They are written a few at a time, so that a table is as long as it may be in little memory.

mod choose;
mod column;
mod text;
mod writer;

pub use choose::{TABLE_FORMATS, TableOptions, table_writer};
pub(super) use column::position_element;
pub use column::{ColumnContent, LabelColumn, LabelSource, TableColumn, TimeUnits, max_label_bytes};
pub(super) use writer::ElementTable;
pub use writer::{TableRows, TableWriter};
