//! [`TableColumn`]: the name and the type of a column, and where its elements are from.

use crate::chunk::{AxisRange, Elements};
use crate::metadata::DataType;
use crate::render::json::max_text_bytes;

/// The most bytes of what separates a cell from others, and from its name.
const BETWEEN_BYTES: u64 = 8;

/// A column of a table.
#[derive(Clone, Debug)]
pub struct TableColumn {
    /// Its name, which no other column has.
    pub name: String,
    /// The type of its elements.
    pub data_type: DataType,
    /// What its numbers count, if they are times for which the format has no type.
    pub units: Option<TimeUnits>,
    /// Where its elements are from.
    pub content: ColumnContent,
}

/// What numbers count that are times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeUnits {
    /// Such as `days since 2000-01-01`.
    pub units: String,
    /// The name of the calendar.
    pub calendar: String,
}

/// Where the elements of a column are from.
#[derive(Clone, Debug)]
pub enum ColumnContent {
    /// There is one for each row.
    Values,
    /// Labels, which repeat themselves.
    Labels(LabelColumn),
}

/// The labels of a dimension as a column.
#[derive(Clone, Debug)]
pub struct LabelColumn {
    /// The labels.
    pub labels: LabelSource,
    /// The number of labels. After the last comes the first again.
    pub count: u64,
    /// The rows in a row that have the same label.
    pub repeat: u64,
}

/// The labels of a dimension.
#[derive(Clone, Debug)]
pub enum LabelSource {
    /// Elements of the column's type.
    Elements(Elements),
    /// Positions as `int64`.
    Positions(AxisRange),
}

impl TableColumn {
    /// Bytes of its longest label, if it has labels of variable length.
    #[must_use]
    pub fn longest_label(&self) -> u64 {
        let ColumnContent::Labels(LabelColumn { labels: LabelSource::Elements(labels), .. }) = &self.content
        else {
            return 0;
        };
        if !self.data_type.is_variable() {
            return 0;
        }
        labels.variable_elements().map(<[u8]>::len).max().unwrap_or(0) as u64
    }

    /// Bytes of its labels in a table of this many rows, if they are of variable length; saturates.
    #[must_use]
    pub fn label_bytes(&self, rows: u64) -> u128 {
        let ColumnContent::Labels(LabelColumn { labels: LabelSource::Elements(labels), count, .. }) =
            &self.content
        else {
            return 0;
        };
        if !self.data_type.is_variable() {
            return 0;
        }
        // Every label is in as many rows as another.
        let once: u128 = labels.variable_elements().map(|label| label.len() as u128).sum();
        once.saturating_mul((rows / (*count).max(1)).into())
    }

    /// The most bytes of a cell in CSV, about; of texts of variable length those of an empty one.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        // Quotes are written twice, which numbers have none of.
        let times = if DataType::NUMPY_REALS.contains(&self.data_type) { 1 } else { 2 };
        max_text_bytes(&self.data_type).saturating_mul(times).saturating_add(BETWEEN_BYTES)
    }

    /// The most bytes of a cell with its name in JSON, about.
    #[must_use]
    pub fn max_named_bytes(&self) -> u64 {
        // A character of a name takes up to six bytes.
        let name = (self.name.len() as u64).saturating_mul(6);
        self.max_bytes().saturating_add(name)
    }
}

impl LabelColumn {
    /// The place of a row's label among the labels.
    pub(in crate::render) fn place(&self, row: u64) -> u64 {
        (row / self.repeat.max(1)) % self.count.max(1)
    }
}

/// The most bytes of a label of this type as text; of variable length, those of an empty one.
#[must_use]
pub fn max_label_bytes(data_type: &DataType) -> u64 {
    max_text_bytes(data_type)
}

/// A position as an element.
pub(in crate::render) fn position_element(range: &AxisRange, place: u64) -> [u8; 8] {
    i64::try_from(range.at(place)).unwrap_or(i64::MAX).to_le_bytes()
}
