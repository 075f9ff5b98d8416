//! The mapping of data types to Arrow types (Arrow columnar format, "Data Types"; Arrow canonical extension types).
//!
//! | data type | Arrow |
//! |---|---|
//! | integers, floats, `bool` | the same; `int2`, `int4` in `Int8`, `uint2`, `uint4` in `UInt8` |
//! | `bfloat16` and smaller floats | `Float32`, exactly |
//! | complex numbers | `FixedSizeList` of 2: real and imaginary part |
//! | `datetime64` of s, ms, us, ns | `Timestamp` without a time zone |
//! | `datetime64` of days | `Date32` |
//! | `timedelta64` of s, ms, us, ns | `Duration` |
//! | other steps | `Int64`: the number of steps |
//! | `string`, `fixed_length_utf32` | `Utf8` |
//! | JSON values | `Utf8`, the extension type `arrow.json` |
//! | `bytes`, `null_terminated_bytes` | `Binary`, without the zeros that pad it |
//! | raw bits | `FixedSizeBinary` |
//! | `struct` | `Struct` |
//! | subarrays | nested `FixedSizeList` |
//! | arrays of variable length | `List` |
//!
//! `NaT` is null; no other element is. The metadata of every field that is not a struct or a subarray contains its data
//! type as JSON, under `zarr.data_type`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field, Fields, TimeUnit as ArrowUnit};
use serde_json::json;

use crate::metadata::{DataType, StructType, TimeStep, TimeUnit};
use crate::render::size::product;
use crate::render::{RenderError, ResultSchema};

/// The name of the items of a list, as in other implementations.
const ITEM: &str = "item";
/// Bytes for the schema and the end of the stream.
const FRAMING_BYTES: u64 = 4 << 10;

/// An upper bound of the bytes of a stream, derived from type and shape (saturated). Elements of variable length count
/// as empty.
pub(in crate::render) fn max_bytes(schema: &ResultSchema) -> u64 {
    schema.element_count().saturating_mul(max_element_bytes(&schema.data_type)).saturating_add(FRAMING_BYTES)
}

/// The most bytes of an element.
fn max_element_bytes(data_type: &DataType) -> u64 {
    /// Bytes of an offset into a buffer of texts.
    const OFFSET: u64 = 4;
    match data_type {
        DataType::SmallFloat(_) | DataType::BFloat16 => 4,
        DataType::ComplexSmallFloat(_) | DataType::ComplexBFloat16 => 8,
        // One bit marks nulls.
        DataType::DateTime64(_) | DataType::TimeDelta64(_) => 9,
        DataType::FixedLengthUtf32 { .. } | DataType::NullTerminatedBytes { .. } => {
            data_type.element_bytes() as u64 + OFFSET
        }
        DataType::String | DataType::VariableBytes | DataType::VariableArray(_) | DataType::Json => OFFSET,
        DataType::Struct(structure) => {
            structure.fields().iter().map(|field| max_element_bytes(&field.data_type)).sum()
        }
        DataType::Subarray(subarray) => {
            max_element_bytes(subarray.item()).saturating_mul(subarray.elements() as u64)
        }
        other => other.element_bytes() as u64,
    }
}

/// Whether rows of these elements are tensors: Arrow has them of numbers only.
pub(super) fn is_tensor_type(data_type: &DataType) -> bool {
    matches!(arrow_type(data_type), Ok(arrow_type) if arrow_type.is_integer() || arrow_type.is_floating())
        && !matches!(data_type, DataType::DateTime64(_) | DataType::TimeDelta64(_))
}

/// The only column of an array whose rows have this shape.
pub(super) fn column(
    name: &str,
    data_type: &DataType,
    inner: &[u64],
    inner_names: Option<&[Option<String>]>,
) -> Result<Field, RenderError> {
    if inner.is_empty() {
        return field(name, data_type);
    }
    let item = field(ITEM, data_type)?;
    if !is_tensor_type(data_type) {
        let lists = inner.iter().rev().try_fold(item, |item, &length| {
            Ok::<_, RenderError>(Field::new(ITEM, list_type(item, length)?, false))
        });
        return lists.map(|field| field.with_name(name));
    }
    let mut tensor = json!({ "shape": inner });
    let names: Option<Vec<&String>> =
        inner_names.and_then(|names| names.iter().map(Option::as_ref).collect());
    if let (Some(names), Some(tensor)) = (names, tensor.as_object_mut()) {
        tensor.insert("dim_names".to_owned(), json!(names));
    }
    let list = Field::new(name, list_type(item, product(inner))?, false);
    Ok(list.with_metadata(extension("arrow.fixed_shape_tensor", tensor.to_string())))
}

/// The fields of a struct.
pub(super) fn fields(structure: &StructType) -> Result<Fields, RenderError> {
    structure.fields().iter().map(|inner| field(&inner.name, &inner.data_type)).collect()
}

/// A field of this type.
pub(super) fn field(name: &str, data_type: &DataType) -> Result<Field, RenderError> {
    let is_time = matches!(data_type, DataType::DateTime64(_) | DataType::TimeDelta64(_));
    let field = Field::new(name, arrow_type(data_type)?, is_time);
    let mut metadata = match data_type {
        DataType::Struct(_) | DataType::Subarray(_) => return Ok(field),
        DataType::Json => extension("arrow.json", String::new()),
        _ => HashMap::new(),
    };
    metadata.insert("zarr.data_type".to_owned(), data_type.to_metadata().to_string());
    Ok(field.with_metadata(metadata))
}

fn extension(name: &str, metadata: String) -> HashMap<String, String> {
    HashMap::from([
        (arrow_schema::extension::EXTENSION_TYPE_NAME_KEY.to_owned(), name.to_owned()),
        (arrow_schema::extension::EXTENSION_TYPE_METADATA_KEY.to_owned(), metadata),
    ])
}

/// The length of a list, if it fits into 32 bits.
pub(super) fn list_size(length: u64) -> Result<i32, RenderError> {
    i32::try_from(length)
        .map_err(|_too_long| RenderError::TooLarge { bytes: length, limit: i32::MAX.unsigned_abs().into() })
}

/// A list of `length` items.
fn list_type(item: Field, length: u64) -> Result<ArrowType, RenderError> {
    Ok(ArrowType::FixedSizeList(Arc::new(item), list_size(length)?))
}

/// The Arrow unit of a time step; `None` for other steps.
pub(super) fn arrow_unit(step: TimeStep) -> Option<ArrowUnit> {
    match (step.scale_factor(), step.unit()) {
        (1, TimeUnit::Second) => Some(ArrowUnit::Second),
        (1, TimeUnit::Millisecond) => Some(ArrowUnit::Millisecond),
        (1, TimeUnit::Microsecond) => Some(ArrowUnit::Microsecond),
        (1, TimeUnit::Nanosecond) => Some(ArrowUnit::Nanosecond),
        _ => None,
    }
}

/// The Arrow type of elements.
pub(super) fn arrow_type(data_type: &DataType) -> Result<ArrowType, RenderError> {
    Ok(match data_type {
        DataType::Bool => ArrowType::Boolean,
        DataType::Int2 | DataType::Int4 | DataType::Int8 => ArrowType::Int8,
        DataType::Int16 => ArrowType::Int16,
        DataType::Int32 => ArrowType::Int32,
        DataType::Int64 => ArrowType::Int64,
        DataType::UInt2 | DataType::UInt4 | DataType::UInt8 => ArrowType::UInt8,
        DataType::UInt16 => ArrowType::UInt16,
        DataType::UInt32 => ArrowType::UInt32,
        DataType::UInt64 => ArrowType::UInt64,
        DataType::Float16 => ArrowType::Float16,
        DataType::BFloat16 | DataType::SmallFloat(_) | DataType::Float32 => ArrowType::Float32,
        DataType::Float64 => ArrowType::Float64,
        DataType::ComplexFloat16
        | DataType::ComplexBFloat16
        | DataType::ComplexSmallFloat(_)
        | DataType::Complex64
        | DataType::Complex128 => {
            let half = data_type.complex_half().ok_or(RenderError::ElementCount)?;
            list_type(Field::new(ITEM, arrow_type(&half)?, false), 2)?
        }
        DataType::RawBits { bytes } => ArrowType::FixedSizeBinary(list_size((*bytes).into())?),
        DataType::DateTime64(step) => match arrow_unit(*step) {
            Some(unit) => ArrowType::Timestamp(unit, None),
            None if is_day(*step) => ArrowType::Date32,
            None => ArrowType::Int64,
        },
        DataType::TimeDelta64(step) => arrow_unit(*step).map_or(ArrowType::Int64, ArrowType::Duration),
        DataType::FixedLengthUtf32 { .. } | DataType::String | DataType::Json => ArrowType::Utf8,
        DataType::NullTerminatedBytes { .. } | DataType::VariableBytes => ArrowType::Binary,
        DataType::Struct(structure) => ArrowType::Struct(fields(structure)?),
        DataType::Subarray(subarray) => {
            let mut item = field(ITEM, subarray.item())?;
            for &length in subarray.shape().iter().rev() {
                item = Field::new(ITEM, list_type(item, length.into())?, false);
            }
            item.data_type().clone()
        }
        DataType::VariableArray(item) => ArrowType::List(Arc::new(field(ITEM, item)?)),
    })
}

/// Whether a step is one day.
pub(super) fn is_day(step: TimeStep) -> bool {
    (step.scale_factor(), step.unit()) == (1, TimeUnit::Day)
}
