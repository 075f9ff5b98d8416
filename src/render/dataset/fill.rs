//! `_FillValue` and the units of times: the attributes that Zarr has in metadata, and other formats as attributes.
//!
//! `_FillValue` follows xarray: of a variable of Zarr v2 it is the array's `fill_value`, of v3 the attribute, in which xarray writes floats as
//! base64. Coordinates have none that is not among their attributes: a label of 0 stays 0 (CF 1.12, section 2.5.1).

use crate::metadata::{ArrayMetadata, DataType, TimeStep, TimeUnit};
use crate::reduce::{is_fill_missing, missing_element, read_as};

/// The element that stands for a missing one, in canonical form.
pub(super) fn fill_element(metadata: &ArrayMetadata, is_coordinate: bool) -> Option<Vec<u8>> {
    let data_type = &metadata.data_type;
    match data_type {
        DataType::DateTime64(_) | DataType::TimeDelta64(_) => Some(i64::MIN.to_le_bytes().to_vec()),
        _ if is_numeric(data_type) => {
            if !is_coordinate && is_fill_missing(metadata) {
                return Some(metadata.fill_value.as_bytes().to_vec());
            }
            let value = metadata.attributes.get_short("_FillValue")?;
            let read_as = read_as(&metadata.attributes, data_type);
            missing_element(&value, data_type).or_else(|| missing_element(&value, &read_as))
        }
        _ => None,
    }
}

/// Whether elements are integers or floats.
pub(super) fn is_numeric(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(data_type, DataType::Float16 | DataType::BFloat16 | DataType::Float32 | DataType::Float64)
}

/// The unit of a step in the words of UDUNITS; `None` if it has no unit, or several of them.
pub(super) fn units_of(step: TimeStep) -> Option<&'static str> {
    if step.scale_factor() != 1 {
        return None;
    }
    Some(match step.unit() {
        TimeUnit::Day => "days",
        TimeUnit::Hour => "hours",
        TimeUnit::Minute => "minutes",
        TimeUnit::Second => "seconds",
        TimeUnit::Millisecond => "milliseconds",
        TimeUnit::Microsecond => "microseconds",
        TimeUnit::Nanosecond => "nanoseconds",
        TimeUnit::Year
        | TimeUnit::Month
        | TimeUnit::Week
        | TimeUnit::Picosecond
        | TimeUnit::Femtosecond
        | TimeUnit::Attosecond
        | TimeUnit::Generic => return None,
    })
}

/// The attribute `units` of times (CF 1.12, section 4.4).
pub(super) fn time_units(data_type: &DataType) -> Option<String> {
    match data_type {
        DataType::DateTime64(step) => units_of(*step).map(|unit| format!("{unit} since 1970-01-01")),
        DataType::TimeDelta64(step) => units_of(*step).map(str::to_owned),
        _ => None,
    }
}
