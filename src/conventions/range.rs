//! [`default_range`] and [`stated_range`]: the range of the colours of an array, as far as its metadata gives one.

use serde_json::Value;

use super::values::{items, number};
use crate::metadata::{Attributes, DataType};
use crate::reduce::CfValues;

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
    let values = CfValues::unmasked(data_type, attributes);
    let units =
        RangeUnits { stored_as: data_type, read_as: values.data_type(), is_packed: values.are_packed() };
    let range = stated_range(|name| attributes.get(name), &units, |stored| values.unpacked(stored))?;
    Some((range.low, range.high))
}

/// What the numbers of a range in attributes may be numbers of.
#[derive(Clone, Copy, Debug)]
pub struct RangeUnits<'a> {
    /// The type of the stored numbers.
    pub stored_as: &'a DataType,
    /// The type that they are read as, which may have another sign (`_Unsigned`).
    pub read_as: &'a DataType,
    /// Whether they are scaled or shifted.
    pub is_packed: bool,
}

impl RangeUnits<'_> {
    /// The number that a limit in attributes stands for as the elements do: with the sign that they are read with.
    #[expect(clippy::cast_precision_loss, reason = "ranges are float64")]
    fn read(&self, limit: f64) -> f64 {
        let (Some((low, high)), true) = (self.read_as.integer_bounds(), self.read_as != self.stored_as)
        else {
            return limit;
        };
        let count = (high - low) as f64 + 1.0;
        if limit < low as f64 && limit >= -count / 2.0 {
            limit + count
        } else if limit > high as f64 && limit < count {
            limit - count
        } else {
            limit
        }
    }

    /// Whether a limit in attributes can be a stored number. JSON has no types: a number of a packed integer is written
    /// without a fraction, and fits the type.
    #[expect(clippy::cast_precision_loss, reason = "ranges are float64")]
    fn may_be_stored(&self, limit: &Value) -> bool {
        let Some((low, high)) = self.stored_as.integer_bounds() else { return true };
        let (least, most) = self.read_as.integer_bounds().unwrap_or((low, high));
        let is_within = |number: f64| number >= low.min(least) as f64 && number <= high.max(most) as f64;
        !limit.is_f64() && limit.as_f64().is_some_and(is_within)
    }
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
    /// Whether the attribute has it in the numbers that stored ones stand for.
    pub is_unpacked: bool,
}

/// The range in the attributes of an array: the valid range, else the actual range. `unpacked` is the number that a stored one
/// stands for: the actual range is of those numbers, and the valid range of stored ones (CF 1.11, section 2.5.1), unless it
/// is written in the type of unpacked numbers, which then is what it is of (the users guide of netCDF, "Attribute conventions").
#[must_use]
pub fn stated_range(
    attribute: impl Fn(&str) -> Option<Value>,
    units: &RangeUnits<'_>,
    unpacked: impl Fn(f64) -> f64,
) -> Option<StatedRange> {
    let pair = |name: &str| {
        let value = attribute(name)?;
        let two: Vec<Value> = items(Some(&value)).take(3).cloned().collect();
        <[Value; 2]>::try_from(two).ok()
    };
    let stated = |(low, high): (f64, f64), from, is_unpacked| {
        let is_range = low.is_finite() && high.is_finite() && low < high;
        is_range.then_some(StatedRange { low, high, from, is_unpacked })
    };
    let valid = || {
        let one = |name: &str| attribute(name);
        let limits = pair("valid_range").or_else(|| Some([one("valid_min")?, one("valid_max")?]))?;
        let [low, high] = [number(&limits[0])?, number(&limits[1])?];
        let has_packing = PACKING.iter().any(|name| attribute(name).is_some());
        let is_unpacked = has_packing && !limits.iter().all(|limit| units.may_be_stored(limit));
        let (low, high) = if is_unpacked {
            // Of no use where stored numbers are asked for.
            units.is_packed.then_some((low, high))?
        } else {
            (unpacked(units.read(low)), unpacked(units.read(high)))
        };
        stated((low.min(high), low.max(high)), "valid_range", is_unpacked)
    };
    let actual = || {
        let [low, high] = pair("actual_range")?;
        stated((number(&low)?, number(&high)?), "actual_range", true)
    };
    valid().or_else(actual)
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
        // Floats beside packed integers, and what does not fit them, are in unpacked units.
        for limits in ["[250.0, 310.5]", "[0, 400000]"] {
            let limits: Value = serde_json::from_str(limits).unwrap();
            let unpacked = json!({ "valid_range": limits, "scale_factor": 0.01, "add_offset": 273.15 });
            let expected = (limits[0].as_f64().unwrap(), limits[1].as_f64().unwrap());
            assert_eq!(range(&DataType::Int16, unpacked), Some(expected));
        }
        let unsigned = json!({ "valid_range": [0, -2], "_Unsigned": "true", "scale_factor": [0.5] });
        assert_eq!(range(&DataType::Int8, unsigned), Some((0.0, 127.0)));
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
