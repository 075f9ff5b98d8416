//! Durations with their unit: `"30s"`, `"250ms"`, `"10m"`, `"1h 30m"`.
//!
//! A number without a unit is rejected, because it could be seconds or milliseconds.

use std::fmt;
use std::time::Duration;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserializer, Serializer};

/// The duration that a text gives, such as `"30s"`; `None` if it is none.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    humantime::parse_duration(text.trim()).ok()
}

/// A duration as text, such as `30s`. [`parse`] gives the same duration.
#[must_use]
pub fn format(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

/// Writes a duration as text.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*duration))
}

/// Reads a duration from text.
///
/// # Errors
/// Anything but a text with a unit.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    struct DurationVisitor;

    impl Visitor<'_> for DurationVisitor {
        type Value = Duration;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a duration such as \"30s\" or \"250ms\"")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
            parse(text).ok_or_else(|| match text.trim() {
                // Digits alone are no secret.
                digits if is_number(digits) => {
                    E::custom(format_args!("`{digits}` has no unit; write `{digits}s`"))
                }
                _ => E::invalid_value(Unexpected::Str(text), &self),
            })
        }
    }

    deserializer.deserialize_str(DurationVisitor)
}

/// Whether a text is a short decimal number.
fn is_number(text: &str) -> bool {
    (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        for (text, expected) in [
            ("30s", Some(Duration::from_secs(30))),
            (" 2m ", Some(Duration::from_mins(2))),
            ("500ms", Some(Duration::from_millis(500))),
            ("1h 30m", Some(Duration::from_mins(90))),
            ("0s", Some(Duration::ZERO)),
            ("30", None),
            ("1.5s", Some(Duration::from_millis(1500))),
            ("-1s", None),
            ("s", None),
            ("30 parsecs", None),
            ("1é", None),
            ("", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn formatted_durations_parse_to_the_same_value() {
        for (millis, text) in [
            (0, "0s"),
            (250, "250ms"),
            (30_000, "30s"),
            (300_000, "5m"),
            (86_400_000, "1day"),
            (90_500, "1m 30s 500ms"),
        ] {
            let duration = Duration::from_millis(millis);
            assert_eq!(format(duration), text);
            assert_eq!(parse(text), Some(duration));
        }
    }
}
