//! Response headers that describe elements: `Array-Shape`, `Array-Data-Type`, `Array-Dimension-Names`, and of reduced ones
//! `Array-Downsample` and `Array-Level`, or `Array-Reduce`, and of a selection by label `Array-Selection` and `Array-Labels`.

use std::fmt::Write;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use super::validators::from_text;
use crate::metadata::DataType;
use crate::render::ResultSchema;

/// Maximum length of such a header in bytes. Names in metadata can be long, and clients and proxies reject heads of more
/// than a few kilobytes.
const HEADER_BYTES: usize = 2 << 10;

const ARRAY_SHAPE: HeaderName = HeaderName::from_static("array-shape");
const ARRAY_DATA_TYPE: HeaderName = HeaderName::from_static("array-data-type");
const ARRAY_DIMENSION_NAMES: HeaderName = HeaderName::from_static("array-dimension-names");

const ARRAY_DOWNSAMPLE: HeaderName = HeaderName::from_static("array-downsample");
const ARRAY_LEVEL: HeaderName = HeaderName::from_static("array-level");
const ARRAY_LABELS: HeaderName = HeaderName::from_static("array-labels");
const ARRAY_REDUCE: HeaderName = HeaderName::from_static("array-reduce");
const ARRAY_TIME_UNITS: HeaderName = HeaderName::from_static("array-time-units");
const ARRAY_TIME_CALENDAR: HeaderName = HeaderName::from_static("array-time-calendar");
const ARRAY_SELECTION: HeaderName = HeaderName::from_static("array-selection");

/// Sets the headers of reduced elements: the factor of each dimension of the response, and the level they are computed from,
/// which is the array itself.
pub(crate) fn put_reduction(headers: &mut HeaderMap, factors: &[u64]) {
    let factors: Vec<String> = factors.iter().map(u64::to_string).collect();
    if let Some(value) = from_text(factors.join(",")) {
        headers.insert(ARRAY_DOWNSAMPLE, value);
    }
    headers.insert(ARRAY_LEVEL, HeaderValue::from_static("0"));
}

/// Sets the header of a statistic over dimensions of the array: `0=mean,2=mean`.
pub(crate) fn put_axis_reduction(headers: &mut HeaderMap, dimensions: &[usize], statistic: &str) {
    let each: Vec<String> = dimensions.iter().map(|dimension| format!("{dimension}={statistic}")).collect();
    if let Some(value) = from_text(each.join(",")) {
        headers.insert(ARRAY_REDUCE, value);
    }
}

/// Sets the headers of numbers that are times in a calendar for whose dates the format has no type: their units and the calendar.
pub(crate) fn put_time_units(headers: &mut HeaderMap, units: &str, calendar: &str) {
    for (name, text) in [(ARRAY_TIME_UNITS, ascii(units)), (ARRAY_TIME_CALENDAR, ascii(calendar))] {
        if text.len() <= HEADER_BYTES
            && let Some(value) = from_text(text)
        {
            headers.insert(name, value);
        }
    }
}

/// Sets the headers of a selection by label: the positions along each dimension, `time=120:151, lat=180`, and the labels of single
/// positions, `lat=45.25`. One that would be too long is omitted.
pub(crate) fn put_labels(headers: &mut HeaderMap, positions: &str, labels: &str) {
    for (name, text) in [(ARRAY_SELECTION, ascii(positions)), (ARRAY_LABELS, ascii(labels))] {
        if !text.is_empty()
            && text.len() <= HEADER_BYTES
            && let Some(value) = from_text(text)
        {
            headers.insert(name, value);
        }
    }
}

/// Sets the headers; one that would be too long is omitted.
pub(crate) fn put_contents(headers: &mut HeaderMap, contents: &ResultSchema) {
    let mut put = |name: HeaderName, text: String| {
        if text.len() <= HEADER_BYTES
            && let Some(value) = from_text(text)
        {
            headers.insert(name, value);
        }
    };
    put(ARRAY_SHAPE, format!("{:?}", contents.shape));
    put(ARRAY_DATA_TYPE, header_name(&contents.data_type));
    if let Some(names) = &contents.dimension_names {
        put(ARRAY_DIMENSION_NAMES, ascii(&serde_json::json!(names).to_string()));
    }
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
}

/// The name of a data type as a header value. A name that is too long for a header is reduced to `struct` or
/// `variable_array`; the node document has the full data type.
fn header_name(data_type: &DataType) -> String {
    let name = ascii(&data_type.name());
    match data_type {
        _ if name.len() <= HEADER_BYTES => name,
        DataType::VariableArray(_) => "variable_array".to_owned(),
        _ => "struct".to_owned(),
    }
}

/// A text in visible ASCII, the only characters that are safe in a header; others are escaped as in JSON.
fn ascii(text: &str) -> String {
    let is_visible = |character| matches!(character, ' '..='~');
    if text.chars().all(is_visible) {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_visible(character) {
            escaped.push(character);
        } else {
            let mut pair = [0; 2];
            for half in character.encode_utf16(&mut pair) {
                // Writing to a `String` cannot fail.
                let _ = write!(escaped, "\\u{half:04x}");
            }
        }
    }
    escaped
}
