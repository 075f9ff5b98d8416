//! [`parse_json`]: nested lists of elements, or one element for all places.
//!
//! An element is spelled as in responses (`render`) or as a fill value. A number must be one of the type: nothing is rounded to an
//! integer, and `null` is no element. The lists are not built in memory: each element is parsed on its own.

use std::fmt;

use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::date::steps_of_date;
use super::error::ParseError;
use super::variable::VariableElements;
use crate::chunk::Elements;
use crate::metadata::{DataType, FillValue, MetadataError};

/// How many bytes of elements a byte of text may make: a list of `0,` has four bytes for sixteen of a complex number.
const EXPANSION: u64 = 8;
/// Bytes of elements that any text may make.
const LEAST_EXPANDED: u64 = 16 << 20;

/// The elements of a JSON body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonElements {
    /// One for each place.
    Each(Elements),
    /// One for all places.
    One(Elements),
}

/// Parses elements of a type and a shape.
///
/// # Errors
/// [`ParseError`].
pub fn parse_json(data_type: &DataType, shape: &[u64], text: &[u8]) -> Result<JsonElements, ParseError> {
    let is_list = text.trim_ascii_start().starts_with(b"[");
    // An element may be a list itself: a pair, or bytes.
    let shape = if is_list { shape } else { &[] };
    let mut reader = Reader::new(data_type, shape, most_json_bytes(data_type, text.len() as u64));
    let mut json = serde_json::Deserializer::from_slice(text);
    let outcome = Lists { reader: &mut reader, depth: 0 }.deserialize(&mut json).and_then(|()| json.end());
    if let Some(failure) = reader.failure.take() {
        return Err(failure);
    }
    outcome.map_err(|error| {
        let reason = error.to_string();
        // A value where a list is expected, or a list that is none: the text is JSON.
        if error.is_data() { ParseError::Nesting(reason) } else { malformed("JSON", text, &error) }
    })?;
    let elements = reader.elements.finish();
    Ok(if is_list { JsonElements::Each(elements) } else { JsonElements::One(elements) })
}

/// The most bytes of elements that a body of this length becomes, beside their heap. Short texts may stand for long elements.
#[must_use]
pub fn most_expanded_bytes(body: u64) -> u64 {
    body.saturating_mul(EXPANSION).max(LEAST_EXPANDED)
}

/// The most bytes of elements of a type that [`parse_json`] makes of a text of this length, beside their heap. A short text may
/// stand for long elements: `""` is a text of a thousand characters.
#[must_use]
pub fn most_json_bytes(data_type: &DataType, text: u64) -> u64 {
    // Two bytes of text make at most one element.
    let most = (text / 2).saturating_add(1).saturating_mul(data_type.element_bytes().max(1) as u64);
    most.min(most_expanded_bytes(text))
}

/// The length of nested lists along a dimension: that of the first list at this depth.
///
/// # Errors
/// [`ParseError::Malformed`] if there is no list at this depth.
pub fn json_length(text: &[u8], dimension: usize) -> Result<u64, ParseError> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let length = ListLength { depth: dimension }.deserialize(&mut json);
    length.map_err(|error| malformed("nested lists", text, &error))
}

/// The error of a text that cannot be parsed, with what to write where it has a number that JSON has not.
fn malformed(format: &'static str, text: &[u8], error: &serde_json::Error) -> ParseError {
    let hint = bare_word(text, error)
        .map(|word| format!("; JSON has no `{word}`: of floats it is the text `\"{word}\"`"))
        .unwrap_or_default();
    ParseError::Malformed { format, reason: format!("{error}{hint}") }
}

/// The number at the place of an error that Python's `json` writes, and that is not JSON.
fn bare_word(text: &[u8], error: &serde_json::Error) -> Option<&'static str> {
    let line = text.split(|&byte| byte == b'\n').nth(error.line().checked_sub(1)?)?;
    let (before, rest) = line.split_at_checked(error.column().checked_sub(1)?)?;
    let letters = before.iter().rev().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-').count();
    let begin = before.len().checked_sub(letters)?;
    ["NaN", "-Infinity", "Infinity"].into_iter().find(|word| {
        line.get(begin..).is_some_and(|found| found.starts_with(word.as_bytes()))
            || rest.starts_with(word.as_bytes())
    })
}

/// Counts the items of the first list at a depth, and skips all others.
struct ListLength {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for ListLength {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ListLength {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list for each dimension")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<u64, A::Error> {
        let mut length = 0_u64;
        if let Some(depth) = self.depth.checked_sub(1) {
            length = list.next_element_seed(Self { depth })?.unwrap_or(0);
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(length);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            length = length.saturating_add(1);
        }
        Ok(length)
    }
}

/// Elements that are built one by one.
enum Built<'a> {
    Fixed(Vec<u8>),
    Variable(VariableElements<'a>),
}

impl Built<'_> {
    fn finish(self) -> Elements {
        match self {
            Self::Fixed(items) => Elements::fixed(Bytes::from(items)),
            Self::Variable(elements) => elements.finish(),
        }
    }
}

/// What is known while a text is read.
struct Reader<'a> {
    data_type: &'a DataType,
    shape: &'a [u64],
    elements: Built<'a>,
    /// The indices of the current element or list.
    place: Vec<u64>,
    /// Bytes that the elements may have.
    most: u64,
    failure: Option<ParseError>,
}

impl<'a> Reader<'a> {
    fn new(data_type: &'a DataType, shape: &'a [u64], most: u64) -> Self {
        let elements = if data_type.is_variable() {
            Built::Variable(VariableElements::new(data_type))
        } else {
            Built::Fixed(Vec::new())
        };
        Self { data_type, shape, elements, place: Vec::new(), most, failure: None }
    }

    fn push(&mut self, text: &str) -> Result<(), ParseError> {
        let wrong = |reason| ParseError::ElementAt { place: self.place.clone(), reason };
        check_values(self.data_type, text).map_err(wrong)?;
        let value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let element = element_of(self.data_type, &value).map_err(wrong)?;
        match &mut self.elements {
            Built::Fixed(items) => {
                if (items.len() as u64).saturating_add(element.len() as u64) > self.most {
                    return Err(ParseError::TooLong { limit: self.most });
                }
                items.extend_from_slice(&element);
            }
            Built::Variable(elements) => elements.push(&element)?,
        }
        Ok(())
    }
}

/// The nested lists from a depth on.
struct Lists<'r, 'a> {
    reader: &'r mut Reader<'a>,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Lists<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth < self.reader.shape.len() {
            return deserializer.deserialize_seq(self);
        }
        let text = <&RawValue as serde::Deserialize>::deserialize(deserializer)?.get();
        self.reader.push(text).map_err(|error| fail(self.reader, error))
    }
}

impl<'de> Visitor<'de> for Lists<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reader { shape, place, .. } = &*self.reader;
        let length = shape.get(self.depth).copied().unwrap_or_default();
        write!(f, "a list of {length} at {place:?} (the selection has the shape {shape:?})")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { reader, depth } = self;
        let expected = reader.shape.get(depth).copied().unwrap_or_default();
        let mut given = 0;
        loop {
            reader.place.push(given);
            let next =
                list.next_element_seed(Lists { reader: &mut *reader, depth: depth.saturating_add(1) })?;
            reader.place.pop();
            match next {
                Some(()) if given < expected => given += 1,
                None if given == expected => return Ok(()),
                Some(()) => given += 1,
                None => {}
            }
            let place = reader.place.clone();
            if given != expected && next.is_none() || given > expected {
                return Err(fail(reader, ParseError::ListLength { place, given, expected }));
            }
        }
    }
}

/// Keeps an error of ours, which the parser of JSON would turn into a text.
fn fail<E: Error>(reader: &mut Reader<'_>, error: ParseError) -> E {
    let text = error.to_string();
    reader.failure = Some(error);
    E::custom(text)
}

/// Whether the memory of an element's JSON is bounded by its data type. Elements of the others are lists of any length.
#[must_use]
pub fn is_bounded_by_type(data_type: &DataType) -> bool {
    !matches!(data_type, DataType::Json | DataType::VariableArray(_) | DataType::VariableBytes)
}

/// Rejects the text of an element with more values in it than an element of the type can have, before they are in memory: in
/// memory a value takes many times its text.
fn check_values(data_type: &DataType, text: &str) -> Result<(), String> {
    if text.starts_with('"') || !is_bounded_by_type(data_type) {
        return Ok(());
    }
    // A value for each byte, as bytes may be written, and the lists or members around them.
    let most = data_type.element_bytes().saturating_mul(4).saturating_add(16);
    // Those in texts count too: they are elements of a text's length then.
    let marks = text.bytes().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count();
    if marks > most { Err(format!("has more than {most} values in it")) } else { Ok(()) }
}

/// The bytes of an element, or what is wrong with its text.
fn element_of(data_type: &DataType, value: &Value) -> Result<Vec<u8>, String> {
    match (data_type, value) {
        (DataType::Json, value) => Ok(value.to_string().into_bytes()),
        (_, Value::Null) => Err("is `null`, which is no element".to_owned()),
        (DataType::NullTerminatedBytes { bytes }, Value::String(text)) => {
            let mut element = unescaped(text).ok_or("has an escape that is neither `\\\\` nor `\\xHH`")?;
            let length = *bytes as usize;
            if element.len() > length {
                return Err(format!("has {} bytes; an element has {length}", element.len()));
            }
            element.resize(length, 0);
            Ok(element)
        }
        (DataType::DateTime64(step), Value::String(text)) if text != "NaT" => {
            steps_of_date(*step, text).map(|steps| steps.to_le_bytes().to_vec())
        }
        (DataType::VariableArray(item), Value::Array(items)) => {
            let items: Result<Vec<_>, _> = items.iter().map(|value| element_of(item, value)).collect();
            items.map(|items| items.concat())
        }
        (DataType::Struct(structure), Value::Object(members)) => {
            let mut element = Vec::with_capacity(structure.element_bytes());
            for field in structure.fields() {
                let value =
                    members.get(&*field.name).ok_or_else(|| format!("has no member `{}`", field.name))?;
                element.extend(element_of(&field.data_type, value)?);
            }
            if members.len() == structure.fields().len() {
                Ok(element)
            } else {
                Err("has members that are no fields".to_owned())
            }
        }
        (DataType::Subarray(subarray), value) => {
            let mut element = Vec::new();
            let shape: Vec<usize> = subarray.shape().iter().map(|edge| *edge as usize).collect();
            inner_elements(subarray.item(), &shape, value, &mut element)?;
            Ok(element)
        }
        (data_type, value) => {
            let reason = |error| match error {
                // The member is that of a document: here it is an element.
                MetadataError::Invalid { reason, .. } => reason,
                error => error.to_string(),
            };
            let element = FillValue::from_v3(data_type, Some(value)).map_err(reason)?;
            Ok(element.as_bytes().to_vec())
        }
    }
}

/// The nested lists of a subarray.
fn inner_elements(
    item: &DataType,
    shape: &[usize],
    value: &Value,
    element: &mut Vec<u8>,
) -> Result<(), String> {
    let Some((length, inner)) = shape.split_first() else {
        element.extend(element_of(item, value)?);
        return Ok(());
    };
    let Some(items) = value.as_array().filter(|items| items.len() == *length) else {
        return Err(format!("has no list of {length} where its type has one"));
    };
    items.iter().try_for_each(|value| inner_elements(item, inner, value, element))
}

/// Text of bytes as `render` writes it: UTF-8, with `\xHH` for a byte that is not and `\\` for `\`.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(character) = chars.next() {
        match character {
            '\\' => match chars.next()? {
                '\\' => bytes.push(b'\\'),
                'x' => {
                    let digits: String = chars.by_ref().take(2).collect();
                    bytes.push(u8::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 2)?);
                }
                _ => return None,
            },
            other => bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(data_type: &DataType, shape: &[u64], text: &str) -> Vec<u8> {
        match parse_json(data_type, shape, text.as_bytes()) {
            Ok(JsonElements::Each(elements)) => elements.into_items().to_vec(),
            other => panic!("{other:?}"),
        }
    }

    fn wrong(data_type: &DataType, shape: &[u64], text: &str) -> String {
        parse_json(data_type, shape, text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn nested_lists_are_elements_in_c_order() {
        assert_eq!(each(&DataType::UInt8, &[2, 3], "[[1,2,3],[4,5,6]]"), [1, 2, 3, 4, 5, 6]);
        assert_eq!(each(&DataType::UInt8, &[0], "[]"), [0_u8; 0]);
        assert_eq!(each(&DataType::Bool, &[2], " [true, false] "), [1, 0]);
        assert_eq!(each(&DataType::Float32, &[1], "[\"NaN\"]")[3], 0x7f);
        assert_eq!(
            each(&DataType::NullTerminatedBytes { bytes: 4 }, &[1], r#"["a\\xff\\\\"]"#),
            b"a\xff\\\0"
        );
    }

    #[test]
    fn a_short_text_makes_no_more_elements_than_memory_is_held_for() {
        let data_type = DataType::NullTerminatedBytes { bytes: 1 << 20 };
        let texts = |count: usize| format!("[{}]", vec!["\"\""; count].join(","));
        let made = parse_json(&data_type, &[16], texts(16).as_bytes());
        assert!(matches!(made, Ok(JsonElements::Each(elements)) if elements.items().len() == 16 << 20));
        let refused = parse_json(&data_type, &[17], texts(17).as_bytes());
        assert_eq!(refused, Err(ParseError::TooLong { limit: 16 << 20 }));
    }

    #[test]
    fn numbers_that_are_no_json_are_answered_with_their_text() {
        for (text, word) in [
            ("[[NaN, 1]]", "NaN"),
            ("[[1,\n NaN]]", "NaN"),
            ("[[1, Infinity]]", "Infinity"),
            ("[[1, -Infinity]]", "-Infinity"),
        ] {
            let said = wrong(&DataType::Float32, &[1, 2], text);
            let hint = format!("JSON has no `{word}`: of floats it is the text `\"{word}\"`");
            assert!(said.ends_with(&hint), "{text}: {said}");
        }
        assert!(!wrong(&DataType::Float32, &[1, 2], "[[1, none]]").contains("JSON has no"));
    }

    #[test]
    fn one_element_is_for_all_places() {
        let one = parse_json(&DataType::UInt16, &[5, 5], b"258").unwrap();
        assert_eq!(one, JsonElements::One(Elements::fixed(Bytes::from_static(&[2, 1]))));
        let text = parse_json(&DataType::String, &[5], "\"é\"".as_bytes()).unwrap();
        let JsonElements::One(text) = text else { panic!("{text:?}") };
        assert_eq!(text.variable_elements().collect::<Vec<_>>(), ["é".as_bytes()]);
    }

    #[test]
    fn what_is_no_element_or_not_of_the_shape_is_named_with_its_place() {
        assert!(wrong(&DataType::UInt8, &[2, 2], "[[1,2],[3,256]]").starts_with("the element at [1, 1]"));
        assert!(wrong(&DataType::Int32, &[2], "[1, 1.5]").starts_with("the element at [1] must be a number"));
        assert!(wrong(&DataType::Int32, &[1], "[\"NaN\"]").contains("[0]"));
        assert!(wrong(&DataType::Float64, &[1], "[null]").contains("null"));
        assert!(wrong(&DataType::UInt8, &[2, 2], "[[1,2],[3]]").starts_with("the list at [1] has 1 item, "));
        assert!(wrong(&DataType::UInt8, &[2], "[1,2,3]").starts_with("the list has 3 items"));
        assert!(wrong(&DataType::UInt8, &[2], "[1,2").starts_with("the body is not JSON"));
        assert!(wrong(&DataType::UInt8, &[2], "[1,2] 3").starts_with("the body is not JSON"));
        let flat = parse_json(&DataType::UInt8, &[2, 1], b"[1,2]").unwrap_err();
        assert_eq!(flat.code(), "shape-mismatch");
        assert!(flat.to_string().contains("a list of 1 at [0]"), "{flat}");
        assert!(wrong(&DataType::UInt8, &[2], &"[".repeat(100_000)).starts_with("the "));
        let many = format!("[[{}0]]", "0,".repeat(1000));
        assert!(wrong(&DataType::UInt8, &[1], &many).contains("more than 20 values"));
    }
}
