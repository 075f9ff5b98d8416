//! [`ArrowColumns`]: the columns that the elements of a selection have, compared with the schema of a stream.
//!
//! `render::arrow` has the table of types. Names of the columns count for structs alone; what is said in metadata does not count.

use arrow_ipc::{DateUnit, Endianness, Field, Precision, Schema, Type};

use super::batch::ArrowBatch;
use super::malformed::malformed;
use super::time_step::{is_day, time_unit};
use crate::metadata::DataType;
use crate::parse::error::ParseError;
use crate::parse::variable::VariableElements;

/// How elements lie in the columns of a batch.
pub(super) struct ArrowColumns {
    /// The rows of all batches together.
    pub(super) rows: u64,
    /// The lengths of the lists around each element; `None` if there is a column for each field of a struct.
    lists: Option<Vec<u64>>,
}

impl ArrowColumns {
    /// The columns of elements of a shape in a stream with this schema.
    ///
    /// # Errors
    /// [`ParseError::DataType`], [`ParseError::Shape`].
    pub(super) fn of(data_type: &DataType, shape: &[u64], schema: &Schema) -> Result<Self, ParseError> {
        if schema.endianness() != Endianness::Little {
            return Err(malformed("its byte order is not little-endian"));
        }
        let (rows, inner) = shape.split_first().map_or((1, &[][..]), |(rows, inner)| (*rows, inner));
        let fields: Vec<Field> = schema.fields().into_iter().flatten().collect();
        if let (DataType::Struct(structure), []) = (data_type, inner) {
            let names = structure.fields().iter().map(|field| (&*field.name, &field.data_type));
            return if are_fields(&fields, names) {
                Ok(Self { rows, lists: None })
            } else {
                Err(type_mismatch(data_type, "columns that are not its fields in their order"))
            };
        }
        let &[column] = &*fields else {
            return Err(type_mismatch(data_type, &format!("{} columns", fields.len())));
        };
        let product = inner.iter().fold(1_u64, |product, length| product.saturating_mul(*length));
        // Rows of numbers are tensors, which are one list.
        let ways = [Some(inner.to_vec()), (!inner.is_empty()).then(|| vec![product])];
        let mut in_lists = None;
        for lists in ways.into_iter().flatten() {
            let Some(item) = unwrapped(column, &lists) else { continue };
            if is_type(item, data_type) {
                return Ok(Self { rows, lists: Some(lists) });
            }
            in_lists = Some(item);
        }
        Err(match in_lists {
            Some(item) => type_mismatch(data_type, item.type_type().variant_name().unwrap_or("unknown")),
            None => ParseError::Nesting(format!(
                "a row of the stream must be lists of fixed size with the lengths {inner:?}, or one with {product} items"
            )),
        })
    }

    /// The elements of a fixed size in a batch, in canonical form.
    ///
    /// # Errors
    /// [`ParseError`].
    pub(super) fn take_fixed(
        &self,
        data_type: &DataType,
        batch: &mut ArrowBatch,
        rows: u64,
    ) -> Result<Vec<u8>, ParseError> {
        match (&self.lists, data_type) {
            (None, DataType::Struct(structure)) => batch.fields(structure, count_of(rows)?),
            (lists, _) => {
                let count = batch.lists(rows, lists.as_deref().unwrap_or_default())?;
                batch.fixed(data_type, count)
            }
        }
    }

    /// The elements of variable length in a batch.
    ///
    /// # Errors
    /// [`ParseError`].
    pub(super) fn take_variable(
        &self,
        data_type: &DataType,
        batch: &mut ArrowBatch,
        rows: u64,
        elements: &mut VariableElements,
    ) -> Result<(), ParseError> {
        let count = batch.lists(rows, self.lists.as_deref().unwrap_or_default())?;
        batch.variable(data_type, count, elements)
    }
}

/// A number of rows as one of elements.
fn count_of(rows: u64) -> Result<usize, ParseError> {
    usize::try_from(rows).map_err(|_too_many| malformed("it has more rows than fit in memory"))
}

fn type_mismatch(data_type: &DataType, given: &str) -> ParseError {
    ParseError::DataType {
        given: given.to_owned(),
        expected: data_type.name(),
        advice: "send columns as `format=arrow` of GET has them",
    }
}

/// The items of lists of these lengths, one in another; `None` if there are no such lists.
fn unwrapped<'a>(column: Field<'a>, lengths: &[u64]) -> Option<Field<'a>> {
    lengths.iter().try_fold(column, |field, length| {
        if field.dictionary().is_some() {
            return None;
        }
        let size = field.type_as_fixed_size_list()?.listSize();
        if u64::try_from(size) == Ok(*length) { only_child(field) } else { None }
    })
}

fn only_child(field: Field<'_>) -> Option<Field<'_>> {
    let children = field.children()?;
    (children.len() == 1).then(|| children.get(0))
}

/// Whether fields have these names and types.
fn are_fields<'t>(
    fields: &[Field<'_>],
    expected: impl ExactSizeIterator<Item = (&'t str, &'t DataType)>,
) -> bool {
    fields.len() == expected.len()
        && fields
            .iter()
            .zip(expected)
            .all(|(field, (name, data_type))| field.name() == Some(name) && is_type(*field, data_type))
}

/// Whether a field has the Arrow type of elements of this type.
fn is_type(field: Field<'_>, data_type: &DataType) -> bool {
    let kind = field.type_type();
    if field.dictionary().is_some() {
        return false;
    }
    let is_int = |bits: i32, is_signed: bool| {
        field.type_as_int().is_some_and(|int| (int.bitWidth(), int.is_signed()) == (bits, is_signed))
    };
    let is_float = |precision: Precision| {
        field.type_as_floating_point().is_some_and(|float| float.precision() == precision)
    };
    let is_list =
        |size: u64, item: &DataType| unwrapped(field, &[size]).is_some_and(|field| is_type(field, item));
    match data_type {
        DataType::Bool => kind == Type::Bool,
        DataType::Int2 | DataType::Int4 | DataType::Int8 => is_int(8, true),
        DataType::Int16 => is_int(16, true),
        DataType::Int32 => is_int(32, true),
        DataType::Int64 => is_int(64, true),
        DataType::UInt2 | DataType::UInt4 | DataType::UInt8 => is_int(8, false),
        DataType::UInt16 => is_int(16, false),
        DataType::UInt32 => is_int(32, false),
        DataType::UInt64 => is_int(64, false),
        DataType::Float16 => is_float(Precision::HALF),
        DataType::BFloat16 | DataType::SmallFloat(_) | DataType::Float32 => is_float(Precision::SINGLE),
        DataType::Float64 => is_float(Precision::DOUBLE),
        DataType::ComplexFloat16
        | DataType::ComplexBFloat16
        | DataType::ComplexSmallFloat(_)
        | DataType::Complex64
        | DataType::Complex128 => data_type.complex_half().is_some_and(|half| is_list(2, &half)),
        DataType::RawBits { bytes } => {
            let width = field.type_as_fixed_size_binary().map(|binary| binary.byteWidth());
            width.is_some_and(|width| u32::try_from(width) == Ok(*bytes))
        }
        DataType::DateTime64(step) => match (time_unit(*step), is_day(*step)) {
            (Some(unit), _) => field
                .type_as_timestamp()
                .is_some_and(|time| time.unit() == unit && time.timezone().is_none_or(str::is_empty)),
            (None, true) => field.type_as_date().is_some_and(|date| date.unit() == DateUnit::DAY),
            (None, false) => is_int(64, true),
        },
        DataType::TimeDelta64(step) => match time_unit(*step) {
            Some(unit) => field.type_as_duration().is_some_and(|duration| duration.unit() == unit),
            None => is_int(64, true),
        },
        DataType::FixedLengthUtf32 { .. } | DataType::String | DataType::Json => kind == Type::Utf8,
        DataType::NullTerminatedBytes { .. } | DataType::VariableBytes => kind == Type::Binary,
        DataType::Struct(structure) => {
            let children: Vec<Field> = field.children().into_iter().flatten().collect();
            let names = structure.fields().iter().map(|field| (&*field.name, &field.data_type));
            kind == Type::Struct_ && are_fields(&children, names)
        }
        DataType::Subarray(subarray) => {
            let lengths: Vec<u64> = subarray.shape().iter().map(|length| (*length).into()).collect();
            unwrapped(field, &lengths).is_some_and(|field| is_type(field, subarray.item()))
        }
        DataType::VariableArray(item) => {
            kind == Type::List && only_child(field).is_some_and(|field| is_type(field, item))
        }
    }
}
