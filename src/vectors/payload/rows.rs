//! [`Positions`]: rows of coordinates; and integers of any size.

use bytes::Bytes;
use half::f16;

use super::PayloadError;
use crate::metadata::DataType;

/// The numeric data type of this name, if payloads may have it.
#[must_use]
pub fn number_type(name: &str) -> Option<DataType> {
    Some(match name {
        "bool" => DataType::Bool,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "int64" => DataType::Int64,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        "float16" => DataType::Float16,
        "float32" => DataType::Float32,
        "float64" => DataType::Float64,
        _ => return None,
    })
}

/// The positions of the vertices of a cell: rows of one float for each axis.
#[derive(Clone, Debug)]
pub struct Positions {
    bytes: Bytes,
    kind: DataType,
    dims: usize,
}

impl Positions {
    /// Positions of floats of the data type `kind`, with `dims` coordinates each.
    ///
    /// # Errors
    /// [`PayloadError::PartialRow`].
    pub fn new(bytes: Bytes, kind: &DataType, dims: usize) -> Result<Self, PayloadError> {
        let row = kind.element_bytes().saturating_mul(dims).max(1);
        if !bytes.len().is_multiple_of(row) {
            return Err(PayloadError::PartialRow { bytes: bytes.len(), row });
        }
        Ok(Self { bytes, kind: kind.clone(), dims })
    }

    /// The number of vertices.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.bytes.len() / self.row_bytes().max(1)
    }

    /// The size of a row in bytes.
    #[must_use]
    pub fn row_bytes(&self) -> usize {
        self.kind.element_bytes().saturating_mul(self.dims)
    }

    /// The bytes of all rows, little-endian.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The bytes of a row; empty if the row does not exist.
    #[must_use]
    pub fn row(&self, row: usize) -> &[u8] {
        let size = self.row_bytes();
        let start = row.saturating_mul(size);
        self.bytes.get(start..start.saturating_add(size)).unwrap_or_default()
    }

    /// The first `rows` rows, without a copy.
    #[must_use]
    pub fn truncated(&self, rows: usize) -> Self {
        let end = rows.saturating_mul(self.row_bytes()).min(self.bytes.len());
        Self { bytes: self.bytes.slice(..end), kind: self.kind.clone(), dims: self.dims }
    }

    /// The coordinates of a vertex; empty if the row does not exist.
    pub fn coordinates(&self, row: usize) -> impl Iterator<Item = f64> {
        self.row(row).chunks_exact(self.kind.element_bytes()).map(|item| decode_float(&self.kind, item))
    }
}

/// A float, widened to 64 bits.
fn decode_float(kind: &DataType, item: &[u8]) -> f64 {
    let value = match kind {
        DataType::Float16 => item.first_chunk().map(|&bytes| f16::from_le_bytes(bytes).to_f64()),
        DataType::Float32 => item.first_chunk().map(|&bytes| f32::from_le_bytes(bytes).into()),
        _ => item.first_chunk().map(|&bytes| f64::from_le_bytes(bytes)),
    };
    value.unwrap_or(f64::NAN)
}

/// Decodes little-endian integers of the type `kind`; `uint64` values above the range of `i64` are clamped, and an
/// incomplete last number is dropped.
#[must_use]
pub fn decode_integers(bytes: &[u8], kind: &DataType) -> Vec<i64> {
    fn all<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> i64) -> Vec<i64> {
        let (items, _) = bytes.as_chunks();
        items.iter().map(|&item| number(item)).collect()
    }
    match kind {
        DataType::Int8 => all(bytes, |item| i8::from_le_bytes(item).into()),
        DataType::UInt8 => all(bytes, |item| u8::from_le_bytes(item).into()),
        DataType::Int16 => all(bytes, |item| i16::from_le_bytes(item).into()),
        DataType::UInt16 => all(bytes, |item| u16::from_le_bytes(item).into()),
        DataType::Int32 => all(bytes, |item| i32::from_le_bytes(item).into()),
        DataType::UInt32 => all(bytes, |item| u32::from_le_bytes(item).into()),
        DataType::UInt64 => all(bytes, |item| i64::try_from(u64::from_le_bytes(item)).unwrap_or(i64::MAX)),
        _ => all(bytes, i64::from_le_bytes),
    }
}
