//! [`TableWriter`]: what the writers of tables have in common.

use crate::chunk::Elements;
use crate::metadata::DataType;
use crate::render::RenderError;

/// Some rows of a table.
#[derive(Clone, Debug)]
pub struct TableRows {
    /// The place of the first of them in the table.
    pub first: u64,
    /// How many they are.
    pub count: usize,
    /// Their elements in each column that has one for each row, in the order of these columns.
    pub values: Vec<Elements>,
}

/// Writes a table, some rows at a time.
pub trait TableWriter: std::fmt::Debug + Send {
    /// Appends what comes before the rows.
    ///
    /// # Errors
    /// [`RenderError`] if the format cannot have a column.
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError>;

    /// Appends the next rows.
    ///
    /// # Errors
    /// [`RenderError::ElementCount`] if there are fewer elements than rows; otherwise if the format cannot represent an element.
    fn write(&mut self, rows: &TableRows, out: &mut Vec<u8>) -> Result<(), RenderError>;

    /// Bytes of memory that it keeps until the end of the table, with what it appends there.
    fn kept_bytes(&self) -> u64 {
        0
    }

    /// Appends what comes after the rows.
    ///
    /// # Errors
    /// [`RenderError`].
    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError>;
}

/// Elements by their places.
pub(in crate::render) enum ElementTable<'a> {
    Fixed { items: &'a [u8], bytes: usize },
    Variable(Vec<&'a [u8]>),
}

impl<'a> ElementTable<'a> {
    /// The elements of a type.
    pub(in crate::render) fn new(data_type: &DataType, elements: &'a Elements) -> Self {
        if data_type.is_variable() {
            Self::Variable(elements.variable_elements().collect())
        } else {
            Self::Fixed { items: elements.items(), bytes: data_type.element_bytes() }
        }
    }

    /// An element by its place.
    ///
    /// # Errors
    /// [`RenderError::ElementCount`] if there are not as many.
    pub(in crate::render) fn get(&self, place: usize) -> Result<&'a [u8], RenderError> {
        let element = match self {
            Self::Fixed { items, bytes } => {
                let start = place.saturating_mul(*bytes);
                items.get(start..start.saturating_add(*bytes))
            }
            Self::Variable(elements) => elements.get(place).copied(),
        };
        element.ok_or(RenderError::ElementCount)
    }
}
