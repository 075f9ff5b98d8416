//! [`FillValue`]: the element that absent chunks consist of (Zarr core 3.1, "Fill value").

use bytes::Bytes;

use super::DataType;

/// One element in canonical form (see [`DataType`]), bit for bit: a NaN keeps its payload, `-0.0` is not `0.0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FillValue(Bytes);

impl FillValue {
    /// The element of zero bits, which is also what a v2 `null` reads as.
    #[must_use]
    pub fn zero(data_type: DataType) -> Self {
        Self(Bytes::from(vec![0; data_type.item_bytes()]))
    }

    /// The element's bytes: as many as [`DataType::item_bytes`].
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
