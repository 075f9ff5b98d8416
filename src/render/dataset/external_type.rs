//! [`ExternalType`]: the types of values in NetCDF files and DAP responses.

/// A type of values outside of Zarr. The names are those of NetCDF ("NetCDF Classic Format Specification", `nc_type`), without
/// the prefix `NC_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExternalType {
    /// A byte of text.
    Char,
    /// An integer of 8 bits with a sign.
    Byte,
    /// An integer of 8 bits.
    UByte,
    /// An integer of 16 bits with a sign.
    Short,
    /// An integer of 16 bits.
    UShort,
    /// An integer of 32 bits with a sign.
    Int,
    /// An integer of 32 bits.
    UInt,
    /// An integer of 64 bits with a sign.
    Int64,
    /// An integer of 64 bits.
    UInt64,
    /// IEEE 754 binary32.
    Float,
    /// IEEE 754 binary64.
    Double,
}

impl ExternalType {
    /// Bytes of a value.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Char | Self::Byte | Self::UByte => 1,
            Self::Short | Self::UShort => 2,
            Self::Int | Self::UInt | Self::Float => 4,
            Self::Int64 | Self::UInt64 | Self::Double => 8,
        }
    }

    /// Whether netCDF-3 has the type, and so CDF-2.
    #[must_use]
    pub const fn is_classic(self) -> bool {
        matches!(self, Self::Char | Self::Byte | Self::Short | Self::Int | Self::Float | Self::Double)
    }

    /// The smallest and the largest value of an integer type.
    #[must_use]
    pub const fn integer_bounds(self) -> Option<(i128, i128)> {
        let (bits, is_signed) = match self {
            Self::Byte => (8, true),
            Self::UByte => (8, false),
            Self::Short => (16, true),
            Self::UShort => (16, false),
            Self::Int => (32, true),
            Self::UInt => (32, false),
            Self::Int64 => (64, true),
            Self::UInt64 => (64, false),
            Self::Char | Self::Float | Self::Double => return None,
        };
        let count = 1_i128 << bits;
        Some(if is_signed { (-count / 2, count / 2 - 1) } else { (0, count - 1) })
    }

    /// The value that big-endian bytes of this type have, as text that has all its digits.
    #[must_use]
    pub fn text_of(self, bytes: &[u8]) -> String {
        let integer = |is_signed: bool| {
            let negative = is_signed && bytes.first().is_some_and(|first| first & 0x80 != 0);
            let start: i128 = if negative { -1 } else { 0 };
            bytes.iter().fold(start, |number, byte| (number << 8) | i128::from(*byte))
        };
        match self {
            Self::Char => String::from_utf8_lossy(bytes).into_owned(),
            Self::Byte | Self::Short | Self::Int | Self::Int64 => integer(true).to_string(),
            Self::UByte | Self::UShort | Self::UInt | Self::UInt64 => integer(false).to_string(),
            Self::Float => {
                let number = f32::from_be_bytes(<[u8; 4]>::try_from(bytes).unwrap_or_default());
                float_text(number.into(), number.to_string(), format!("{number:e}"))
            }
            Self::Double => {
                let number = f64::from_be_bytes(<[u8; 8]>::try_from(bytes).unwrap_or_default());
                float_text(number, number.to_string(), format!("{number:e}"))
            }
        }
    }
}

/// The text of a float: its digits, with an exponent if it is large or small.
fn float_text(number: f64, plain: String, exponential: String) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
    } else if number != 0.0 && !(1e-5..1e15).contains(&number.abs()) {
        exponential
    } else {
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_with_all_their_digits() {
        for (external, bytes, text) in [
            (ExternalType::Byte, vec![0xff], "-1"),
            (ExternalType::UByte, vec![0xff], "255"),
            (ExternalType::Short, vec![0x80, 0], "-32768"),
            (ExternalType::UInt64, vec![0xff; 8], "18446744073709551615"),
            (ExternalType::Float, 0.1_f32.to_be_bytes().to_vec(), "0.1"),
            (ExternalType::Float, 1e20_f32.to_be_bytes().to_vec(), "1e20"),
            (ExternalType::Double, 0.1_f64.to_be_bytes().to_vec(), "0.1"),
            (
                ExternalType::Double,
                9.969_209_968_386_869e36_f64.to_be_bytes().to_vec(),
                "9.969209968386869e36",
            ),
            (ExternalType::Double, f64::NAN.to_be_bytes().to_vec(), "NaN"),
            (ExternalType::Double, f64::NEG_INFINITY.to_be_bytes().to_vec(), "-Infinity"),
        ] {
            assert_eq!(external.text_of(&bytes), text, "{external:?}");
        }
    }
}
