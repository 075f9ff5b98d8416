//! [`Timestamp`]: a point in time as configuration files write it, a TOML date or a date and time in UTC.
//!
//! The grammar of RFC 3339 with `Z` only; a date stands for its first second. This module knows no current time.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Seconds since 1970, and the text that was parsed.
#[derive(Clone, PartialEq, Eq)]
pub struct Timestamp {
    seconds: u64,
    text: String,
}

impl Timestamp {
    /// Parses `2030-01-31`, or `2030-01-31T12:00:00Z`; `None` if the text is neither.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (date, time) = match text.split_once(['T', 't', ' ']) {
            Some((date, time)) => (date, Some(time.strip_suffix(['Z', 'z'])?)),
            None => (text, None),
        };
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let [hour, minute, second] = time.map_or(Some([0; 3]), |time| numbers(time, ':', [2, 2, 2]))?;
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let february = if is_leap { 29 } else { 28 };
        let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let before = usize::try_from(month.checked_sub(1)?).ok()?;
        let days_of_month = *months.get(before)?;
        if year < 1970 || !(1..=days_of_month).contains(&day) || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
        let days_of_years = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969);
        let days_of_months: u64 = months.iter().take(before).sum();
        let days = days_of_years + days_of_months + day - 1;
        let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
        Some(Self { seconds, text: text.to_owned() })
    }

    /// Seconds since 1970.
    #[must_use]
    pub fn seconds(&self) -> u64 {
        self.seconds
    }
}

/// Parses three decimal numbers with these numbers of digits.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(separator);
    let mut next = |digits: usize| {
        let part = parts.next()?;
        let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse().ok()).flatten()
    };
    let [first, second, third] = digits;
    let numbers = [next(first)?, next(second)?, next(third)?];
    parts.next().is_none().then_some(numbers)
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom("expected a date, or a date and time in UTC, as in 2030-01-31T12:00:00Z")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_seconds_since_1970() {
        for (text, seconds) in [
            ("1970-01-01", Some(0)),
            ("1970-01-02T00:00:01Z", Some(86_401)),
            ("2000-02-29", Some(951_782_400)),
            ("2000-03-01", Some(951_868_800)),
            ("2026-11-21T18:46:00Z", Some(1_795_286_760)),
            ("2100-03-01", Some(4_107_542_400)),
            ("2026-12-31 23:59:59z", Some(1_798_761_599)),
            ("2100-02-29", None),
            ("1969-12-31", None),
            ("2026-13-01", None),
            ("2026-00-01", None),
            ("2026-01-00", None),
            ("2026-1-1", None),
            ("2026-01-01T00:00:00", None),
            ("2026-01-01T00:00:00+01:00", None),
            ("2026-01-01T24:00:00Z", None),
            ("2026-01-01T00:00Z", None),
            ("2026-01-01-01", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(Timestamp::parse(text).map(|moment| moment.seconds()), seconds, "{text}");
        }
    }
}
