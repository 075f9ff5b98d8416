//! [`Conversion`]: changes the byte order of elements, selects fields of a struct, decodes values, or casts numbers.
//!
//! A conversion is pure and maps each item independently, so a range of the output needs only the items it overlaps.
//! The paths of nested fields are our own, since no specification names them: `p.x` is `a["p"]["x"]` in numpy.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::RenderError;
use super::byte_order::reverse_units;
use super::cf_decoding::CfDecoding;
use crate::codec::{Cast, CodecError};
use crate::metadata::{DataType, Endianness, Field, StructType, SubarrayType};

/// Most fields that an error names.
const MAX_NAMED_FIELDS: usize = 20;

/// Bytes of an item to copy. Each unit of `unit_bytes` bytes is reversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ByteRun {
    offset: usize,
    bytes: usize,
    unit_bytes: usize,
}

/// A mapping of items to other items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    data_type: DataType,
    inner_shape: Vec<u64>,
    source_element_bytes: usize,
    element_bytes: usize,
    runs: Vec<ByteRun>,
    /// What elements are decoded to before their bytes are copied.
    decoding: Option<Arc<CfDecoding>>,
    /// The type that numbers are cast to at last.
    recast: Option<Arc<Recast>>,
}

/// A cast of numbers, and their byte order after it.
#[derive(Debug)]
struct Recast {
    cast: Cast,
    from: DataType,
    order: Conversion,
}

// A cast follows from its types.
impl PartialEq for Recast {
    fn eq(&self, other: &Self) -> bool {
        self.from == other.from && self.order == other.order
    }
}

impl Eq for Recast {}

impl Conversion {
    /// Keeps all elements of this type and writes them in this byte order.
    #[must_use]
    pub fn whole(data_type: &DataType, endian: Endianness) -> Self {
        let whole = SelectedField { item: data_type.clone(), shape: Vec::new(), offsets: vec![0] };
        Self::from_selected(data_type, &[whole], data_type.clone(), endian)
    }

    /// Selects the fields of a struct with these names, separated by commas, in this order. A single field yields its
    /// own elements, and its dimensions follow those of the array ([`inner_shape`](Self::inner_shape)). Several fields
    /// yield a struct.
    ///
    /// # Errors
    /// [`RenderError::NoFields`] if the elements are not structs; [`RenderError::UnknownField`];
    /// [`RenderError::Fields`] if the fields cannot be combined, for instance if one is named twice.
    pub fn fields(data_type: &DataType, names: &str, endian: Endianness) -> Result<Self, RenderError> {
        let DataType::Struct(structure) = data_type else {
            return Err(RenderError::NoFields { data_type: data_type.name() });
        };
        // A name may contain commas.
        let names =
            if find_field(data_type, 0, names).is_some() { vec![names] } else { names.split(',').collect() };
        let find = |name: &str| {
            find_field(data_type, 0, name).ok_or_else(|| RenderError::UnknownField {
                name: name.to_owned(),
                known: known_fields(structure),
            })
        };
        let selected: Vec<SelectedField> = names.iter().map(|name| find(name)).collect::<Result<_, _>>()?;
        let types = selected.iter().map(SelectedField::data_type).collect::<Result<Vec<_>, _>>()?;
        let combined = if let [only] = &types[..] {
            only.clone()
        } else {
            let field = |(name, data_type): (&&str, _)| Field { name: (*name).into(), data_type };
            DataType::Struct(StructType::new(names.iter().zip(types).map(field).collect())?)
        };
        Ok(Self::from_selected(data_type, &selected, combined, endian))
    }

    fn from_selected(
        source: &DataType,
        selected: &[SelectedField],
        combined: DataType,
        endian: Endianness,
    ) -> Self {
        let (mut data_type, mut inner_shape) = (combined, Vec::new());
        while let DataType::Subarray(subarray) = &data_type {
            inner_shape.extend(subarray.shape().iter().copied().map(u64::from));
            data_type = subarray.item().clone();
        }
        let runs = byte_runs(selected, endian);
        let element_bytes = runs.iter().map(|run| run.bytes).sum::<usize>();
        let source_element_bytes = source.element_bytes();
        Self {
            data_type,
            inner_shape,
            source_element_bytes,
            element_bytes,
            runs,
            decoding: None,
            recast: None,
        }
    }

    /// The same, whose numbers are cast to a type and written in this byte order. That of the conversion itself must be little.
    ///
    /// # Errors
    /// [`RenderError::NoCast`] if the elements, or those of the type, are no real numbers.
    pub fn cast_to(self, data_type: &DataType, endian: Endianness) -> Result<Self, RenderError> {
        let no_cast = || RenderError::NoCast { from: self.data_type.name(), to: data_type.name() };
        let cast = Cast::new(&self.data_type, data_type).ok_or_else(no_cast)?;
        let element_bytes =
            self.element_bytes / self.data_type.element_bytes().max(1) * data_type.element_bytes();
        let order = Self::whole(data_type, endian);
        let recast = Recast { cast, from: self.data_type, order };
        Ok(Self { data_type: data_type.clone(), element_bytes, recast: Some(Arc::new(recast)), ..self })
    }

    /// Whether items get another size or type, so that both are in memory.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.decoding.is_some() || self.recast.is_some()
    }

    /// Decodes all elements of this type to values, and writes these in this byte order.
    #[must_use]
    pub fn decoded(stored: &DataType, decoding: CfDecoding, endian: Endianness) -> Self {
        let whole = Self::whole(&decoding.data_type(), endian);
        if decoding.is_identity() {
            return whole;
        }
        let source_element_bytes = stored.element_bytes();
        Self { source_element_bytes, decoding: Some(Arc::new(decoding)), ..whole }
    }

    /// The type of the converted elements.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Dimensions that follow those of the array: those of a single selected field.
    #[must_use]
    pub fn inner_shape(&self) -> &[u64] {
        &self.inner_shape
    }

    /// Whether items stay unchanged.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        !self.is_copy()
            && self.runs == [ByteRun { offset: 0, bytes: self.source_element_bytes, unit_bytes: 1 }]
    }

    /// The number of output bytes for a number of source bytes.
    #[must_use]
    pub fn converted_bytes(&self, source_bytes: u64) -> u64 {
        (source_bytes / self.source_element_bytes as u64).saturating_mul(self.element_bytes as u64)
    }

    /// The range of source bytes that a range of output bytes is computed from: whole items.
    #[must_use]
    pub fn source_range(&self, converted: &Range<u64>) -> Range<u64> {
        let (source, item) = (self.source_element_bytes as u64, self.element_bytes as u64);
        (converted.start / item).saturating_mul(source)..converted.end.div_ceil(item).saturating_mul(source)
    }

    /// Converts whole items, and casts them where they are cast.
    ///
    /// # Errors
    /// [`CodecError::NotCast`] for a number that the type cannot represent.
    pub fn try_convert(&self, items: Bytes) -> Result<Bytes, CodecError> {
        let items = self.convert(items);
        match &self.recast {
            None => Ok(items),
            Some(recast) => Ok(recast.order.convert(recast.cast.cast(&items)?)),
        }
    }

    /// Converts whole items, without a cast.
    #[must_use]
    pub fn convert(&self, items: Bytes) -> Bytes {
        if let Some(decoding) = &self.decoding {
            let mut items = decoding.decode(&items);
            for &ByteRun { unit_bytes, .. } in self.runs.iter().filter(|run| run.unit_bytes > 1) {
                reverse_units(&mut items, unit_bytes);
            }
            return items.into();
        }
        if self.runs == [ByteRun { offset: 0, bytes: self.source_element_bytes, unit_bytes: 1 }] {
            return items;
        }
        if let [ByteRun { offset: 0, bytes, unit_bytes }] = self.runs[..]
            && bytes == self.source_element_bytes
        {
            let mut items = Vec::from(items);
            reverse_units(&mut items, unit_bytes);
            return items.into();
        }
        let count = items.len() / self.source_element_bytes;
        let mut converted = Vec::with_capacity(count.saturating_mul(self.element_bytes));
        for item in items.chunks_exact(self.source_element_bytes) {
            for &ByteRun { offset, bytes, unit_bytes } in &self.runs {
                let start = converted.len();
                // Within the item: runs are computed from the offsets of its fields.
                converted.extend_from_slice(item.get(offset..offset + bytes).unwrap_or_default());
                if unit_bytes > 1 {
                    let run = converted.get_mut(start..).unwrap_or_default();
                    reverse_units(run, unit_bytes);
                }
            }
        }
        converted.into()
    }
}

/// A selected field: elements of one type at some offsets in the item.
struct SelectedField {
    item: DataType,
    /// The dimensions of the subarrays around the field.
    shape: Vec<u32>,
    offsets: Vec<usize>,
}

impl SelectedField {
    fn data_type(&self) -> Result<DataType, RenderError> {
        Ok(match &self.shape[..] {
            [] => self.item.clone(),
            shape => DataType::Subarray(SubarrayType::new(self.item.clone(), shape.to_vec())?),
        })
    }
}

/// Finds a field by its path, with dots between the names, in an element that begins at the byte `start`.
fn find_field(data_type: &DataType, start: usize, name: &str) -> Option<SelectedField> {
    match data_type {
        DataType::Struct(structure) => structure.fields_at().find_map(|(offset, field)| {
            let rest = name.strip_prefix(&*field.name)?;
            if rest.is_empty() {
                let (item, offsets) = (field.data_type.clone(), vec![start + offset]);
                return Some(SelectedField { item, shape: Vec::new(), offsets });
            }
            find_field(&field.data_type, start + offset, rest.strip_prefix('.')?)
        }),
        DataType::Subarray(subarray) => {
            let inner = find_field(subarray.item(), 0, name)?;
            let starts =
                (0..subarray.elements()).map(|index| start + index * subarray.item().element_bytes());
            let offsets =
                starts.flat_map(|start| inner.offsets.iter().map(move |offset| start + offset)).collect();
            Some(SelectedField {
                item: inner.item,
                shape: [subarray.shape(), &inner.shape].concat(),
                offsets,
            })
        }
        _ => None,
    }
}

/// The bytes of the fields, with adjacent ones merged.
fn byte_runs(selected: &[SelectedField], endian: Endianness) -> Vec<ByteRun> {
    let mut runs: Vec<ByteRun> = Vec::new();
    for SelectedField { item, offsets, .. } in selected {
        let units = match endian {
            Endianness::Little => vec![(item.element_bytes(), 1)],
            Endianness::Big => item.endian_units(),
        };
        for &start in offsets {
            let mut offset = start;
            for &(bytes, unit_bytes) in &units {
                match runs.last_mut() {
                    Some(last) if last.unit_bytes == unit_bytes && last.offset + last.bytes == offset => {
                        last.bytes += bytes;
                    }
                    _ => runs.push(ByteRun { offset, bytes, unit_bytes }),
                }
                offset += bytes;
            }
        }
    }
    runs
}

/// The names of the fields of a struct, for an error message.
fn known_fields(structure: &StructType) -> String {
    let names = structure.fields().iter().take(MAX_NAMED_FIELDS);
    let names: Vec<&str> = names.map(|field| &*field.name).collect();
    let more = structure.fields().len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::test_elements::{structure, subarray};

    fn swapped(data_type: &DataType, elements: &[u8]) -> Vec<u8> {
        let conversion = Conversion::whole(data_type, Endianness::Big);
        conversion.convert(Bytes::copy_from_slice(elements)).into()
    }

    /// `a` at 0, `p` at 1 (`x` at 1, `y` at 3), `q` at 4 (three of `m` and `n`), `a.b` at 13.
    fn nested() -> DataType {
        let point = structure(&[("x", DataType::Int16), ("y", DataType::UInt8)]);
        let pair = structure(&[("m", DataType::UInt8), ("n", subarray(DataType::UInt8, &[2]))]);
        structure(&[
            ("a", DataType::UInt8),
            ("p", point),
            ("q", subarray(pair, &[3])),
            ("a.b", DataType::UInt16),
            ("c,d", DataType::UInt8),
        ])
    }

    fn fields(names: &str, endian: Endianness) -> (String, Vec<u64>, Vec<u8>) {
        let conversion = Conversion::fields(&nested(), names, endian).unwrap();
        let items: Bytes = (0..16).collect();
        let (data_type, shape) = (conversion.data_type().name(), conversion.inner_shape().to_vec());
        assert_eq!(conversion.converted_bytes(32), 2 * conversion.convert(items.clone()).len() as u64);
        (data_type, shape, conversion.convert(items).into())
    }

    #[test]
    fn the_bytes_of_each_number_are_reversed() {
        assert_eq!(swapped(&DataType::Int16, &[1, 2, 3, 4]), [2, 1, 4, 3]);
        assert_eq!(swapped(&DataType::Float64, &[1, 2, 3, 4, 5, 6, 7, 8]), [8, 7, 6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn complex_parts_and_characters_keep_their_order() {
        let text = DataType::FixedLengthUtf32 { code_points: 2 };
        for data_type in [DataType::Complex64, text] {
            assert_eq!(swapped(&data_type, &[1, 2, 3, 4, 5, 6, 7, 8]), [4, 3, 2, 1, 8, 7, 6, 5]);
        }
    }

    #[test]
    fn single_and_raw_bytes_stay_unchanged() {
        for data_type in [
            DataType::Bool,
            DataType::UInt8,
            DataType::RawBits { bytes: 4 },
            DataType::NullTerminatedBytes { bytes: 4 },
        ] {
            assert!(Conversion::whole(&data_type, Endianness::Big).is_identity());
            assert_eq!(swapped(&data_type, &[1, 2, 3, 4]), [1, 2, 3, 4]);
        }
    }

    #[test]
    fn the_bytes_of_each_field_of_a_struct_are_reversed() {
        let data_type = structure(&[("a", DataType::UInt8), ("b", subarray(DataType::Int16, &[2]))]);
        assert_eq!(swapped(&data_type, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), [1, 3, 2, 5, 4, 6, 8, 7, 10, 9]);
    }

    #[test]
    fn one_field_yields_its_elements_and_several_a_struct_in_the_requested_order() {
        use Endianness::{Big, Little};
        assert_eq!(fields("a", Little), ("uint8".to_owned(), vec![], vec![0]));
        assert_eq!(fields("p.x", Little), ("int16".to_owned(), vec![], vec![1, 2]));
        assert_eq!(fields("p.x", Big), ("int16".to_owned(), vec![], vec![2, 1]));
        let several = ("struct{a.b: uint16, a: uint8}".to_owned(), vec![], vec![14, 13, 0]);
        assert_eq!(fields("a.b,a", Big), several);
        assert_eq!(fields("p", Little), ("struct{x: int16, y: uint8}".to_owned(), vec![], vec![1, 2, 3]));
    }

    #[test]
    fn a_subarray_field_adds_its_dimensions() {
        let little = Endianness::Little;
        assert_eq!(fields("q.m", little), ("uint8".to_owned(), vec![3], vec![4, 7, 10]));
        assert_eq!(fields("q.n", little), ("uint8".to_owned(), vec![3, 2], vec![5, 6, 8, 9, 11, 12]));
        let q = ("struct{m: uint8, n: uint8[2]}".to_owned(), vec![3], (4..13).collect());
        assert_eq!(fields("q", little), q);
    }

    #[test]
    fn a_field_with_a_comma_in_its_name_is_found() {
        assert_eq!(fields("c,d", Endianness::Little).2, [15]);
    }

    #[test]
    fn an_unknown_field_is_rejected_with_the_known_names() {
        for name in ["z", "", "p.z", "a.", "a.c", "p.x.y", ".a", "a, p", "q.", "A"] {
            let error = Conversion::fields(&nested(), name, Endianness::Little).unwrap_err();
            assert!(error.to_string().contains("a, p, q, a.b, c,d"), "{error}");
        }
        let twice = Conversion::fields(&nested(), "a,a", Endianness::Little).unwrap_err();
        assert!(twice.to_string().contains("two fields `a`"), "{twice}");
        let error = Conversion::fields(&DataType::Int8, "a", Endianness::Little).unwrap_err();
        assert_eq!(error, RenderError::NoFields { data_type: "int8".to_owned() });
    }

    #[test]
    fn an_output_range_needs_the_items_it_overlaps() {
        let conversion = Conversion::fields(&nested(), "p.x", Endianness::Little).unwrap();
        assert_eq!(conversion.source_range(&(0..0)), 0..0);
        assert_eq!(conversion.source_range(&(1..2)), 0..16);
        assert_eq!(conversion.source_range(&(3..5)), 16..48);
        assert_eq!(conversion.source_range(&(4..6)), 32..48);
    }
}
