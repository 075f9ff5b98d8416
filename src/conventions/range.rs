//! [`default_range`] and [`stated_range`]: the range of the colours of an array, as far as its metadata gives one.

use serde_json::Value;

use super::values::{exactly, number};
use crate::metadata::{Attributes, DataType};

/// Attributes that stored numbers are unpacked with (CF 1.11, section 8.1).
const PACKING: [&str; 2] = ["scale_factor", "add_offset"];

/// The range of an array's colours, in the numbers that stored ones stand for: the window of its OME channel, else that of
/// truth values, else that in its attributes. `None` if the metadata gives none.
#[must_use]
pub fn default_range(
    data_type: &DataType,
    attributes: &Attributes,
    window: Option<(f64, f64)>,
) -> Option<(f64, f64)> {
    if window.is_some() {
        return window;
    }
    if *data_type == DataType::Bool {
        return Some((0.0, 1.0));
    }
    let number = |name: &str| attributes.get(name).as_ref().and_then(number);
    let [scale, offset] = PACKING.map(number);
    let (scale, offset) = (scale.unwrap_or(1.0), offset.unwrap_or(0.0));
    let range = stated_range(|name| attributes.get(name), |stored| stored * scale + offset)?;
    Some((range.low, range.high))
}

/// A range in the attributes of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StatedRange {
    /// Its lower end, which is below the upper one.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The attribute that it comes from.
    pub from: &'static str,
}

/// The range in the attributes of an array: the valid range, else the actual range. `unpacked` is the number that a stored one
/// stands for: the valid range is of stored numbers, the actual range of those that they stand for (CF 1.11, section 2.5.1).
#[must_use]
pub fn stated_range(
    attribute: impl Fn(&str) -> Option<Value>,
    unpacked: impl Fn(f64) -> f64,
) -> Option<StatedRange> {
    let pair = |name: &str| exactly::<2>(attribute(name).as_ref()).map(|[low, high]| (low, high));
    let one = |name: &str| attribute(name).as_ref().and_then(number);
    let stated = |(low, high): (f64, f64), from| {
        let is_range = low.is_finite() && high.is_finite() && low < high;
        is_range.then_some(StatedRange { low, high, from })
    };
    let valid = pair("valid_range").or_else(|| one("valid_min").zip(one("valid_max")));
    let valid = valid.map(|(low, high)| (unpacked(low), unpacked(high)));
    let valid = valid.and_then(|(one, other)| stated((one.min(other), one.max(other)), "valid_range"));
    valid.or_else(|| stated(pair("actual_range")?, "actual_range"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn range(data_type: &DataType, attributes: Value) -> Option<(f64, f64)> {
        let Value::Object(members) = attributes else { panic!("no object") };
        default_range(data_type, &Attributes::from(members), None)
    }

    #[test]
    fn the_range_is_that_of_the_metadata_in_unpacked_numbers() {
        let float = &DataType::Float32;
        assert_eq!(range(float, json!({})), None);
        assert_eq!(range(&DataType::Bool, json!({})), Some((0.0, 1.0)));
        let packed = json!({ "valid_range": [-100, 100], "scale_factor": -0.5, "add_offset": 1.0, "actual_range": [0, 1] });
        assert_eq!(range(&DataType::Int16, packed), Some((-49.0, 51.0)));
        assert_eq!(range(float, json!({ "valid_min": 3, "valid_max": 4.5 })), Some((3.0, 4.5)));
        assert_eq!(
            range(float, json!({ "actual_range": [250.5, 310.0], "scale_factor": 2 })),
            Some((250.5, 310.0))
        );
        for odd in [
            json!({ "valid_range": [1] }),
            json!({ "valid_min": 1 }),
            json!({ "actual_range": ["a", "b"] }),
            json!({ "valid_range": [1, 1] }),
        ] {
            assert_eq!(range(float, odd), None);
        }
        assert_eq!(
            default_range(&DataType::Bool, &Attributes::default(), Some((3.0, 9.0))),
            Some((3.0, 9.0))
        );
    }
}
