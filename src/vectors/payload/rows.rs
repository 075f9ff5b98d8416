//! Rows of numbers: positions, and integers of any size.

use bytes::Bytes;
use half::f16;

use super::PayloadError;
use crate::metadata::DataType;

/// The type of this name, if it is one of the numbers that rows are made of.
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

/// Positions of the vertices of a cell: rows of as many floats as there are axes.
#[derive(Clone, Debug)]
pub struct Positions {
    bytes: Bytes,
    kind: DataType,
    dims: usize,
}

impl Positions {
    /// Positions of floats of this type.
    ///
    /// # Errors
    /// [`PayloadError::PartialRow`].
    pub fn new(bytes: Bytes, kind: &DataType, dims: usize) -> Result<Self, PayloadError> {
        let row = kind.item_bytes().saturating_mul(dims).max(1);
        if !bytes.len().is_multiple_of(row) {
            return Err(PayloadError::PartialRow { bytes: bytes.len(), row });
        }
        Ok(Self { bytes, kind: kind.clone(), dims })
    }

    /// How many vertices.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.bytes.len() / self.row_bytes().max(1)
    }

    /// Bytes of a row.
    #[must_use]
    pub fn row_bytes(&self) -> usize {
        self.kind.item_bytes().saturating_mul(self.dims)
    }

    /// The bytes of all rows, little-endian.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The bytes of a row; none if there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[u8] {
        let size = self.row_bytes();
        let start = row.saturating_mul(size);
        self.bytes.get(start..start.saturating_add(size)).unwrap_or_default()
    }

    /// The first rows.
    #[must_use]
    pub fn truncated(&self, rows: usize) -> Self {
        let end = rows.saturating_mul(self.row_bytes()).min(self.bytes.len());
        Self { bytes: self.bytes.slice(..end), kind: self.kind.clone(), dims: self.dims }
    }

    /// A vertex's place on each axis.
    pub fn coordinates(&self, row: usize) -> impl Iterator<Item = f64> {
        self.row(row).chunks_exact(self.kind.item_bytes()).map(|item| decode_float(&self.kind, item))
    }
}

/// A float, widened.
fn decode_float(kind: &DataType, item: &[u8]) -> f64 {
    let value = match kind {
        DataType::Float16 => item.first_chunk().map(|&bytes| f16::from_le_bytes(bytes).to_f64()),
        DataType::Float32 => item.first_chunk().map(|&bytes| f32::from_le_bytes(bytes).into()),
        _ => item.first_chunk().map(|&bytes| f64::from_le_bytes(bytes)),
    };
    value.unwrap_or(f64::NAN)
}

/// Integers of a signed type, or an unsigned one that fits; a rest that is no whole number is left out.
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
