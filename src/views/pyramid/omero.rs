//! The member `omero` of the image of an array: the colours of its channels and the range of each (OME-Zarr 0.5, "omero").
//!
//! A range comes from the URL or from the metadata, never from elements: the document takes no read of a chunk, and changes
//! only if metadata does. Where neither has a range there is no `omero`, because OME-Zarr requires one in it, and the limits of
//! a wide type would make most images black in the viewers that use them; without `omero` they find a range themselves.

use serde_json::{Value, json};

use super::image::Image;
use crate::conventions::{Dimensions, RangeUnits, stated_range};
use crate::metadata::{Attributes, DataType};

/// The most channels of an image that are described.
const MAX_CHANNELS: u64 = 64;
/// How many channels are shown at first.
const ACTIVE_CHANNELS: usize = 3;
/// The colours of channels, in turn: those of `/v1/image`.
const COLORS: [&str; 6] = ["0000FF", "00FF00", "FF0000", "00FFFF", "FF00FF", "FFFF00"];
/// The colours of a photograph, and its opacity.
const PHOTOGRAPH: [(&str, &str); 4] =
    [("red", "FF0000"), ("green", "00FF00"), ("blue", "0000FF"), ("opacity", "FFFFFF")];

/// The `omero` of an array; `None` if no range is known, or if there are too many channels.
pub(super) fn of_array(image: &Image) -> Option<Value> {
    let metadata = image.array.metadata();
    let limits = type_limits(&metadata.data_type);
    let stated = || known_range(&metadata.data_type, &metadata.attributes);
    let (start, end) = image.range.or_else(stated)?;
    let (min, max) = limits.map_or((start, end), |(low, high)| (low.min(start), high.max(end)));
    let window = json!({ "min": min, "max": max, "start": start, "end": end });
    let channels = image.axes().iter().position(|axis| axis.kind == Some("channel"));
    let count = match channels {
        Some(axis) => metadata.shape.get(axis).copied().filter(|count| (1..=MAX_CHANNELS).contains(count))?,
        None => 1,
    };
    let is_photograph = metadata.data_type == DataType::UInt8 && channels.is_some() && matches!(count, 3 | 4);
    let colors = (0..usize::try_from(count).ok()?).map(|at| match (is_photograph, count) {
        (true, _) => PHOTOGRAPH.get(at).map(|&(label, color)| (label.to_owned(), color)).unwrap_or_default(),
        (false, 1) => (at.to_string(), "FFFFFF"),
        (false, _) => (at.to_string(), COLORS.iter().cycle().nth(at).copied().unwrap_or_default()),
    });
    let channels: Vec<Value> = colors
        .enumerate()
        .map(|(at, (label, color))| {
            json!({ "label": label, "color": color, "active": at < ACTIVE_CHANNELS, "window": window })
        })
        .collect();
    let model = if count == 1 { "greyscale" } else { "color" };
    let (z, t) = (default_index(image, "z"), default_index(image, "t"));
    Some(json!({ "channels": channels, "rdefs": { "defaultZ": z, "defaultT": t, "model": model } }))
}

/// The index along the axis of this name that pictures of the array have by default.
fn default_index(image: &Image, axis: &str) -> u64 {
    let names = image.axis_names();
    let shape = &image.array.metadata().shape;
    let dimensions = Dimensions { shape, names: &names, is_bytes: false, proposed: &[] };
    let place = names.iter().position(|name| name.as_deref() == Some(axis));
    place.map_or(0, |place| dimensions.default_index(place))
}

/// The range of stored numbers that the metadata of an array gives, or else that of a type of at most 8 bits.
fn known_range(data_type: &DataType, attributes: &Attributes) -> Option<(f64, f64)> {
    if *data_type == DataType::Bool {
        return Some((0.0, 1.0));
    }
    // Viewers read elements with the sign of the type.
    let units = RangeUnits { stored_as: data_type, read_as: data_type, is_packed: true };
    let stated = stated_range(|name| attributes.get(name), &units, |stored| stored);
    let stored = stated.map(|stated| {
        let ends = (stated.low, stated.high);
        if stated.is_unpacked { packed(attributes, ends.0, ends.1) } else { ends }
    });
    let of_type = || type_limits(data_type).filter(|(low, high)| high - low <= f64::from(u8::MAX));
    stored.filter(|(low, high)| low.is_finite() && high.is_finite() && low < high).or_else(of_type)
}

/// The stored numbers of a range of those that they stand for (CF 1.11, section 8.1).
fn packed(attributes: &Attributes, low: f64, high: f64) -> (f64, f64) {
    let number = |name: &str| attributes.get(name).as_ref().and_then(Value::as_f64);
    let (scale, offset) = (number("scale_factor").unwrap_or(1.0), number("add_offset").unwrap_or(0.0));
    let stored = |number: f64| (number - offset) / scale;
    let (one, other) = (stored(low), stored(high));
    (one.min(other), one.max(other))
}

/// The smallest and the largest number of an integer type of at most 16 bits.
fn type_limits(data_type: &DataType) -> Option<(f64, f64)> {
    Some(match data_type {
        DataType::Bool => (0.0, 1.0),
        DataType::Int2 => (-2.0, 1.0),
        DataType::Int4 => (-8.0, 7.0),
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::UInt2 => (0.0, 3.0),
        DataType::UInt4 => (0.0, 15.0),
        DataType::UInt8 => (0.0, u8::MAX.into()),
        DataType::UInt16 => (0.0, u16::MAX.into()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_is_of_stored_numbers_and_of_narrow_types_only_their_limits() {
        let range = |data_type, attributes: Value| {
            let Value::Object(members) = attributes else { panic!("no object") };
            known_range(&data_type, &Attributes::from(members))
        };
        let packing = json!({ "scale_factor": -0.5, "add_offset": 1.0, "valid_range": [-100, 100], "actual_range": [0, 1] });
        assert_eq!(range(DataType::Int16, packing), Some((-100.0, 100.0)));
        let actual = json!({ "scale_factor": -0.5, "add_offset": 1.0, "actual_range": [0, 3] });
        assert_eq!(range(DataType::Int16, actual), Some((-4.0, 2.0)));
        assert_eq!(range(DataType::Float32, json!({ "valid_min": 3, "valid_max": 4.5 })), Some((3.0, 4.5)));
        for (data_type, expected) in [
            (DataType::Bool, Some((0.0, 1.0))),
            (DataType::UInt4, Some((0.0, 15.0))),
            (DataType::Int8, Some((-128.0, 127.0))),
            (DataType::UInt8, Some((0.0, 255.0))),
            (DataType::UInt16, None),
            (DataType::Int64, None),
            (DataType::Float16, None),
        ] {
            assert_eq!(range(data_type, json!({})), expected);
        }
        for odd in [
            json!({ "actual_range": [0, 1], "scale_factor": 0 }),
            json!({ "actual_range": [0, 1e300], "scale_factor": 1e-300 }),
            json!({ "valid_range": [1, 1] }),
            json!({ "valid_range": ["0", "1"] }),
        ] {
            assert_eq!(range(DataType::Float32, odd), None);
        }
    }
}
