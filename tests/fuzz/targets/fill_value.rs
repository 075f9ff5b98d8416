//! Fill values of every type: whatever the JSON, what is read has the size of an element, and what is written reads as
//! the same element.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zarrd::metadata::{DataType, FillValue, MetadataLimits, parse_document};

/// Types as v3 documents write them.
const TYPES: [&str; 24] = [
    r#""bool""#,
    r#""int2""#,
    r#""int8""#,
    r#""int64""#,
    r#""uint64""#,
    r#""float16""#,
    r#""bfloat16""#,
    r#""float32""#,
    r#""float64""#,
    r#""float8_e4m3""#,
    r#""float8_e8m0fnu""#,
    r#""float4_e2m1fn""#,
    r#""complex64""#,
    r#""complex128""#,
    r#""complex_float16""#,
    r#""r24""#,
    r#""string""#,
    r#""bytes""#,
    r#"{"name":"numpy.datetime64","configuration":{"unit":"ns","scale_factor":1}}"#,
    r#"{"name":"fixed_length_utf32","configuration":{"length_bytes":16}}"#,
    r#"{"name":"null_terminated_bytes","configuration":{"length_bytes":5}}"#,
    r#"{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int16"},{"name":"b","data_type":"float32"}]}}"#,
    r#"{"name":"struct","configuration":{"fields":[{"name":"p","data_type":{"name":"struct","configuration":{"fields":[{"name":"x","data_type":"uint8"}]}}}]}}"#,
    r#"{"name":"numpy.timedelta64","configuration":{"unit":"D","scale_factor":3}}"#,
];

fuzz_target!(|input: &[u8]| {
    let [which, version, document @ ..] = input else { return };
    let limits = MetadataLimits::default();
    let data_type = parse_document(TYPES[usize::from(*which) % TYPES.len()].as_bytes(), &limits).unwrap();
    let data_type = DataType::from_v3(&data_type).unwrap();
    let Ok(value) = parse_document(document, &limits) else { return };
    let fill_value = match version % 2 {
        0 => FillValue::from_v3(&data_type, Some(&value)),
        _ => FillValue::from_v2(&data_type, Some(&value)),
    };
    let Ok(fill_value) = fill_value else { return };
    if !data_type.is_variable() {
        assert_eq!(fill_value.as_bytes().len(), data_type.element_bytes());
    }
    let written = fill_value.to_json(&data_type);
    // Numbers that are no characters can come in as the bytes of a struct; they have no text.
    if !written.is_null() {
        assert_eq!(FillValue::from_v3(&data_type, Some(&written)), Ok(fill_value));
    }
});
