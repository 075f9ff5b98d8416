//! [`DateLabel`]: a date in a request, as precise as it is written: a year, a month, a day, or a part of it.

use super::calendar::Calendar;
use super::instant::{DAY, SECOND, beginning};
use super::origin::{Fields, fields};

/// A date with as many fields as it was written with, in ISO 8601: `2020`, `2020-01`, `2020-01-15`, `2020-01-15T06`,
/// `2020-01-15T06:30`, `2020-01-15T06:30:15.250`, with a zone or without. Without one it is in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateLabel(Fields);

impl DateLabel {
    /// Parses a date; `None` if the text is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        // A year alone has four digits, or a sign: fewer or more are more likely a number.
        let digits = text.trim_start_matches(['+', '-']).bytes().take_while(u8::is_ascii_digit).count();
        let is_signed = text.starts_with(['+', '-']);
        let is_year = digits == 4 || is_signed && digits > 0 || digits == 8;
        fields(text).filter(|_| is_year).map(Self)
    }

    /// The period that the label is: its first instant, and the first one after it. `None` if the calendar has no such date.
    #[must_use]
    pub fn period(&self, calendar: Calendar) -> Option<(i128, i128)> {
        let Fields { year, month, day, hour, minute, second, fraction, ahead } = self.0;
        let first_of = |year: i128, month: i128| beginning(calendar.day(year, month, 1)?);
        let next = calendar.next_year(year);
        let (start, end) = match (month, day) {
            (None, _) => (first_of(year, 1)?, first_of(next, 1)?),
            (Some(12), None) => (first_of(year, 12)?, first_of(next, 1)?),
            (Some(month), None) => (first_of(year, month)?, first_of(year, month + 1)?),
            (Some(month), Some(day)) => {
                let start = beginning(calendar.day(year, month, day)?)?;
                let start = start.checked_add(self.0.time_of_day())?;
                let length = match (hour, minute, second, fraction) {
                    (None, ..) => DAY,
                    (_, None, ..) => 3600 * SECOND,
                    (_, _, None, _) => 60 * SECOND,
                    (_, _, _, None) => SECOND,
                    (_, _, _, Some((_, digits))) => 10_i128.pow(18_u32.saturating_sub(digits)),
                };
                (start, start.checked_add(length)?)
            }
        };
        Some((start.checked_sub(ahead)?, end.checked_sub(ahead)?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::instant::text;
    use super::*;

    fn period(written: &str, calendar: Calendar) -> Option<(String, String)> {
        let (start, end) = DateLabel::parse(written)?.period(calendar)?;
        Some((text(calendar, start), text(calendar, end)))
    }

    #[test]
    fn a_date_is_a_period_as_long_as_its_last_field() {
        for (written, start, end) in [
            ("2020", "2020-01-01T00:00:00", "2021-01-01T00:00:00"),
            ("2020-02", "2020-02-01T00:00:00", "2020-03-01T00:00:00"),
            ("2020-12", "2020-12-01T00:00:00", "2021-01-01T00:00:00"),
            ("2020-02-29", "2020-02-29T00:00:00", "2020-03-01T00:00:00"),
            ("2020-02-29T06", "2020-02-29T06:00:00", "2020-02-29T07:00:00"),
            ("2020-02-29 06:30", "2020-02-29T06:30:00", "2020-02-29T06:31:00"),
            ("2020-02-29T06:30:15Z", "2020-02-29T06:30:15", "2020-02-29T06:30:16"),
            ("2020-02-29T06:30:15.25", "2020-02-29T06:30:15.25", "2020-02-29T06:30:15.26"),
            ("1582-10", "1582-10-01T00:00:00", "1582-11-01T00:00:00"),
            ("-0001", "-000001-01-01T00:00:00", "0001-01-01T00:00:00"),
        ] {
            let expected = Some((start.to_owned(), end.to_owned()));
            assert_eq!(period(written, Calendar::Standard), expected, "{written}");
        }
        let february = period("2000-02", Calendar::Day360).unwrap();
        assert_eq!(february.1, "2000-03-01T00:00:00");
        assert!(period("2000-02-30", Calendar::Day360).is_some());
    }

    #[test]
    fn a_date_that_the_calendar_lacks_has_no_period() {
        for (written, calendar) in [
            ("2020-02-30", Calendar::Standard),
            ("1582-10-10", Calendar::Standard),
            ("0000", Calendar::Standard),
            ("2020-02-29", Calendar::NoLeap),
            ("2020-01-31", Calendar::Day360),
        ] {
            assert!(DateLabel::parse(written).is_some(), "{written}");
            assert_eq!(period(written, calendar), None, "{written}");
        }
        for written in
            ["", "45.2", "7", "20", "202", "20200", "2020-13", "2020-01-01T25", "noon", "2020-01T12"]
        {
            assert_eq!(DateLabel::parse(written), None, "{written}");
        }
    }
}
