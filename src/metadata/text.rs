//! Elements that are text: what of an element of fixed length belongs to it (Zarr extensions, "data-types"), and the one
//! form of a JSON value.
//!
//! Only the zeros at the end are filling; one within the text is a part of it. Encodings other than UTF-32 are not
//! guessed here.

use serde_json::Value;

/// The bytes of a text without the zeros behind it.
#[must_use]
pub fn without_padding(element: &[u8]) -> &[u8] {
    let end = element.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    element.get(..end).unwrap_or_default()
}

/// The text of an element of little-endian characters of four bytes each, without the zeros behind it.
///
/// # Errors
/// The first number that is no character: a surrogate, or one above U+10FFFF.
pub fn utf32_text(element: &[u8]) -> Result<String, u32> {
    let (characters, _) = element.as_chunks();
    let end = characters.iter().rposition(|&character| character != [0; 4]).map_or(0, |last| last + 1);
    let numbers = characters.iter().take(end).map(|&character| u32::from_le_bytes(character));
    numbers.map(|number| char::from_u32(number).ok_or(number)).collect()
}

/// A JSON value in one line, the members of its objects in the order of their names.
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
            plain => plain.clone(),
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
    fn only_zeros_at_the_end_are_filling() {
        assert_eq!(without_padding(b"a\0b\0\0"), b"a\0b");
        assert_eq!(without_padding(b"\0\0"), b"");
        assert_eq!(without_padding(b""), b"");
        assert_eq!(text(&[0x61, 0, 0x100, 0, 0]), Ok("a\0\u{100}".to_owned()));
        assert_eq!(text(&[0, 0]), Ok(String::new()));
    }

    #[test]
    fn a_number_that_is_no_character_is_an_error() {
        assert_eq!(text(&[0x61, 0x10_ffff, 0xd7ff, 0xe000]), Ok("a\u{10ffff}\u{d7ff}\u{e000}".to_owned()));
        for number in [0xd800, 0xdfff, 0x11_0000, 0x6100_0000, u32::MAX] {
            assert_eq!(text(&[0x61, number, 0xd800]), Err(number));
        }
    }
}
