//! What the elements of an answer are, in headers: `Array-Shape`, `Array-Data-Type`, `Array-Dimension-Names`.

use std::fmt::Write;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use super::validators::from_text;
use crate::metadata::DataType;
use crate::render::ResultSchema;

/// Longest header that says what the elements are. Names are as long as their document lets them be; clients and proxies
/// give up on heads of a few kilobytes.
const HEADER_BYTES: usize = 2 << 10;

const ARRAY_SHAPE: HeaderName = HeaderName::from_static("array-shape");
const ARRAY_DATA_TYPE: HeaderName = HeaderName::from_static("array-data-type");
const ARRAY_DIMENSION_NAMES: HeaderName = HeaderName::from_static("array-dimension-names");

/// Says what the elements are: but for what is too long for a header.
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

/// A type's name as a header's value. Of a struct of many fields it is `struct` alone: what a header may have is
/// limited, and the node's own route tells the rest.
fn header_name(data_type: &DataType) -> String {
    let name = ascii(&data_type.name());
    match data_type {
        _ if name.len() <= HEADER_BYTES => name,
        DataType::VariableArray(_) => "variable_array".to_owned(),
        _ => "struct".to_owned(),
    }
}

/// A text in visible ASCII, which is all that a header can hold safely: other characters as JSON escapes them.
fn ascii(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if matches!(character, ' '..='~') {
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
