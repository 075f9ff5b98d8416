//! Sizes in bytes with their unit: `"64MiB"` (2^20 bytes each), `"1GB"` (10^9 bytes each), or a plain number of bytes.
//!
//! The crates for this read and write fractions of a unit as floating point, so that a size that was written could be another
//! one when it is read again; budgets of memory must stay exact. Hence a parser of its own, for whole numbers.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserializer, Serializer};

/// The units, from the largest to the smallest.
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

/// Most characters of a number in a message.
const MAX_NUMBER: usize = 9;

/// The number of bytes that a text gives, such as `"64MiB"`; `None` if it is no size, or does not fit in 64 bits.
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let unit = match unit.trim_start() {
        "KB" => "kB",
        unit => unit,
    };
    let (_, bytes) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*bytes)
}

/// What is wrong with a text that is nearly a size, and what to write instead. Other texts may be secrets.
fn advice(text: &str) -> Option<String> {
    let end = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at_checked(end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || number.len() > MAX_NUMBER || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let unit = unit.trim_start();
    if unit.is_empty() && number == whole {
        return Some(format!("`{text}` has no unit; write `{whole}B`, `{whole}KiB` or `{whole}MiB`"));
    }
    // `g` and `gib` are powers of two, as to Docker.
    let letter = unit.get(..1)?.to_ascii_uppercase();
    let name = match unit.get(1..)?.to_ascii_lowercase().as_str() {
        "" | "ib" => format!("{letter}iB"),
        "b" => format!("{}B", letter.replace('K', "k")),
        _ => return None,
    };
    let place = UNITS.iter().position(|(known, _)| *known == name)?;
    if number == whole {
        if unit == name {
            return Some(format!("`{text}` is too large here"));
        }
        return Some(format!("`{text}` has no known unit; write `{number}{name}`"));
    }
    // The next unit of the same kind is two places below.
    let (smaller, each) = UNITS.get(place + 2)?;
    let ratio = UNITS.get(place)?.1 / each;
    let parts = fraction.parse::<u64>().ok()?.checked_mul(ratio)?;
    let parts = parts / 10_u64.pow(u32::try_from(fraction.len()).ok()?);
    let number =
        whole.parse::<u64>().ok()?.checked_mul(ratio)?.checked_add(parts).filter(|number| *number > 0)?;
    Some(format!("`{text}` is no whole number; write `{number}{smaller}`"))
}

/// A size as text, in the largest unit of which it is a whole number, such as `64MiB`. [`parse`] gives the same size.
#[must_use]
pub fn format(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, each)| bytes >= *each && bytes.is_multiple_of(*each));
    let (name, each) = unit.copied().unwrap_or(("B", 1));
    format!("{}{name}", bytes / each)
}

/// Writes a size as text.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<T, S>(size: &T, serializer: S) -> Result<S::Ok, S::Error>
where
    T: Copy + TryInto<u64>,
    S: Serializer,
{
    serializer.serialize_str(&format((*size).try_into().unwrap_or(u64::MAX)))
}

/// Reads a size from text, or from a number of bytes.
///
/// # Errors
/// Anything else, and sizes that do not fit in the type.
pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: TryFrom<u64>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(SizeVisitor(PhantomData))
}

struct SizeVisitor<T>(PhantomData<T>);

impl<T: TryFrom<u64>> Visitor<'_> for SizeVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as \"256MiB\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let size = parse(text).and_then(|bytes| T::try_from(bytes).ok());
        size.ok_or_else(|| match advice(text.trim()) {
            Some(advice) => E::custom(advice),
            None => E::invalid_value(Unexpected::Str(text), &self),
        })
    }

    fn visit_u64<E: Error>(self, bytes: u64) -> Result<T, E> {
        T::try_from(bytes).ok().ok_or_else(|| E::invalid_value(Unexpected::Unsigned(bytes), &self))
    }

    fn visit_i64<E: Error>(self, bytes: i64) -> Result<T, E> {
        let size = u64::try_from(bytes).ok().and_then(|bytes| T::try_from(bytes).ok());
        size.ok_or_else(|| E::invalid_value(Unexpected::Signed(bytes), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_numbers_with_units() {
        for (text, expected) in [
            ("1GiB", Some(1 << 30)),
            ("64 MiB", Some(64 << 20)),
            ("5MB", Some(5_000_000)),
            ("16KiB", Some(16 << 10)),
            ("3KB", Some(3000)),
            ("12B", Some(12)),
            ("0B", Some(0)),
            ("12", None),
            ("1.5GiB", None),
            ("-1B", None),
            ("GiB", None),
            ("1 GiBs", None),
            ("99999999999TiB", None),
            ("1é", None),
            ("", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn the_spellings_of_other_programs_are_answered_with_what_to_write() {
        for (text, said) in [
            ("2G", Some("`2G` has no known unit; write `2GiB`")),
            ("512m", Some("`512m` has no known unit; write `512MiB`")),
            ("4k", Some("`4k` has no known unit; write `4KiB`")),
            ("2gb", Some("`2gb` has no known unit; write `2GB`")),
            ("2 gib", Some("`2 gib` has no known unit; write `2GiB`")),
            ("3kib", Some("`3kib` has no known unit; write `3KiB`")),
            ("1.5GiB", Some("`1.5GiB` is no whole number; write `1536MiB`")),
            ("1.5g", Some("`1.5g` is no whole number; write `1536MiB`")),
            ("0.25MB", Some("`0.25MB` is no whole number; write `250kB`")),
            ("512", Some("`512` has no unit; write `512B`, `512KiB` or `512MiB`")),
            ("99999999TiB", Some("`99999999TiB` is too large here")),
            ("1.5", None),
            ("0.0001GiB", None),
            ("1.2.3GiB", None),
            ("12345678901234", None),
            ("1 gigabyte", None),
            ("much", None),
            ("2é", None),
            ("", None),
        ] {
            assert_eq!(advice(text).as_deref(), said, "{text}");
        }
    }

    #[test]
    fn formatted_sizes_parse_to_the_same_value() {
        for (bytes, text) in [
            (0, "0B"),
            (1, "1B"),
            (1000, "1kB"),
            (1 << 10, "1KiB"),
            (5_000_000, "5MB"),
            (96 << 20, "96MiB"),
            (4 << 30, "4GiB"),
            (1025, "1025B"),
            (u64::MAX, "18446744073709551615B"),
        ] {
            assert_eq!(format(bytes), text);
            assert_eq!(parse(text), Some(bytes));
        }
    }
}
