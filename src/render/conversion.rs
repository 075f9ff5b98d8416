//! [`Conversion`]: elements as they are read → elements as they are asked for: some fields of a struct, another byte
//! order.
//!
//! A pure step from items to items, each for itself, so that a range of what comes out needs only the items it lies in.
//! Ours: no specification names fields within fields; `p.x` is numpy's `a["p"]["x"]`.

use std::ops::Range;

use bytes::Bytes;

use super::RenderError;
use crate::metadata::{DataType, Endianness, Field, StructType, SubarrayType};

/// Most fields that a refusal names.
const MOST_NAMED: usize = 20;

/// Bytes of an item that are copied, each unit of so many bytes reversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    at: usize,
    bytes: usize,
    unit: usize,
}

/// How items become other items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    data_type: DataType,
    inner_shape: Vec<u64>,
    source_item_bytes: usize,
    item_bytes: usize,
    runs: Vec<Run>,
}

impl Conversion {
    /// Whole elements of this type, in this byte order.
    #[must_use]
    pub fn whole(data_type: &DataType, endian: Endianness) -> Self {
        let whole = Picked { item: data_type.clone(), shape: Vec::new(), places: vec![0] };
        Self::of(data_type, &[whole], data_type.clone(), endian)
    }

    /// The fields of a struct with these names, separated by commas, in this order. One field is its own elements, whose
    /// dimensions, if it has any, stand behind the array's ([`inner_shape`](Self::inner_shape)); several are a struct.
    ///
    /// # Errors
    /// [`RenderError::NoFields`] if elements have none, [`RenderError::UnknownField`], and [`RenderError::Fields`] if
    /// the fields are no struct together, as where one is asked for twice.
    pub fn fields(data_type: &DataType, names: &str, endian: Endianness) -> Result<Self, RenderError> {
        let DataType::Struct(structure) = data_type else {
            return Err(RenderError::NoFields { data_type: data_type.name() });
        };
        // A name may have commas in it, too.
        let names =
            if pick(data_type, 0, names).is_some() { vec![names] } else { names.split(',').collect() };
        let find = |name: &str| {
            pick(data_type, 0, name)
                .ok_or_else(|| RenderError::UnknownField { name: name.to_owned(), known: known(structure) })
        };
        let picked: Vec<Picked> = names.iter().map(|name| find(name)).collect::<Result<_, _>>()?;
        let types = picked.iter().map(Picked::data_type).collect::<Result<Vec<_>, _>>()?;
        let together = if let [only] = &types[..] {
            only.clone()
        } else {
            let field = |(name, data_type): (&&str, _)| Field { name: (*name).into(), data_type };
            DataType::Struct(StructType::new(names.iter().zip(types).map(field).collect())?)
        };
        Ok(Self::of(data_type, &picked, together, endian))
    }

    fn of(source: &DataType, picked: &[Picked], together: DataType, endian: Endianness) -> Self {
        let (mut data_type, mut inner_shape) = (together, Vec::new());
        while let DataType::Subarray(subarray) = &data_type {
            inner_shape.extend(subarray.shape().iter().copied().map(u64::from));
            data_type = subarray.item().clone();
        }
        let runs = runs(picked, endian);
        let item_bytes = runs.iter().map(|run| run.bytes).sum::<usize>();
        Self { data_type, inner_shape, source_item_bytes: source.item_bytes(), item_bytes, runs }
    }

    /// The type of the elements that come out.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Dimensions that come after the array's own: of the one field that is asked for, if it has any.
    #[must_use]
    pub fn inner_shape(&self) -> &[u64] {
        &self.inner_shape
    }

    /// Whether items stay as they are.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.runs == [Run { at: 0, bytes: self.source_item_bytes, unit: 1 }]
    }

    /// Bytes that come out where so many go in.
    #[must_use]
    pub fn bytes_of(&self, source_bytes: u64) -> u64 {
        (source_bytes / self.source_item_bytes as u64).saturating_mul(self.item_bytes as u64)
    }

    /// The whole items that these bytes of what comes out are made of, as bytes of what goes in.
    #[must_use]
    pub fn source_of(&self, converted: &Range<u64>) -> Range<u64> {
        let (source, item) = (self.source_item_bytes as u64, self.item_bytes as u64);
        (converted.start / item).saturating_mul(source)..converted.end.div_ceil(item).saturating_mul(source)
    }

    /// Converts whole items.
    #[must_use]
    pub fn convert(&self, items: Bytes) -> Bytes {
        if self.is_identity() {
            return items;
        }
        if let [Run { at: 0, bytes, unit }] = self.runs[..]
            && bytes == self.source_item_bytes
        {
            let mut items = Vec::from(items);
            items.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
            return items.into();
        }
        let count = items.len() / self.source_item_bytes;
        let mut converted = Vec::with_capacity(count.saturating_mul(self.item_bytes));
        for item in items.chunks_exact(self.source_item_bytes) {
            for &Run { at, bytes, unit } in &self.runs {
                let start = converted.len();
                // Within the item: runs are made from the places of its fields.
                converted.extend_from_slice(item.get(at..at + bytes).unwrap_or_default());
                if unit > 1 {
                    let run = converted.get_mut(start..).unwrap_or_default();
                    run.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
                }
            }
        }
        converted.into()
    }
}

/// A field that is asked for: elements of one type at some places of the item.
struct Picked {
    item: DataType,
    /// The dimensions of the subarrays that it was found in.
    shape: Vec<u32>,
    places: Vec<usize>,
}

impl Picked {
    fn data_type(&self) -> Result<DataType, RenderError> {
        Ok(match &self.shape[..] {
            [] => self.item.clone(),
            shape => DataType::Subarray(SubarrayType::new(self.item.clone(), shape.to_vec())?),
        })
    }
}

/// Finds a field by its name, or by the names on the way to it with dots between, in an element that begins at `at`.
fn pick(data_type: &DataType, at: usize, name: &str) -> Option<Picked> {
    match data_type {
        DataType::Struct(structure) => structure.fields_at().find_map(|(offset, field)| {
            let behind = name.strip_prefix(&*field.name)?;
            if behind.is_empty() {
                let (item, places) = (field.data_type.clone(), vec![at + offset]);
                return Some(Picked { item, shape: Vec::new(), places });
            }
            pick(&field.data_type, at + offset, behind.strip_prefix('.')?)
        }),
        DataType::Subarray(subarray) => {
            let inner = pick(subarray.item(), 0, name)?;
            let starts = (0..subarray.elements()).map(|place| at + place * subarray.item().item_bytes());
            let places =
                starts.flat_map(|start| inner.places.iter().map(move |place| start + place)).collect();
            Some(Picked { item: inner.item, shape: [subarray.shape(), &inner.shape].concat(), places })
        }
        _ => None,
    }
}

/// The bytes of the fields, neighbours together.
fn runs(picked: &[Picked], endian: Endianness) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for Picked { item, places, .. } in picked {
        let units = match endian {
            Endianness::Little => vec![(item.item_bytes(), 1)],
            Endianness::Big => item.endian_units(),
        };
        for &place in places {
            let mut at = place;
            for &(bytes, unit) in &units {
                match runs.last_mut() {
                    Some(last) if last.unit == unit && last.at + last.bytes == at => last.bytes += bytes,
                    _ => runs.push(Run { at, bytes, unit }),
                }
                at += bytes;
            }
        }
    }
    runs
}

/// The names that a struct has, for people.
fn known(structure: &StructType) -> String {
    let names = structure.fields().iter().take(MOST_NAMED);
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
        assert_eq!(conversion.bytes_of(32), 2 * conversion.convert(items.clone()).len() as u64);
        (data_type, shape, conversion.convert(items).into())
    }

    #[test]
    fn every_number_is_reversed_for_itself() {
        assert_eq!(swapped(&DataType::Int16, &[1, 2, 3, 4]), [2, 1, 4, 3]);
        assert_eq!(swapped(&DataType::Float64, &[1, 2, 3, 4, 5, 6, 7, 8]), [8, 7, 6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn the_halves_of_a_complex_number_and_the_characters_of_a_text_keep_their_places() {
        let text = DataType::FixedLengthUtf32 { code_points: 2 };
        for data_type in [DataType::Complex64, text] {
            assert_eq!(swapped(&data_type, &[1, 2, 3, 4, 5, 6, 7, 8]), [4, 3, 2, 1, 8, 7, 6, 5]);
        }
    }

    #[test]
    fn single_and_raw_bytes_stay_as_they_are() {
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
    fn the_fields_of_a_struct_are_reversed_each_for_itself() {
        let data_type = structure(&[("a", DataType::UInt8), ("b", subarray(DataType::Int16, &[2]))]);
        assert_eq!(swapped(&data_type, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), [1, 3, 2, 5, 4, 6, 8, 7, 10, 9]);
    }

    #[test]
    fn one_field_is_its_elements_and_several_are_a_struct_in_the_order_asked() {
        use Endianness::{Big, Little};
        assert_eq!(fields("a", Little), ("uint8".to_owned(), vec![], vec![0]));
        assert_eq!(fields("p.x", Little), ("int16".to_owned(), vec![], vec![1, 2]));
        assert_eq!(fields("p.x", Big), ("int16".to_owned(), vec![], vec![2, 1]));
        let several = ("struct{a.b: uint16, a: uint8}".to_owned(), vec![], vec![14, 13, 0]);
        assert_eq!(fields("a.b,a", Big), several);
        assert_eq!(fields("p", Little), ("struct{x: int16, y: uint8}".to_owned(), vec![], vec![1, 2, 3]));
    }

    #[test]
    fn a_field_of_several_elements_adds_its_dimensions() {
        let little = Endianness::Little;
        assert_eq!(fields("q.m", little), ("uint8".to_owned(), vec![3], vec![4, 7, 10]));
        assert_eq!(fields("q.n", little), ("uint8".to_owned(), vec![3, 2], vec![5, 6, 8, 9, 11, 12]));
        let q = ("struct{m: uint8, n: uint8[2]}".to_owned(), vec![3], (4..13).collect());
        assert_eq!(fields("q", little), q);
    }

    #[test]
    fn a_name_with_a_comma_is_found_alone() {
        assert_eq!(fields("c,d", Endianness::Little).2, [15]);
    }

    #[test]
    fn what_is_no_field_is_refused_with_the_names_there_are() {
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
    fn a_range_of_what_comes_out_needs_the_items_it_lies_in() {
        let conversion = Conversion::fields(&nested(), "p.x", Endianness::Little).unwrap();
        assert_eq!(conversion.source_of(&(0..0)), 0..0);
        assert_eq!(conversion.source_of(&(1..2)), 0..16);
        assert_eq!(conversion.source_of(&(3..5)), 16..48);
        assert_eq!(conversion.source_of(&(4..6)), 32..48);
    }
}
