//! Text elements of fixed length (Zarr extensions, "data-types"), and the canonical form of JSON values.
//!
//! Only zeros at the end are padding; a zero within the text belongs to it. Encodings other than UTF-32 are not detected.

use serde_json::Value;

/// The bytes of a text without the zeros at its end.
#[must_use]
pub fn without_padding(element: &[u8]) -> &[u8] {
    let end = element.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    element.get(..end).unwrap_or_default()
}

/// The text of an element of little-endian UTF-32, without the zeros at its end.
///
/// # Errors
/// The first number that is not a character: a surrogate, or one above U+10FFFF.
pub fn utf32_text(element: &[u8]) -> Result<String, u32> {
    let (characters, _) = element.as_chunks();
    let end = characters.iter().rposition(|&character| character != [0; 4]).map_or(0, |last| last + 1);
    let numbers = characters.iter().take(end).map(|&character| u32::from_le_bytes(character));
    numbers.map(|number| char::from_u32(number).ok_or(number)).collect()
}

/// A JSON value as text without whitespace, with the members of objects sorted by name.
#[must_use]
pub fn canonical_json(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
            Value::Object(members) => {
                let mut members: Vec<_> =
                    members.iter().map(|(name, value)| (name.clone(), sorted(value))).collect();
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
                Value::Object(members.into_iter().collect())
            }
            scalar => scalar.clone(),
        }
    }
    sorted(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(numbers: &[u32]) -> Result<String, u32> {
        utf32_text(&numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>())
    }

    #[test]
    fn only_zeros_at_the_end_are_stripped() {
        assert_eq!(without_padding(b"a\0b\0\0"), b"a\0b");
        assert_eq!(without_padding(b"\0\0"), b"");
        assert_eq!(without_padding(b""), b"");
        assert_eq!(text(&[0x61, 0, 0x100, 0, 0]), Ok("a\0\u{100}".to_owned()));
        assert_eq!(text(&[0, 0]), Ok(String::new()));
    }

    #[test]
    fn numbers_that_are_not_characters_are_rejected() {
        assert_eq!(text(&[0x61, 0x10_ffff, 0xd7ff, 0xe000]), Ok("a\u{10ffff}\u{d7ff}\u{e000}".to_owned()));
        for number in [0xd800, 0xdfff, 0x11_0000, 0x6100_0000, u32::MAX] {
            assert_eq!(text(&[0x61, number, 0xd800]), Err(number));
        }
    }
}
