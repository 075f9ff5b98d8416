//! [`default_range`]: the range of the colours of an array, as far as its metadata gives one.

use super::values::{Members, exactly, member_number};
use crate::metadata::{Attributes, DataType};

/// Attributes that a range can come from, and those that it is unpacked with (CF 1.11, sections 2.5.1 and 8.1).
const MEMBERS: [&str; 6] =
    ["valid_range", "valid_min", "valid_max", "actual_range", "scale_factor", "add_offset"];

/// The range of an array's colours, in the numbers that stored ones stand for: the window of its OME channel, else that of
/// truth values, else the valid range, else the actual range. `None` if the metadata gives none.
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
    let members: Members =
        MEMBERS.into_iter().filter_map(|name| Some((name.to_owned(), attributes.get(name)?))).collect();
    let pair = |name: &str| exactly::<2>(members.get(name)).map(|[low, high]| (low, high));
    let limits = || member_number(&members, "valid_min").zip(member_number(&members, "valid_max"));
    let scale = member_number(&members, "scale_factor").unwrap_or(1.0);
    let offset = member_number(&members, "add_offset").unwrap_or(0.0);
    // The valid range is of stored numbers, the actual range of those that they stand for (CF 1.11, section 2.5.1).
    let unpacked = |(low, high): (f64, f64)| {
        let (low, high) = (low * scale + offset, high * scale + offset);
        (f64::min(low, high), f64::max(low, high))
    };
    let valid = pair("valid_range").or_else(limits).map(unpacked);
    let is_range = |(low, high): &(f64, f64)| low.is_finite() && high.is_finite() && low < high;
    valid.filter(is_range).or_else(|| pair("actual_range").filter(is_range))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
