//! [`read_as`]: the type that the integers of an array are read as (the attribute `_Unsigned` of netCDF, as xarray reads it).

use serde_json::Value;

use crate::metadata::{Attributes, DataType};

/// The type that elements are read as: that of the same size without a sign, or with one, if `_Unsigned` says so. The bytes
/// of an element stay the same.
#[must_use]
pub fn read_as(attributes: &Attributes, data_type: &DataType) -> DataType {
    match attributes.get_short("_Unsigned").as_ref().and_then(truth) {
        Some(true) => unsigned(data_type),
        Some(false) => signed(data_type),
        None => data_type.clone(),
    }
}

/// A truth value, or its name.
fn truth(value: &Value) -> Option<bool> {
    let is = |name: &str| value.as_str().is_some_and(|text| text.eq_ignore_ascii_case(name));
    value.as_bool().or_else(|| is("true").then_some(true)).or_else(|| is("false").then_some(false))
}

fn unsigned(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Int8 => DataType::UInt8,
        DataType::Int16 => DataType::UInt16,
        DataType::Int32 => DataType::UInt32,
        DataType::Int64 => DataType::UInt64,
        other => other.clone(),
    }
}

fn signed(data_type: &DataType) -> DataType {
    match data_type {
        DataType::UInt8 => DataType::Int8,
        DataType::UInt16 => DataType::Int16,
        DataType::UInt32 => DataType::Int32,
        DataType::UInt64 => DataType::Int64,
        other => other.clone(),
    }
}
