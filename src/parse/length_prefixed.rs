//! [`parse_length_prefixed`]: elements of variable length, each after its length, as `format=bytes` returns them.

use super::error::ParseError;
use super::variable::VariableElements;
use crate::chunk::Elements;
use crate::metadata::DataType;

/// Parses a number of elements, each after its length (a little-endian `u32`).
///
/// # Errors
/// [`ParseError::Malformed`] if there are fewer or more; [`ParseError::Element`].
pub fn parse_length_prefixed(
    data_type: &DataType,
    elements: u64,
    body: &[u8],
) -> Result<Elements, ParseError> {
    let malformed = |reason: String| ParseError::Malformed {
        format: "a sequence of elements, each after its length in bytes as a little-endian `uint32`",
        reason,
    };
    let mut parsed = VariableElements::new(data_type);
    let mut rest = body;
    for number in 0..elements {
        let element = rest.split_first_chunk().and_then(|(length, after)| {
            after.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX))
        });
        let Some((element, after)) = element else {
            return Err(malformed(format!("it ends in element {number} of {elements}, counted from 0")));
        };
        parsed.push(element)?;
        rest = after;
    }
    if rest.is_empty() {
        Ok(parsed.finish())
    } else {
        Err(malformed(format!("{} bytes follow the {elements} elements of the selection", rest.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_exactly_the_elements_of_the_selection() {
        let body = b"\x02\0\0\0ab\0\0\0\0";
        let parsed = parse_length_prefixed(&DataType::String, 2, body).unwrap();
        assert_eq!(parsed.variable_elements().collect::<Vec<_>>(), [&b"ab"[..], b""]);
        assert!(parse_length_prefixed(&DataType::String, 1, body).is_err());
        assert!(parse_length_prefixed(&DataType::String, 3, body).is_err());
        assert!(parse_length_prefixed(&DataType::String, 1, b"\xff\xff\xff\xffab").is_err());
        assert!(parse_length_prefixed(&DataType::String, 1, b"\x01\0\0\0\xff").is_err());
        assert!(parse_length_prefixed(&DataType::Json, 1, b"\x03\0\0\0{a}").is_err());
    }
}
