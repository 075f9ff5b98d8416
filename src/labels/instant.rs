//! Instants of a calendar: attoseconds since its day 0, and their text in ISO 8601.
//!
//! The unit is the finest of `numpy.datetime64`. 128 bits hold five billion years of it.

use std::fmt::Write;

use super::calendar::Calendar;

/// An instant of a calendar: attoseconds since the beginning of its day 0. There are no leap seconds.
pub(super) type Instant = i128;

/// The instant of what is no time: `NaT`, or a NaN.
pub(super) const NOT_A_TIME: Instant = i128::MIN;
/// Attoseconds of a second.
pub(super) const SECOND: i128 = 1_000_000_000_000_000_000;
/// Attoseconds of a day.
pub(super) const DAY: i128 = 86_400 * SECOND;

/// The beginning of a day of a calendar.
pub(super) fn beginning(day: i128) -> Option<Instant> {
    day.checked_mul(DAY)
}

/// An instant in ISO 8601, as precise as it is: `2020-01-01T00:00:00`, with digits of a second where they are not 0. Years
/// that do not have four digits have a sign and at least six digits.
pub(super) fn text(calendar: Calendar, instant: Instant) -> String {
    if instant == NOT_A_TIME {
        return "NaT".to_owned();
    }
    let (year, month, day) = calendar.date(instant.div_euclid(DAY));
    let rest = instant.rem_euclid(DAY);
    let (seconds, fraction) = (rest / SECOND, rest % SECOND);
    let mut text = match year {
        0..=9999 => format!("{year:04}"),
        _ => format!("{year:+07}"),
    };
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    // Writing to a `String` cannot fail.
    let _ = write!(text, "-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}");
    if fraction != 0 {
        let digits = format!("{fraction:018}");
        let _ = write!(text, ".{}", digits.trim_end_matches('0'));
    }
    text
}

/// A span of time in words: `6 hours`, `1 day`, `0.25 seconds`.
pub(super) fn span_text(span: i128) -> String {
    for (unit, name) in [(DAY, "day"), (3600 * SECOND, "hour"), (60 * SECOND, "minute")] {
        if span % unit == 0 && span != 0 {
            let count = span / unit;
            let plural = if count == 1 { "" } else { "s" };
            return format!("{count} {name}{plural}");
        }
    }
    let (whole, fraction) = (span / SECOND, span % SECOND);
    let digits = format!("{:018}", fraction.abs());
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() { format!("{whole} seconds") } else { format!("{whole}.{digits} seconds") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_written_as_precisely_as_it_is() {
        let calendar = Calendar::ProlepticGregorian;
        for (instant, expected) in [
            (0, "1970-01-01T00:00:00"),
            (SECOND / 4, "1970-01-01T00:00:00.25"),
            (-1, "1969-12-31T23:59:59.999999999999999999"),
            (DAY * 2_932_897, "+010000-01-01T00:00:00"),
            (NOT_A_TIME, "NaT"),
        ] {
            assert_eq!(text(calendar, instant), expected);
        }
        assert_eq!(text(Calendar::Day360, 59 * DAY), "1970-02-30T00:00:00");
        for (span, expected) in [
            (DAY, "1 day"),
            (6 * 3600 * SECOND, "6 hours"),
            (90 * SECOND, "90 seconds"),
            (SECOND / 4, "0.25 seconds"),
        ] {
            assert_eq!(span_text(span), expected);
        }
    }
}
