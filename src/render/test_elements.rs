//! Elements, data types and schemas for the tests of this module.

use crate::chunk::{Elements, VarSlice};
use crate::metadata::{DataType, Field, StructType, SubarrayType, TimeStep, TimeUnit};

use super::{RenderError, ResultSchema, Writer};

/// Elements of variable length with these bytes.
pub(super) fn variable(elements: &[&[u8]]) -> Elements {
    let (mut spans, mut heap) = (Vec::new(), Vec::new());
    for element in elements {
        let span = VarSlice { offset: heap.len() as u32, length: element.len() as u32 };
        spans.extend_from_slice(&span.to_item());
        heap.extend_from_slice(element);
    }
    Elements::variable(spans.into(), heap.into())
}

/// Elements of a fixed size with these bytes.
pub(super) fn fixed(elements: &[&[u8]]) -> Elements {
    Elements::fixed(elements.concat().into())
}

/// The schema of an array without dimension names and header line.
pub(super) fn schema(data_type: &DataType, shape: &[u64]) -> ResultSchema {
    ResultSchema { data_type: data_type.clone(), shape: shape.to_vec(), dimension_names: None, heading: None }
}

/// A struct with these fields.
pub(super) fn structure(fields: &[(&str, DataType)]) -> DataType {
    let field =
        |(name, data_type): &(&str, DataType)| Field { name: (*name).into(), data_type: data_type.clone() };
    DataType::Struct(StructType::new(fields.iter().map(field).collect()).unwrap())
}

/// A subarray of this shape.
pub(super) fn subarray(item: DataType, shape: &[u32]) -> DataType {
    DataType::Subarray(SubarrayType::new(item, shape.to_vec()).unwrap())
}

/// A step of one unit of time.
pub(super) fn step(unit: TimeUnit) -> TimeStep {
    TimeStep::new(unit, 1).unwrap()
}

/// The output of a writer for these pieces.
pub(super) fn write_all(mut writer: impl Writer, parts: &[Elements]) -> Result<Vec<u8>, RenderError> {
    let mut out = Vec::new();
    for part in parts {
        writer.write(part, &mut out)?;
    }
    writer.finish(&mut out)?;
    Ok(out)
}
