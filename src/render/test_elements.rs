//! Elements of variable length and structs for the tests of this room.

use crate::chunk::{Elements, VarSlice};
use crate::metadata::{DataType, Field, StructType, SubarrayType, TimeStep, TimeUnit};

use super::{RenderError, ResultSchema, Writer};

/// Elements with these bytes.
pub(super) fn variable(elements: &[&[u8]]) -> Elements {
    let (mut spans, mut heap) = (Vec::new(), Vec::new());
    for element in elements {
        let span = VarSlice { offset: heap.len() as u32, length: element.len() as u32 };
        spans.extend_from_slice(&span.to_item());
        heap.extend_from_slice(element);
    }
    Elements::variable(spans.into(), heap.into())
}

/// Elements of a fixed size.
pub(super) fn fixed(elements: &[&[u8]]) -> Elements {
    Elements::fixed(elements.concat().into())
}

/// An array without names.
pub(super) fn contents(data_type: &DataType, shape: &[u64]) -> ResultSchema {
    ResultSchema { data_type: data_type.clone(), shape: shape.to_vec(), dimension_names: None, heading: None }
}

/// A struct of these fields.
pub(super) fn structure(fields: &[(&str, DataType)]) -> DataType {
    let field =
        |(name, data_type): &(&str, DataType)| Field { name: (*name).into(), data_type: data_type.clone() };
    DataType::Struct(StructType::new(fields.iter().map(field).collect()).unwrap())
}

/// A field of several elements.
pub(super) fn subarray(item: DataType, shape: &[u32]) -> DataType {
    DataType::Subarray(SubarrayType::new(item, shape.to_vec()).unwrap())
}

/// One unit of time.
pub(super) fn step(unit: TimeUnit) -> TimeStep {
    TimeStep::new(unit, 1).unwrap()
}

/// All that is written of some parts.
pub(super) fn written(mut writer: impl Writer, parts: &[Elements]) -> Result<Vec<u8>, RenderError> {
    let mut out = Vec::new();
    for part in parts {
        writer.write(part, &mut out)?;
    }
    writer.finish(&mut out)?;
    Ok(out)
}
