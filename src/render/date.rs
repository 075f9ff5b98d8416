//! Dates as text (ISO 8601, "Date and time representations"), exact for every `numpy.datetime64`.
//!
//! The calendar is the proleptic Gregorian one, a day has 86 400 seconds, and there are no time zones, as in numpy; a step with
//! Julian dates has those of the calendar `standard` of CF. All arithmetic is in 128 bits, enough for every product of an
//! `int64`, a scale factor and a unit. The crate `jiff` does not serve here: its years end at -9999 and 9999, and those of
//! numpy do not.

use std::fmt::{self, Write as _};

use crate::labels::Calendar;
use crate::metadata::{TimeStep, TimeUnit};

/// Seconds of a day.
const DAY_SECONDS: i128 = 86_400;

/// A number of steps since the beginning of 1970, to be displayed as a date.
///
/// The text is as precise as the unit: `1970`, `1970-01`, `1970-01-01` (days, and the first days of weeks),
/// `1970-01-01T00:00` (hours, minutes), `1970-01-01T00:00:00`, and with 3 to 18 digits of a second. Hours have minutes,
/// because few parsers accept times without. Years that do not have four digits have a sign and at least six digits, as
/// in ECMAScript. A step of the generic unit is not a time; its text is the number of steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Date {
    pub(super) step: TimeStep,
    pub(super) steps: i64,
}

impl Date {
    /// The length of the longest text of any number of these steps.
    pub(super) fn max_text_bytes(step: TimeStep) -> usize {
        // Only the year and the generic number vary in length, and both grow with the distance from 0.
        let text = |steps| Self { step, steps }.to_string().len();
        text(i64::MIN + 1).max(text(i64::MAX))
    }
}

impl fmt::Display for Date {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = i128::from(self.steps) * i128::from(self.step.scale_factor());
        let calendar =
            if self.step.has_julian_dates() { Calendar::Standard } else { Calendar::ProlepticGregorian };
        match self.step.unit() {
            TimeUnit::Generic => write!(out, "{}", self.steps),
            TimeUnit::Year => write_year(1970 + count, out),
            TimeUnit::Month => {
                write_year(1970 + count.div_euclid(12), out)?;
                write!(out, "-{:02}", count.rem_euclid(12) + 1)
            }
            TimeUnit::Week => write_day(calendar, count * 7, out),
            TimeUnit::Day => write_day(calendar, count, out),
            TimeUnit::Hour => write_minutes(calendar, count * 60, out),
            TimeUnit::Minute => write_minutes(calendar, count, out),
            TimeUnit::Second => write_seconds(calendar, count, 0, out),
            TimeUnit::Millisecond => write_seconds(calendar, count, 3, out),
            TimeUnit::Microsecond => write_seconds(calendar, count, 6, out),
            TimeUnit::Nanosecond => write_seconds(calendar, count, 9, out),
            TimeUnit::Picosecond => write_seconds(calendar, count, 12, out),
            TimeUnit::Femtosecond => write_seconds(calendar, count, 15, out),
            TimeUnit::Attosecond => write_seconds(calendar, count, 18, out),
        }
    }
}

fn write_year(year: i128, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match year {
        0..=9999 => write!(out, "{year:04}"),
        _ => write!(out, "{year:+07}"),
    }
}

/// The date `days` days after 1970-01-01.
fn write_day(calendar: Calendar, days: i128, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (year, month, day) = calendar.date(days);
    write_year(year, out)?;
    write!(out, "-{month:02}-{day:02}")
}

fn write_minutes(calendar: Calendar, minutes: i128, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    const DAY_MINUTES: i128 = DAY_SECONDS / 60;
    write_day(calendar, minutes.div_euclid(DAY_MINUTES), out)?;
    let minutes = minutes.rem_euclid(DAY_MINUTES);
    write!(out, "T{:02}:{:02}", minutes / 60, minutes % 60)
}

/// A count of seconds in units of `digits` decimal places.
fn write_seconds(calendar: Calendar, count: i128, digits: u32, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let unit = 10_i128.pow(digits);
    let seconds = count.div_euclid(unit);
    write_minutes(calendar, seconds.div_euclid(60), out)?;
    write!(out, ":{:02}", seconds.rem_euclid(60))?;
    if digits > 0 {
        out.write_char('.')?;
        write!(out, "{:0width$}", count.rem_euclid(unit), width = digits as usize)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn date(unit: TimeUnit, scale_factor: u32, steps: i64) -> String {
        Date { step: TimeStep::new(unit, scale_factor).unwrap(), steps }.to_string()
    }

    #[test]
    fn step_zero_is_as_precise_as_its_unit() {
        for (unit, text) in [
            (TimeUnit::Year, "1970"),
            (TimeUnit::Month, "1970-01"),
            (TimeUnit::Week, "1970-01-01"),
            (TimeUnit::Day, "1970-01-01"),
            (TimeUnit::Hour, "1970-01-01T00:00"),
            (TimeUnit::Minute, "1970-01-01T00:00"),
            (TimeUnit::Second, "1970-01-01T00:00:00"),
            (TimeUnit::Millisecond, "1970-01-01T00:00:00.000"),
            (TimeUnit::Microsecond, "1970-01-01T00:00:00.000000"),
            (TimeUnit::Nanosecond, "1970-01-01T00:00:00.000000000"),
            (TimeUnit::Picosecond, "1970-01-01T00:00:00.000000000000"),
            (TimeUnit::Femtosecond, "1970-01-01T00:00:00.000000000000000"),
            (TimeUnit::Attosecond, "1970-01-01T00:00:00.000000000000000000"),
            (TimeUnit::Generic, "0"),
        ] {
            assert_eq!(date(unit, 1, 0), text);
        }
    }

    /// Expected texts are those of cftime 1.6 for the same hours since 1970-01-01 of `standard`.
    #[test]
    fn dates_before_the_gregorian_calendar_are_those_of_the_julian_one_where_a_step_has_these() {
        for (hours, text) in [
            (-3_394_242, "1582-10-15T06:00"),
            (-3_394_266, "1582-10-04T06:00"),
            (-4_118_298, "1500-02-29T06:00"),
            (-7_917_282, "1066-10-14T06:00"),
            (-17_259_930, "0001-01-01T06:00"),
        ] {
            let step = TimeStep::new(TimeUnit::Hour, 1).unwrap().with_julian_dates();
            assert_eq!(Date { step, steps: hours }.to_string(), text);
        }
    }

    /// Expected texts are those of numpy 2 for the same numbers.
    #[test]
    fn dates_are_written_as_by_numpy() {
        for (unit, scale_factor, steps, text) in [
            (TimeUnit::Year, 1, 54, "2024"),
            (TimeUnit::Year, 10, -3, "1940"),
            (TimeUnit::Month, 1, -1, "1969-12"),
            (TimeUnit::Month, 5, 130, "2024-03"),
            (TimeUnit::Week, 1, 1, "1970-01-08"),
            (TimeUnit::Week, 2, -1, "1969-12-18"),
            (TimeUnit::Day, 1, 11_016, "2000-02-29"),
            (TimeUnit::Day, 1, 11_017, "2000-03-01"),
            (TimeUnit::Day, 1, -25_509, "1900-02-28"),
            (TimeUnit::Day, 1, -25_508, "1900-03-01"),
            (TimeUnit::Day, 1, 19_782, "2024-02-29"),
            (TimeUnit::Day, 1, 2_932_896, "9999-12-31"),
            (TimeUnit::Day, 1, -719_528, "0000-01-01"),
            (TimeUnit::Minute, 15, -1, "1969-12-31T23:45"),
            (TimeUnit::Second, 1, 1_709_210_096, "2024-02-29T12:34:56"),
            (TimeUnit::Second, 1, -1, "1969-12-31T23:59:59"),
            (TimeUnit::Microsecond, 25, 3, "1970-01-01T00:00:00.000075"),
            (TimeUnit::Nanosecond, 1, i64::MAX, "2262-04-11T23:47:16.854775807"),
            (TimeUnit::Nanosecond, 1, i64::MIN + 1, "1677-09-21T00:12:43.145224193"),
            (TimeUnit::Attosecond, 1, -1, "1969-12-31T23:59:59.999999999999999999"),
        ] {
            assert_eq!(date(unit, scale_factor, steps), text);
        }
    }

    #[test]
    fn hours_are_written_with_minutes() {
        assert_eq!(date(TimeUnit::Hour, 1, 5), "1970-01-01T05:00");
        assert_eq!(date(TimeUnit::Hour, 6, -1), "1969-12-31T18:00");
    }

    #[test]
    fn years_beyond_four_digits_are_written_with_a_sign_and_six_digits() {
        assert_eq!(date(TimeUnit::Day, 1, 2_932_897), "+010000-01-01");
        assert_eq!(date(TimeUnit::Day, 1, -719_529), "-000001-12-31");
        assert_eq!(date(TimeUnit::Year, 1, 1 << 40), "+1099511629746");
    }

    #[test]
    fn the_largest_numbers_of_steps_are_written() {
        // 2^63 − 1 times 2^31 − 1 is 19807040619342712359383728129.
        let largest = i32::MAX.unsigned_abs();
        assert_eq!(date(TimeUnit::Year, largest, i64::MAX), "+19807040619342712359383730099");
        assert_eq!(date(TimeUnit::Year, largest, i64::MIN + 1), "-19807040619342712359383726159");
        assert!(date(TimeUnit::Week, largest, i64::MAX).starts_with('+'));
        assert!(date(TimeUnit::Second, largest, i64::MIN + 1).starts_with('-'));
        let last = date(TimeUnit::Attosecond, largest, i64::MAX);
        assert_eq!(last, "2597-08-29T03:43:39.342712359383728129");
    }

    #[test]
    fn a_generic_date_is_written_as_its_number() {
        assert_eq!(date(TimeUnit::Generic, 3, -7), "-7");
    }

    proptest! {
        #[test]
        fn no_text_exceeds_the_bound(
            unit in prop::sample::select(vec![
                TimeUnit::Year, TimeUnit::Month, TimeUnit::Week, TimeUnit::Day, TimeUnit::Hour, TimeUnit::Minute,
                TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Nanosecond, TimeUnit::Attosecond,
                TimeUnit::Generic,
            ]),
            scale_factor in 1..=i32::MAX.unsigned_abs(), shift in 0..63_u32, steps in i64::MIN + 1..,
        ) {
            let step = TimeStep::new(unit, scale_factor).unwrap();
            let text = Date { step, steps: steps >> shift }.to_string();
            prop_assert!(text.len() <= Date::max_text_bytes(step), "{}", text);
        }

        #[test]
        fn consecutive_numbers_are_consecutive_days(days in -1_000_000_000_i64..1_000_000_000) {
            let parts = |days| {
                let text = date(TimeUnit::Day, 1, days);
                let (rest, day) = text.rsplit_once('-').unwrap();
                let (year, month) = rest.rsplit_once('-').unwrap();
                let number = |part: &str| part.parse::<i64>().unwrap();
                (number(year), number(month), number(day))
            };
            let (year, month, day) = parts(days);
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + i64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            let next = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                _ if day == length => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
            prop_assert!((1..=12).contains(&month) && (1..=length).contains(&day));
            prop_assert_eq!(parts(days + 1), next);
        }
    }
}
