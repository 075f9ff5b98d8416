//! [`ObjectId`]: the ids of snapshots, manifests and chunks, and their names (Crockford's base 32).

use std::fmt;

/// The digits of the encoding: no I, L, O and U.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The id of a snapshot, a manifest or a file of chunks: 12 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub(super) [u8; Self::BYTES]);

impl ObjectId {
    /// Bytes of an id.
    pub(super) const BYTES: usize = 12;
    /// Characters of its name: 96 bits, 5 in each.
    pub(super) const CHARACTERS: usize = 20;

    /// The id of a name: 20 characters, in upper case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if name.len() != Self::CHARACTERS {
            return None;
        }
        let mut value = 0_u128;
        for byte in name.bytes() {
            let digit = DIGITS.iter().position(|digit| *digit == byte)?;
            value = value << 5 | u128::try_from(digit).ok()?;
        }
        // 100 bits, of which the last 4 are padding.
        let id = (value.trailing_zeros() >= 4).then_some(value >> 4)?;
        let bytes = id.to_be_bytes();
        bytes.get(4..)?.try_into().ok().map(Self)
    }
}

/// The id of a node, in all snapshots that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StoredNodeId(pub(super) [u8; 8]);

/// The name of the id.
impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0.iter().fold(0_u128, |value, byte| value << 8 | u128::from(*byte)) << 4;
        for place in (0..Self::CHARACTERS).rev() {
            let digit = usize::try_from(value >> (5 * place) & 0x1f).unwrap_or_default();
            let digit = DIGITS.get(digit).copied().unwrap_or_default();
            write!(f, "{}", char::from(digit))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_snapshot_has_the_name_that_the_specification_gives_it() {
        let id = ObjectId([0x0b, 0x1c, 0xc8, 0xd6, 0x78, 0x75, 0x80, 0xf0, 0xe3, 0x3a, 0x65, 0x34]);
        assert_eq!(id.to_string(), "1CECHNKREP0F1RSTCMT0");
        assert_eq!(ObjectId::parse("1CECHNKREP0F1RSTCMT0"), Some(id));
        for odd in [
            "",
            "1cechnkrep0f1rstcmt0",
            "1CECHNKREP0F1RSTCMT",
            "1CECHNKREP0F1RSTCMTZ",
            "1CECHNKREP0F1RSTCMTU",
        ] {
            assert_eq!(ObjectId::parse(odd), None, "{odd}");
        }
    }
}
