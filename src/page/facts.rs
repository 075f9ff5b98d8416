//! Numbers and shapes as people read them, and the facts about an array that pages show.

use super::cost::PageLimits;
use crate::array::Array;
use crate::conventions::is_number;
use crate::metadata::{ArrayMetadata, DataType};
use crate::reduce::CfValues;

/// Longest text of a value in a cell, in characters.
const MOST_VALUE: usize = 60;
/// Longest name, in characters.
const MOST_NAME: usize = 120;

/// A size in the largest binary unit of which it has at least one, with one decimal below ten.
pub(super) fn bytes_text(bytes: u128) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 0;
    let mut tenths = bytes.saturating_mul(10);
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or("B");
    if unit == 0 || tenths >= 100 {
        format!("{} {name}", tenths / 10)
    } else {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    }
}

/// A whole number with a thin space between groups of three digits.
pub(super) fn count_text(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && digits.len() > 4 {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// `2 × 3 × 4`, or in words that there are no dimensions.
pub(super) fn shape_text(shape: &[u64]) -> String {
    if shape.is_empty() {
        return "one element".to_owned();
    }
    shape.iter().map(|&length| count_text(length.into())).collect::<Vec<_>>().join(" × ")
}

/// The first `most` characters of a text, with a sign if there are more.
pub(super) fn cut(text: &str, most: usize) -> String {
    let mut characters = text.chars();
    let mut cut: String = characters.by_ref().take(most).collect();
    if characters.next().is_some() {
        cut.push('…');
    }
    cut
}

/// A name of a node, dimension or unit, cut to a length that a page can show.
pub(super) fn name(text: &str) -> String {
    cut(text, MOST_NAME)
}

/// How the elements of a type can be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drawn {
    /// Numbers.
    Numbers,
    /// Complex numbers, by their magnitude.
    Complex,
    /// Text, structs and other values: only a table shows them.
    Text,
}

impl Drawn {
    pub(super) fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Complex64 | DataType::Complex128 => Self::Complex,
            // The scripts know no other halves.
            complex if complex.complex_half().is_some() => Self::Text,
            DataType::DateTime64(_) | DataType::TimeDelta64(_) => Self::Numbers,
            number if is_number(number) => Self::Numbers,
            _ => Self::Text,
        }
    }
}

/// The facts about an array that pages show.
#[derive(Clone, Debug)]
pub(super) struct ShownArray {
    pub(super) shape: Vec<u64>,
    /// A name for each dimension: its own, or `dim_0` and so on.
    pub(super) names: Vec<String>,
    /// Whether each name is the dimension's own.
    pub(super) is_named: Vec<bool>,
    pub(super) data_type: DataType,
    pub(super) type_name: String,
    /// How its elements become numbers.
    pub(super) values: CfValues,
    pub(super) drawn: Drawn,
    pub(super) item_bytes: u64,
    pub(super) zarr_format: u8,
    /// The shape of stored chunks; `None` if they differ or the array cannot be read.
    pub(super) chunk_shape: Option<Vec<u64>>,
    /// The shape of the chunks that are decoded on their own.
    pub(super) decoded_shape: Option<Vec<u64>>,
    pub(super) grid_shape: Vec<u64>,
    pub(super) is_sharded: bool,
    pub(super) fill: String,
    /// What the server reads of it for one request.
    pub(super) limits: PageLimits,
    /// Why its elements cannot be read, if so.
    pub(super) unreadable: Option<String>,
}

impl ShownArray {
    /// The facts about an array; `bound` is the array, or why it cannot be read.
    pub(super) fn of(metadata: &ArrayMetadata, bound: Result<&Array, &str>, limits: PageLimits) -> Self {
        let own =
            |dim: usize| metadata.dimension_names.as_ref()?.get(dim)?.as_deref().filter(|n| !n.is_empty());
        let rank = metadata.shape.len();
        let array = bound.ok();
        let item_bytes =
            if metadata.data_type.is_variable() { 16 } else { metadata.data_type.element_bytes() };
        Self {
            shape: metadata.shape.clone(),
            names: (0..rank).map(|dim| own(dim).map_or_else(|| format!("dim_{dim}"), name)).collect(),
            is_named: (0..rank).map(|dim| own(dim).is_some()).collect(),
            data_type: metadata.data_type.clone(),
            values: values_of(metadata),
            type_name: cut(&metadata.data_type.name(), MOST_NAME),
            drawn: Drawn::of(&metadata.data_type),
            item_bytes: item_bytes as u64,
            zarr_format: metadata.zarr_format.number(),
            chunk_shape: array.and_then(|array| array.grid().chunk_shape()),
            decoded_shape: array.and_then(Array::decoded_chunk_shape),
            grid_shape: array.map(|array| array.grid().grid_shape()).unwrap_or_default(),
            is_sharded: array.is_some_and(Array::is_sharded),
            fill: cut(&plain(&metadata.fill_value.to_json(&metadata.data_type)), MOST_VALUE),
            limits,
            unreadable: bound.err().map(|error| cut(error, 400)),
        }
    }

    /// The facts about a field of a struct, if a request names one: as they are stored.
    pub(super) fn at_field(mut self, data_type: &DataType, name: Option<&str>) -> Self {
        let DataType::Struct(structure) = data_type else { return self };
        if let Some(field) = structure.fields().iter().find(|field| Some(&*field.name) == name) {
            self.type_name = cut(&field.data_type.name(), MOST_NAME);
            self.drawn = Drawn::of(&field.data_type);
            self.values = CfValues::stored(&field.data_type);
            self.data_type = field.data_type.clone();
        }
        self
    }

    /// Whether its values differ from the numbers that are stored: these are packed, or some stand for missing values.
    pub(super) fn is_encoded(&self) -> bool {
        let is_missing = |number: &f64| !number.is_nan();
        self.values.packing().is_some() || self.values.missing_numbers().iter().any(is_missing)
    }

    /// Elements of the array.
    pub(super) fn elements(&self) -> u128 {
        product(&self.shape)
    }

    /// Bytes of all elements, decoded.
    pub(super) fn bytes(&self) -> u128 {
        self.elements().saturating_mul(self.item_bytes.into())
    }

    /// Stored chunks of the grid.
    pub(super) fn chunks(&self) -> u128 {
        product(&self.grid_shape)
    }

    /// Decoded bytes of one of the chunks that are decoded on their own; `None` if they differ.
    pub(super) fn chunk_bytes(&self) -> Option<u128> {
        Some(product(self.decoded_shape.as_deref()?).saturating_mul(self.item_bytes.into()))
    }
}

/// How elements become numbers. Elements of a type that has no numbers are as they are stored.
fn values_of(metadata: &ArrayMetadata) -> CfValues {
    CfValues::of_metadata(metadata).unwrap_or_else(|_too_many| CfValues::stored(&metadata.data_type))
}

/// The product of lengths.
pub(super) fn product(lengths: &[u64]) -> u128 {
    lengths.iter().fold(1, |product: u128, &length| product.saturating_mul(length.into()))
}

/// A JSON value as text: strings without quotes.
pub(super) fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_are_short_and_exact_enough() {
        for (bytes, text) in
            [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (10 << 20, "10 MiB")]
        {
            assert_eq!(bytes_text(bytes), text);
        }
        assert_eq!(count_text(9999), "9999");
        assert_eq!(count_text(25_939), "25\u{202f}939");
        assert_eq!(count_text(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(cut("añb", 2), "añ…");
    }
}
