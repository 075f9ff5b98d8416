//! Bytes as lower-case hexadecimal digits, by a table: every read of a cached file compares a hundred of them.

const DIGITS: [u8; 16] = *b"0123456789abcdef";

/// The digits of all bytes.
static PAIRS: [[u8; 2]; 256] = {
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < pairs.len() {
        pairs[byte] = [DIGITS[byte >> 4], DIGITS[byte & 0xf]];
        byte += 1;
    }
    pairs
};

/// The two digits of a byte, in ASCII.
pub(crate) fn digits(byte: u8) -> [u8; 2] {
    PAIRS.get(usize::from(byte)).copied().unwrap_or_default()
}

/// The first 128 bits of a digest, as an opaque tag.
pub(crate) fn digest_tag(digest: &[u8]) -> String {
    let mut tag = String::with_capacity(32);
    tag.extend(digest.iter().take(16).flat_map(|byte| digits(*byte)).map(char::from));
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_the_digits_that_the_standard_library_gives_it() {
        for byte in 0..=u8::MAX {
            assert_eq!(digits(byte).map(char::from).iter().collect::<String>(), format!("{byte:02x}"));
        }
        let digest: Vec<u8> = (0..20).collect();
        assert_eq!(digest_tag(&digest), "000102030405060708090a0b0c0d0e0f");
        assert_eq!(digest_tag(&[0xff]), "ff");
    }
}
