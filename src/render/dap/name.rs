//! Names in DAP2 documents and constraints: what is no letter, digit or one of a few signs is percent-encoded.

use std::fmt::Write;

/// The name of a variable, dimension or attribute, as documents have it. A dot separates the members of a grid, so one in a
/// name is encoded.
#[must_use]
pub fn dap_name(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    if encoded.is_empty() { "_".to_owned() } else { encoded }
}

/// A name of a constraint, of which `%` begins an encoded byte. What is no such byte stays.
pub(in crate::render) fn decoded(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digit = |place: usize| after.get(place).and_then(|byte| char::from(*byte).to_digit(16));
        if let (b'%', Some(high), Some(low)) = (first, digit(0), digit(1)) {
            bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_to_what_they_were() {
        for (name, encoded) in
            [("air", "air"), ("a b", "a%20b"), ("a.b", "a%2Eb"), ("t\u{e9}", "t%C3%A9"), ("50%", "50%25")]
        {
            assert_eq!(dap_name(name), encoded);
            assert_eq!(decoded(encoded), name);
        }
        assert_eq!(decoded("50%"), "50%");
        assert_eq!(decoded("%ff"), "%ff");
    }
}
