//! Arrow arrays of elements, with the types that `types` chooses (Arrow columnar format, "Physical Memory Layout").
//!
//! Each element is converted once; the arrays share no memory with the input.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray, ListArray, PrimitiveArray,
    StringArray, StructArray,
};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::{DataType as ArrowType, TimeUnit as ArrowUnit};
use half::{bf16, f16};

use super::types;
use crate::metadata::{DataType, StructType, TimeStep, utf32_text, without_padding};
use crate::render::RenderError;
use crate::render::size::check_bytes;

/// The most bytes of the texts of one batch: Arrow offsets have 32 bits.
const MAX_TEXT_BYTES: usize = i32::MAX as usize;

/// An array of complete elements of a fixed size.
pub(in crate::render) fn fixed_size_column(
    data_type: &DataType,
    items: &[u8],
) -> Result<ArrayRef, RenderError> {
    Ok(match data_type {
        DataType::Bool => Arc::new(items.iter().map(|&byte| Some(byte != 0)).collect::<BooleanArray>()),
        DataType::Int2 | DataType::Int4 | DataType::Int8 => {
            primitive_column::<Int8Type, 1>(items, i8::from_le_bytes)
        }
        DataType::Int16 => primitive_column::<Int16Type, 2>(items, i16::from_le_bytes),
        DataType::Int32 => primitive_column::<Int32Type, 4>(items, i32::from_le_bytes),
        DataType::Int64 => primitive_column::<Int64Type, 8>(items, i64::from_le_bytes),
        DataType::UInt2 | DataType::UInt4 | DataType::UInt8 => {
            primitive_column::<UInt8Type, 1>(items, u8::from_le_bytes)
        }
        DataType::UInt16 => primitive_column::<UInt16Type, 2>(items, u16::from_le_bytes),
        DataType::UInt32 => primitive_column::<UInt32Type, 4>(items, u32::from_le_bytes),
        DataType::UInt64 => primitive_column::<UInt64Type, 8>(items, u64::from_le_bytes),
        DataType::Float16 => primitive_column::<Float16Type, 2>(items, f16::from_le_bytes),
        DataType::BFloat16 => {
            primitive_column::<Float32Type, 2>(items, |bytes| bf16::from_le_bytes(bytes).to_f32())
        }
        DataType::SmallFloat(format) => {
            primitive_column::<Float32Type, 1>(items, |[byte]| format.value(byte))
        }
        DataType::Float32 => primitive_column::<Float32Type, 4>(items, f32::from_le_bytes),
        DataType::Float64 => primitive_column::<Float64Type, 8>(items, f64::from_le_bytes),
        DataType::ComplexFloat16
        | DataType::ComplexBFloat16
        | DataType::ComplexSmallFloat(_)
        | DataType::Complex64
        | DataType::Complex128 => {
            let half = data_type.complex_half().ok_or(RenderError::ElementCount)?;
            nest_lists(fixed_size_column(&half, items)?, &types::arrow_type(data_type)?, 1)?
        }
        DataType::RawBits { bytes } => {
            let size = types::list_size((*bytes).into())?;
            Arc::new(FixedSizeBinaryArray::try_new(size, Buffer::from(items), None)?)
        }
        DataType::DateTime64(step) => datetime_column(*step, items)?,
        DataType::TimeDelta64(step) => timedelta_column(*step, items),
        DataType::FixedLengthUtf32 { .. } => {
            // UTF-8 takes no more bytes than UTF-32.
            check_text_bytes(items.len())?;
            let texts = items.chunks_exact(data_type.element_bytes()).map(utf32_text);
            let texts: Vec<String> =
                texts.collect::<Result<_, _>>().map_err(|number| RenderError::NotText { number })?;
            Arc::new(StringArray::from_iter_values(texts))
        }
        DataType::NullTerminatedBytes { .. } => {
            check_text_bytes(items.len())?;
            let texts = items.chunks_exact(data_type.element_bytes()).map(without_padding);
            Arc::new(BinaryArray::from_iter_values(texts))
        }
        DataType::Struct(structure) => struct_column(structure, items)?,
        DataType::Subarray(subarray) => {
            let elements = fixed_size_column(subarray.item(), items)?;
            nest_lists(elements, &types::arrow_type(data_type)?, subarray.shape().len())?
        }
        DataType::String | DataType::VariableBytes | DataType::VariableArray(_) | DataType::Json => {
            return Err(RenderError::ElementCount);
        }
    })
}

/// An array of elements of variable length.
pub(super) fn variable_size_column(
    data_type: &DataType,
    elements: &[&[u8]],
) -> Result<ArrayRef, RenderError> {
    check_text_bytes(elements.iter().fold(0, |bytes: usize, element| bytes.saturating_add(element.len())))?;
    Ok(match data_type {
        DataType::String | DataType::Json => {
            let texts = elements.iter().map(|text| std::str::from_utf8(text).ok());
            let texts: Vec<&str> = texts.collect::<Option<_>>().ok_or(RenderError::NotUtf8)?;
            Arc::new(StringArray::from_iter_values(texts))
        }
        DataType::VariableBytes => Arc::new(BinaryArray::from_iter_values(elements)),
        DataType::VariableArray(item) => {
            let lengths = elements.iter().map(|element| element.len() / item.element_bytes());
            let offsets = OffsetBuffer::from_lengths(lengths);
            let items = fixed_size_column(item, &elements.concat())?;
            Arc::new(ListArray::try_new(Arc::new(types::field("item", item)?), offsets, items, None)?)
        }
        _ => return Err(RenderError::ElementCount),
    })
}

/// Nests elements in `depth` levels of lists of this type.
pub(super) fn nest_lists(
    elements: ArrayRef,
    lists: &ArrowType,
    depth: usize,
) -> Result<ArrayRef, RenderError> {
    match lists {
        ArrowType::FixedSizeList(item, size) if depth > 0 => {
            let inner = nest_lists(elements, item.data_type(), depth - 1)?;
            Ok(Arc::new(FixedSizeListArray::try_new(Arc::clone(item), *size, inner, None)?))
        }
        _ => Ok(elements),
    }
}

/// `count` lists of this type, in which there is no element.
pub(super) fn empty_lists(lists: &ArrowType, count: usize) -> Result<ArrayRef, RenderError> {
    match lists {
        ArrowType::FixedSizeList(item, size) => {
            let inner = usize::try_from(*size).ok().and_then(|size| size.checked_mul(count));
            let inner = empty_lists(item.data_type(), inner.ok_or(RenderError::ElementCount)?)?;
            let lists = FixedSizeListArray::try_new_with_length(Arc::clone(item), *size, inner, None, count)?;
            Ok(Arc::new(lists))
        }
        // An outer list has no items.
        other => Ok(arrow_array::new_empty_array(other)),
    }
}

/// The fields of a struct array as columns.
pub(super) fn struct_columns(structs: &ArrayRef) -> Result<Vec<ArrayRef>, RenderError> {
    Ok(structs.as_struct_opt().ok_or(RenderError::ElementCount)?.columns().to_vec())
}

fn struct_column(structure: &StructType, items: &[u8]) -> Result<ArrayRef, RenderError> {
    let columns = structure.fields_at().map(|(at, field)| {
        let bytes = at..at + field.data_type.element_bytes();
        let items = items.chunks_exact(structure.element_bytes());
        let field_items: Vec<&[u8]> = items.map(|item| item.get(bytes.clone()).unwrap_or_default()).collect();
        fixed_size_column(&field.data_type, &field_items.concat())
    });
    let columns = columns.collect::<Result<_, _>>()?;
    Ok(Arc::new(StructArray::try_new(types::fields(structure)?, columns, None)?))
}

fn check_text_bytes(bytes: usize) -> Result<(), RenderError> {
    check_bytes(bytes as u64, MAX_TEXT_BYTES as u64)
}

fn primitive_column<T: ArrowPrimitiveType, const N: usize>(
    items: &[u8],
    number: impl Fn([u8; N]) -> T::Native,
) -> ArrayRef {
    let (items, _) = items.as_chunks();
    Arc::new(PrimitiveArray::<T>::from_iter_values(items.iter().map(|&item| number(item))))
}

/// Time steps; `NaT` is null.
fn steps(items: &[u8]) -> impl Iterator<Item = Option<i64>> {
    let (items, _) = items.as_chunks();
    items.iter().map(|&item| i64::from_le_bytes(item)).map(|steps| (steps != i64::MIN).then_some(steps))
}

fn nullable_column<T: ArrowPrimitiveType<Native = i64>>(items: &[u8]) -> ArrayRef {
    Arc::new(steps(items).collect::<PrimitiveArray<T>>())
}

fn datetime_column(step: TimeStep, items: &[u8]) -> Result<ArrayRef, RenderError> {
    Ok(match types::arrow_unit(step) {
        Some(ArrowUnit::Second) => nullable_column::<TimestampSecondType>(items),
        Some(ArrowUnit::Millisecond) => nullable_column::<TimestampMillisecondType>(items),
        Some(ArrowUnit::Microsecond) => nullable_column::<TimestampMicrosecondType>(items),
        Some(ArrowUnit::Nanosecond) => nullable_column::<TimestampNanosecondType>(items),
        None if types::is_day(step) => {
            let day = |day: i64| i32::try_from(day).map_err(|_too_far| RenderError::DateRange { day });
            let days: Vec<Option<i32>> =
                steps(items).map(|steps| steps.map(day).transpose()).collect::<Result<_, _>>()?;
            Arc::new(PrimitiveArray::<Date32Type>::from(days))
        }
        None => nullable_column::<Int64Type>(items),
    })
}

fn timedelta_column(step: TimeStep, items: &[u8]) -> ArrayRef {
    match types::arrow_unit(step) {
        Some(ArrowUnit::Second) => nullable_column::<DurationSecondType>(items),
        Some(ArrowUnit::Millisecond) => nullable_column::<DurationMillisecondType>(items),
        Some(ArrowUnit::Microsecond) => nullable_column::<DurationMicrosecondType>(items),
        Some(ArrowUnit::Nanosecond) => nullable_column::<DurationNanosecondType>(items),
        None => nullable_column::<Int64Type>(items),
    }
}
