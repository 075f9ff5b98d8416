//! [`CfTimes`]: numbers of a unit since a date, in a calendar (CF conventions 1.12, section 4.4).

use super::calendar::{Calendar, REFORM_DAY};
use super::instant::{self, Instant, NOT_A_TIME, SECOND};
use super::origin::origin;
use crate::metadata::Attributes;

/// Attoseconds of a microsecond, to which times that are stored as floats are rounded.
const MICROSECOND: i128 = SECOND / 1_000_000;
/// The first instant of the Gregorian calendar: 1582-10-15.
const REFORM: Instant = REFORM_DAY * instant::DAY;
/// The longest units that are parsed, in bytes.
const MAX_UNITS_BYTES: usize = 256;

/// How stored numbers become times: `days since 2000-01-01` in a calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CfTimes {
    /// Attoseconds of the unit.
    unit: i128,
    origin: Instant,
    calendar: Calendar,
}

impl CfTimes {
    /// The times of an array with these attributes; `None` if its numbers are no times, or their units or calendar are not those
    /// of CF.
    #[must_use]
    pub fn of_attributes(attributes: &Attributes) -> Option<Self> {
        let text = |name: &str| {
            let text = attributes.member_text(name).filter(|text| text.len() <= MAX_UNITS_BYTES)?;
            serde_json::from_str::<String>(text).ok()
        };
        Self::parse(&text("units")?, text("calendar").as_deref())
    }

    /// Parses the attributes `units` and `calendar`. Months and years are units of `360_day` alone, where they have a length.
    #[must_use]
    pub fn parse(units: &str, calendar: Option<&str>) -> Option<Self> {
        if units.len() > MAX_UNITS_BYTES {
            return None;
        }
        let calendar = Calendar::from_attribute(calendar)?;
        let (unit, rest) = units.trim().split_once(char::is_whitespace)?;
        let (since, date) = rest.trim_start().split_once(char::is_whitespace)?;
        if !since.eq_ignore_ascii_case("since") {
            return None;
        }
        let unit = unit_of(unit, calendar)?;
        Some(Self { unit, origin: origin(date, calendar)?, calendar })
    }

    /// The calendar.
    #[must_use]
    pub fn calendar(&self) -> Calendar {
        self.calendar
    }

    /// Whether times may have a finer part than a microsecond.
    #[must_use]
    pub fn are_fine(&self) -> bool {
        self.unit % MICROSECOND != 0 || self.origin % MICROSECOND != 0
    }

    /// Whether the reference date is one of the Gregorian calendar.
    #[must_use]
    pub fn begin_in_gregorian(&self) -> bool {
        self.calendar == Calendar::ProlepticGregorian
            || self.calendar == Calendar::Standard && self.origin >= REFORM
    }

    /// The instant of an integer, exactly: attoseconds since the day 0 of the calendar. `None` for the smallest integer of 64 bits,
    /// which xarray stores for `NaT`, and beyond five billion years.
    #[must_use]
    pub fn of_integer(&self, number: i128) -> Option<i128> {
        if number == i128::from(i64::MIN) { None } else { self.of_whole(number) }
    }

    fn of_whole(&self, number: i128) -> Option<i128> {
        self.origin.checked_add(number.checked_mul(self.unit)?)
    }

    /// The instant of a float, rounded to the microsecond, or to the unit if that is finer, as cftime rounds it. `None` for what is no number, and
    /// beyond five billion years.
    #[must_use]
    pub fn of_float(&self, number: f64) -> Option<i128> {
        let step = self.unit.min(MICROSECOND);
        // The whole units are exact, so that only the rest is rounded.
        let (whole, rest) = (number.trunc(), number.fract());
        if whole.is_nan() || whole.abs() > 1e30 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "it is below 2^127")]
        let whole = whole as i128;
        #[expect(clippy::cast_precision_loss, reason = "a power of ten, or a multiple of one below 2^53")]
        let rest = rest * (self.unit / step) as f64;
        let rounded = rest.round_ties_even();
        // A float of days has no finer digits: what misses a whole second by less than a microsecond is that second.
        let of_second = if self.unit % SECOND == 0 { rounded.rem_euclid(1e6) } else { 0.0 };
        let rounded = match of_second {
            999_999.0 => rest.ceil(),
            1.0 => rest.floor(),
            _ => rounded,
        };
        #[expect(clippy::cast_possible_truncation, reason = "it is smaller than the steps of a unit")]
        let rest = rounded as i128;
        self.of_whole(whole)?.checked_add(rest.checked_mul(step)?)
    }

    /// The text of an instant in ISO 8601, in UTC.
    #[must_use]
    pub fn text(&self, instant: i128) -> String {
        instant::text(self.calendar, instant)
    }

    /// The text of a number in UTC, with a `Z`; `None` if it is no time, or if its date is not one of the Gregorian calendar, which
    /// readers of such a text expect.
    #[must_use]
    pub fn utc_text_of(&self, number: f64) -> Option<String> {
        let instant = self.of_float(number)?;
        is_utc_date(self.calendar, instant).then(|| format!("{}Z", self.text(instant)))
    }

    /// The text of a number; `None` if it is no time.
    #[must_use]
    pub fn text_of(&self, number: f64) -> Option<String> {
        self.of_float(number).filter(|&instant| instant != NOT_A_TIME).map(|instant| self.text(instant))
    }
}

/// Whether the date of an instant is one of the Gregorian calendar, with a year of four digits.
pub(super) fn is_utc_date(calendar: Calendar, instant: Instant) -> bool {
    let is_gregorian = calendar == Calendar::ProlepticGregorian || instant >= REFORM;
    let (year, ..) = calendar.date(instant.div_euclid(instant::DAY));
    calendar.is_gregorian() && is_gregorian && (0..=9999).contains(&year)
}

/// The attoseconds of a unit.
fn unit_of(name: &str, calendar: Calendar) -> Option<i128> {
    Some(match name.to_ascii_lowercase().as_str() {
        "nanosecond" | "nanoseconds" | "nanosec" | "nanosecs" | "nsec" | "nsecs" | "ns" => {
            SECOND / 1_000_000_000
        }
        "microsecond" | "microseconds" | "microsec" | "microsecs" | "usec" | "usecs" | "us" => MICROSECOND,
        "millisecond" | "milliseconds" | "millisec" | "millisecs" | "msec" | "msecs" | "ms" => SECOND / 1000,
        "second" | "seconds" | "sec" | "secs" | "s" => SECOND,
        "minute" | "minutes" | "min" | "mins" => 60 * SECOND,
        "hour" | "hours" | "hr" | "hrs" | "h" => 3600 * SECOND,
        "day" | "days" | "d" => 86_400 * SECOND,
        "month" | "months" if calendar == Calendar::Day360 => 30 * 86_400 * SECOND,
        "year" | "years" if calendar == Calendar::Day360 => 360 * 86_400 * SECOND,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(units: &str, calendar: Option<&str>, number: f64) -> Option<String> {
        CfTimes::parse(units, calendar)?.text_of(number)
    }

    /// Expected texts are those of cftime 1.6 (`num2date(…).isoformat()`).
    #[test]
    fn times_are_those_of_the_units_and_the_calendar() {
        for (units, calendar, number, expected) in [
            ("days since 2000-01-01", None, 59.5, Some("2000-02-29T12:00:00")),
            ("days since 2000-01-01 00:00:00", Some("standard"), 0.0, Some("2000-01-01T00:00:00")),
            ("hours since 1900-1-1", Some("gregorian"), 1_051_896.0, Some("2020-01-01T00:00:00")),
            ("seconds since 1970-01-01T00:00:00Z", None, -0.25, Some("1969-12-31T23:59:59.75")),
            ("minutes since 2001-02-03 04:05:06.5 UTC", None, 1.0, Some("2001-02-03T04:06:06.5")),
            ("Days Since 2000-01-01", None, 1.0, Some("2000-01-02T00:00:00")),
            ("days since 0001-01-01", Some("proleptic_gregorian"), 1.0, Some("0001-01-02T00:00:00")),
            ("days since 0001-01-01", Some("standard"), 730_120.0, Some("1999-12-31T00:00:00")),
            ("days since 1582-10-04", None, 1.0, Some("1582-10-15T00:00:00")),
            ("days since 1850-01-01", Some("noleap"), 365.0, Some("1851-01-01T00:00:00")),
            ("days since 2000-02-28", Some("noleap"), 1.0, Some("2000-03-01T00:00:00")),
            ("days since 2001-02-28", Some("all_leap"), 1.0, Some("2001-02-29T00:00:00")),
            ("months since 2000-01-01", Some("360_day"), 1.5, Some("2000-02-16T00:00:00")),
            ("days since 2000-01-01", None, 1.0 / 3.0, Some("2000-01-01T08:00:00")),
            ("days since 0001-01-01", None, 145_820.305, Some("0400-03-27T07:19:12")),
            ("nanoseconds since 2000-01-01", None, 1.0, Some("2000-01-01T00:00:00.000000001")),
            ("months since 2000-01-01", None, 1.0, None),
            ("days since 2001-02-29", None, 1.0, None),
            ("days since 0000-01-01", None, 1.0, None),
            ("days since ", None, 1.0, None),
            ("days", None, 1.0, None),
            ("K", None, 1.0, None),
            ("days since 2000-01-01", Some("lunar"), 1.0, None),
            ("days since 2000-01-01", None, f64::NAN, None),
            ("days since 2000-01-01", None, f64::INFINITY, None),
            ("days since 2000-01-01", None, 1e300, None),
        ] {
            assert_eq!(text(units, calendar, number).as_deref(), expected, "{units} {calendar:?} {number}");
        }
    }

    #[test]
    fn integers_are_exact_times() {
        let times = CfTimes::parse("nanoseconds since 1970-01-01", None).unwrap();
        let instant = times.of_integer(i64::MAX.into()).unwrap();
        assert_eq!(times.text(instant), "2262-04-11T23:47:16.854775807");
        assert!(times.are_fine());
        assert_eq!(CfTimes::parse("days since 1970-01-01", None).unwrap().of_integer(i128::MAX), None);
    }
}
