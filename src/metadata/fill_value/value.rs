//! [`FillValue`]: one element, bit for bit.

use bytes::Bytes;

use crate::metadata::DataType;

/// An element in canonical form (see [`DataType`]), bit for bit: a NaN keeps its payload, `-0.0` differs from `0.0`. For a
/// type of variable length, the bytes of the element without offset and length.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FillValue(Bytes);

impl FillValue {
    /// The element with all bits zero or of length 0; `null` in JSON.
    #[must_use]
    pub fn zero(data_type: &DataType) -> Self {
        match data_type {
            DataType::Json => Self(Bytes::from_static(b"null")),
            variable if variable.is_variable() => Self(Bytes::new()),
            fixed => Self(Bytes::from(vec![0; fixed.element_bytes()])),
        }
    }

    /// What elements are where v2 has no fill value, or `null`: zero, as zarr-python reads it, and of times "not a time".
    #[must_use]
    pub fn of_null(data_type: &DataType) -> Self {
        match data_type {
            DataType::DateTime64(_) | DataType::TimeDelta64(_) => {
                Self(Bytes::copy_from_slice(&i64::MIN.to_le_bytes()))
            }
            others => Self::zero(others),
        }
    }

    /// The element's bytes: [`DataType::element_bytes`] of them, unless its length is variable.
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
