//! [`StructField`]: the field of a struct that statistics are of.

use std::sync::Arc;

use bytes::Bytes;

use crate::metadata::{DataType, Endianness};
use crate::render::{Conversion, RenderError};

/// A field of a struct.
#[derive(Clone, Debug)]
pub(crate) struct StructField {
    /// Its path, with dots between the names of nested fields.
    path: Arc<str>,
    conversion: Arc<Conversion>,
}

impl StructField {
    /// The field at a path in elements of a type.
    ///
    /// # Errors
    /// [`RenderError`] if the type has no such field.
    pub(crate) fn new(data_type: &DataType, path: &str) -> Result<Self, RenderError> {
        let conversion = Arc::new(Conversion::fields(data_type, path, Endianness::Little)?);
        Ok(Self { path: path.into(), conversion })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The type of its numbers.
    pub(crate) fn data_type(&self) -> &DataType {
        self.conversion.data_type()
    }

    /// Whether each element has one number of it.
    pub(crate) fn is_single(&self) -> bool {
        self.conversion.inner_shape().is_empty()
    }

    /// Its numbers in whole elements.
    pub(crate) fn of(&self, elements: Bytes) -> Bytes {
        self.conversion.convert(elements)
    }
}
