//! Sizes and times with their units: `decoded_bytes = "1GiB"`, `idle_seconds = "2m"`, `queue_ms = "5s"`.
//!
//! What a key counts is in its name, and a plain number is so many of that. A text is counted here, before anything is
//! read, so that no other room knows of units.

use super::tree::{Entry, Node};

/// What a key counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    Seconds,
    Milliseconds,
}

impl Unit {
    /// What the key of this name counts.
    pub(super) fn of(key: &str) -> Option<Self> {
        if key.ends_with("_bytes") || key.ends_with("bytes_per_second") {
            Some(Self::Bytes)
        } else if key.ends_with("_seconds") {
            Some(Self::Seconds)
        } else if key.ends_with("_ms") {
            Some(Self::Milliseconds)
        } else {
            None
        }
    }

    /// What can be written.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Bytes => "a size such as 268435456 or \"256MiB\"",
            Self::Seconds => "a time such as 90 (seconds) or \"90s\"",
            Self::Milliseconds => "a time such as 500 (milliseconds) or \"500ms\"",
        }
    }

    /// How many a text says, if it says a whole number of them.
    fn count(self, text: &str) -> Option<i64> {
        const SIZES: [(&str, i64); 10] = [
            ("B", 1),
            ("kB", 1_000),
            ("KB", 1_000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("TB", 1_000_000_000_000),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
            ("TiB", 1 << 40),
        ];
        const TIMES: [(&str, i64); 5] =
            [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
        let text = text.trim();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at_checked(digits)?;
        let (units, each): (&[_], _) = match self {
            Self::Bytes => (&SIZES, 1),
            Self::Seconds => (&TIMES, 1_000),
            Self::Milliseconds => (&TIMES, 1),
        };
        let (_, size) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
        let all = number.parse::<i64>().ok()?.checked_mul(*size)?;
        (all % each == 0).then_some(all / each)
    }
}

/// Puts numbers in the places of sizes and times that are written with units. What cannot be counted stays, to be refused
/// where it is read.
pub(super) fn count(entry: &mut Entry) {
    let Node::Table(entries) = &mut entry.node else { return };
    for (key, entry) in entries {
        let counted = Unit::of(key).and_then(|unit| unit.count(entry.text()?));
        match counted {
            Some(number) => entry.node = Node::Integer(number),
            None => count(entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted_in_what_the_key_says() {
        for (key, text, expected) in [
            ("decoded_bytes", "1GiB", Some(1 << 30)),
            ("decoded_bytes", "64 MiB", Some(64 << 20)),
            ("decoded_bytes", "5MB", Some(5_000_000)),
            ("write_bytes_per_second", "16KiB", Some(16 << 10)),
            ("decoded_bytes", "12B", Some(12)),
            ("idle_seconds", "30s", Some(30)),
            ("idle_seconds", "2m", Some(120)),
            ("idle_seconds", "500ms", None),
            ("queue_ms", "500ms", Some(500)),
            ("queue_ms", "1s", Some(1000)),
            ("decoded_bytes", "1.5GiB", None),
            ("decoded_bytes", "-1B", None),
            ("decoded_bytes", "GiB", None),
            ("decoded_bytes", "1 GiBs", None),
            ("decoded_bytes", "9999999999TiB", None),
            ("decoded_bytes", "1é", None),
            ("decoded_bytes", "", None),
        ] {
            assert_eq!(Unit::of(key).unwrap().count(text), expected, "{key} {text}");
        }
        assert_eq!(Unit::of("chunks"), None);
    }
}
