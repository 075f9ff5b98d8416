//! Labels: whatever the text and the coordinate, what is selected lies inside the dimension, and times and calendars agree with
//! themselves.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use zarrd::chunk::Elements;
use zarrd::labels::{Calendar, CfTimes, DateLabel, DimensionLabels, LabelQuery};
use zarrd::metadata::v3::V3Node;
use zarrd::metadata::{MetadataLimits, v3};

const TYPES: [&str; 6] = ["float64", "int64", "float32", "uint8", "int16", "numpy.datetime64"];

fuzz_target!(|input: (u8, u8, &str, &str, &str, Option<f64>, &[u8])| {
    let (kind, calendar, units, query, other, wrap, items) = input;
    let calendar = Calendar::ALL[usize::from(calendar) % Calendar::ALL.len()];
    if let Some((start, end)) = DateLabel::parse(query).and_then(|date| date.period(calendar)) {
        assert!(start < end);
    }
    if let Some(times) = CfTimes::parse(units, Some(calendar.name())) {
        let _ = (
            times.of_float(wrap.unwrap_or_default()).map(|instant| times.text(instant)),
            times.utc_text_of(1.5),
        );
    }
    let name = TYPES[usize::from(kind) % TYPES.len()];
    let data_type = match name {
        "numpy.datetime64" => {
            json!({ "name": name, "configuration": { "unit": "h", "scale_factor": 1 + u32::from(kind) } })
        }
        name => json!(name),
    };
    let attributes = json!({ "units": units, "calendar": calendar.name() });
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [1], "data_type": data_type, "fill_value": 0,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [1] } },
        "chunk_key_encoding": { "name": "default" },
        "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }], "attributes": attributes,
    });
    let Ok(V3Node::Array(array)) = v3::parse(document.to_string().as_bytes(), &MetadataLimits::default())
    else {
        return;
    };
    let bytes = array.data_type.element_bytes();
    let items = &items[..items.len() / bytes * bytes];
    let elements = [Elements::fixed(items.to_vec().into())];
    let Ok(coordinate) = DimensionLabels::new("x", &array, &elements) else { return };
    let length = coordinate.len() as u64;
    let extent = coordinate.extent();
    assert!(extent.first.to_string().len() < 4096 && extent.last.to_string().len() < 4096);
    let wrap = wrap.filter(|wrap| wrap.is_finite() && *wrap > 0.0);
    // A label of the coordinate is one of its own.
    let own = coordinate.text(0).unwrap_or_default();
    for text in [
        query,
        other,
        &own,
        &format!("nearest::{query}"),
        &format!("{query}..{other}"),
        &format!("ffill({units})::{own}"),
    ] {
        let Ok(query) = LabelQuery::parse("x", text) else { continue };
        match coordinate.select(&query, wrap) {
            Ok(selected) => {
                for range in selected.positions.ranges() {
                    assert!(range.count == 0 || range.at(0) < length && range.at(range.count - 1) < length);
                    assert!(range.keep || range.count == 1);
                }
            }
            Err(error) => assert!(error.to_string().len() < 4096),
        }
    }
});
