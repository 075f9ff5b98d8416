//! [`FillValue`]: one element, bit for bit.

use bytes::Bytes;

use crate::metadata::DataType;

/// One element in canonical form (see [`DataType`]), bit for bit: a NaN keeps its payload, `-0.0` is not `0.0`. Of a type
/// of variable length, the bytes that belong to the element and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FillValue(Bytes);

impl FillValue {
    /// The element of zero bits or of no length, which is also what a v2 `null` reads as.
    #[must_use]
    pub fn zero(data_type: &DataType) -> Self {
        match data_type {
            DataType::Json => Self(Bytes::from_static(b"null")),
            variable if variable.is_variable() => Self(Bytes::new()),
            fixed => Self(Bytes::from(vec![0; fixed.item_bytes()])),
        }
    }

    /// The element's bytes: as many as [`DataType::item_bytes`], unless its length is variable.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A fill value from an element's canonical bytes.
    #[must_use]
    pub fn from_bytes(element: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(element))
    }
}
