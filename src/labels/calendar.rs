//! [`Calendar`]: the calendars of CF (CF conventions 1.12, section 4.4.1), as days in a row.

use crate::units::calendar::{date_of_days, days_of_date};

/// The first day of the Gregorian calendar: 1582-10-15, in days since 1970-01-01.
pub(super) const REFORM_DAY: i128 = -141_427;
/// The first day of the Gregorian calendar as a date.
const REFORM: (i128, i128, i128) = (1582, 10, 15);
/// The day after this date is that of the reform.
const LAST_JULIAN: (i128, i128, i128) = (1582, 10, 4);
/// Days from the 1st of March of the year 0 in the Julian calendar to 1970-01-01 in the Gregorian one.
const JULIAN_TO_1970: i128 = 719_470;
/// Days of four years of the Julian calendar, after which it repeats itself.
const JULIAN_CYCLE_DAYS: i128 = 1_461;
/// Days before each month in a year of 365 days.
const DAYS_BEFORE: [i128; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
/// Years are within this distance of 0, so that no product overflows.
const MAX_YEAR: i128 = 1 << 32;

/// A calendar: which dates there are, and in which order.
///
/// Days are numbered. In the calendars of the real world the day 0 is 1970-01-01 of the Gregorian calendar; in the others it is
/// 1970-01-01 of the calendar itself. Years of `standard` and `julian` have no year 0; those of the others do, as in ISO 8601.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Calendar {
    /// `standard` or `gregorian`: Julian before 1582-10-15, Gregorian from then on.
    Standard,
    /// `proleptic_gregorian`: Gregorian at all times, as in ISO 8601 and numpy.
    ProlepticGregorian,
    /// `julian`
    Julian,
    /// `noleap` or `365_day`: February has 28 days.
    NoLeap,
    /// `all_leap` or `366_day`: February has 29 days.
    AllLeap,
    /// `360_day`: each month has 30 days.
    Day360,
}

impl Calendar {
    /// Every calendar.
    pub const ALL: [Self; 6] =
        [Self::Standard, Self::ProlepticGregorian, Self::Julian, Self::NoLeap, Self::AllLeap, Self::Day360];

    /// The calendar of an attribute `calendar`; without one, `standard`. `None` if the name is of no calendar of CF.
    #[must_use]
    pub fn from_attribute(name: Option<&str>) -> Option<Self> {
        Some(match name.unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "" | "standard" | "gregorian" => Self::Standard,
            "proleptic_gregorian" => Self::ProlepticGregorian,
            "julian" => Self::Julian,
            "noleap" | "365_day" => Self::NoLeap,
            "all_leap" | "366_day" => Self::AllLeap,
            "360_day" => Self::Day360,
            _ => return None,
        })
    }

    /// The name of the calendar.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::ProlepticGregorian => "proleptic_gregorian",
            Self::Julian => "julian",
            Self::NoLeap => "noleap",
            Self::AllLeap => "all_leap",
            Self::Day360 => "360_day",
        }
    }

    /// Whether its dates from 1582-10-15 on are those of ISO 8601.
    #[must_use]
    pub const fn is_gregorian(self) -> bool {
        matches!(self, Self::Standard | Self::ProlepticGregorian)
    }

    /// The number of a day; `None` if the calendar has no such date.
    #[must_use]
    pub fn day(self, year: i128, month: i128, day: i128) -> Option<i128> {
        if year.abs() > MAX_YEAR || !(1..=12).contains(&month) || day < 1 {
            return None;
        }
        let year = match (self.has_year_zero(), year) {
            (true, _) | (false, 1..) => year,
            (false, 0) => return None,
            (false, _) => year + 1,
        };
        let number = match self {
            Self::ProlepticGregorian => days_of_date(year, month, day)?,
            Self::Julian => julian_day(year, month, day),
            Self::Standard if (year, month, day) >= REFORM => days_of_date(year, month, day)?,
            Self::Standard if (year, month, day) <= LAST_JULIAN => julian_day(year, month, day),
            Self::Standard => return None,
            Self::NoLeap => 365 * (year - 1970) + before(month) + day - 1,
            Self::AllLeap => 366 * (year - 1970) + before(month) + i128::from(month > 2) + day - 1,
            Self::Day360 => 360 * (year - 1970) + 30 * (month - 1) + day - 1,
        };
        // A day that the month has not is one of the next month.
        (self.astronomical_date(number) == (year, month, day)).then_some(number)
    }

    /// The year, the month and the day of the month of a numbered day.
    #[must_use]
    pub fn date(self, day: i128) -> (i128, i128, i128) {
        let (year, month, day) = self.astronomical_date(day);
        let year = if year <= 0 && !self.has_year_zero() { year - 1 } else { year };
        (year, month, day)
    }

    /// The year after another.
    #[must_use]
    pub(super) const fn next_year(self, year: i128) -> i128 {
        if year == -1 && !self.has_year_zero() { 1 } else { year + 1 }
    }

    const fn has_year_zero(self) -> bool {
        !matches!(self, Self::Standard | Self::Julian)
    }

    /// The date of a numbered day, with a year 0 before the year 1.
    fn astronomical_date(self, day: i128) -> (i128, i128, i128) {
        match self {
            Self::ProlepticGregorian => date_of_days(day),
            Self::Standard if day >= REFORM_DAY => date_of_days(day),
            Self::Standard | Self::Julian => julian_date(day),
            Self::NoLeap => of_year(1970 + day.div_euclid(365), day.rem_euclid(365)),
            Self::AllLeap => {
                let (year, rest) = (1970 + day.div_euclid(366), day.rem_euclid(366));
                match rest {
                    ..59 => of_year(year, rest),
                    59 => (year, 2, 29),
                    _ => of_year(year, rest - 1),
                }
            }
            Self::Day360 => {
                let rest = day.rem_euclid(360);
                (1970 + day.div_euclid(360), rest / 30 + 1, rest % 30 + 1)
            }
        }
    }
}

/// Days before a month in a year of 365 days.
fn before(month: i128) -> i128 {
    usize::try_from(month - 1).ok().and_then(|place| DAYS_BEFORE.get(place)).copied().unwrap_or_default()
}

/// The date of a day in a year of 365 days, counted from 0.
fn of_year(year: i128, rest: i128) -> (i128, i128, i128) {
    let month = DAYS_BEFORE.iter().rposition(|&before| before <= rest).unwrap_or_default();
    let first = DAYS_BEFORE.get(month).copied().unwrap_or_default();
    (year, month as i128 + 1, rest - first + 1)
}

/// The number of a day of the Julian calendar; of a day that the month has not, one of the next month.
fn julian_day(year: i128, month: i128, day: i128) -> i128 {
    // Years begin in March here, so that the leap day is the last day of its year.
    let (from_march, year) = if month > 2 { (month - 3, year) } else { (month + 9, year - 1) };
    365 * year + year.div_euclid(4) + (153 * from_march + 2) / 5 + day - 1 - JULIAN_TO_1970
}

/// The date of a numbered day in the Julian calendar.
fn julian_date(day: i128) -> (i128, i128, i128) {
    let day = day + JULIAN_TO_1970;
    let (cycle, day) = (day.div_euclid(JULIAN_CYCLE_DAYS), day.rem_euclid(JULIAN_CYCLE_DAYS));
    let year = (day - day / (JULIAN_CYCLE_DAYS - 1)) / 365;
    let day = day - 365 * year;
    let month = (5 * day + 2) / 153;
    let of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (cycle * 4 + year + next, month, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The days of a month, as CF states them.
    fn month_days(calendar: Calendar, year: i128, month: i128) -> i128 {
        let by_four = year.rem_euclid(4) == 0;
        let gregorian = by_four && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
        let is_leap = match calendar {
            Calendar::Standard => {
                if year >= 1583 {
                    gregorian
                } else {
                    by_four
                }
            }
            Calendar::ProlepticGregorian => gregorian,
            Calendar::Julian => by_four,
            Calendar::NoLeap => false,
            Calendar::AllLeap => true,
            Calendar::Day360 => return 30,
        };
        match month {
            2 => 28 + i128::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    #[test]
    fn days_in_a_row_are_those_of_a_calendar_on_the_wall() {
        for calendar in Calendar::ALL {
            // From the year 4 before 1, with a year 0 or without, to 2401.
            let first = calendar.day(-4, 1, 1).unwrap();
            let (mut year, mut month, mut day) = (-4, 1, 1);
            for number in first..first + 366 * 2405 {
                if year > 2400 {
                    break;
                }
                assert_eq!(calendar.date(number), (year, month, day), "{calendar:?} {number}");
                assert_eq!(calendar.day(year, month, day), Some(number), "{calendar:?} {year}-{month}-{day}");
                if calendar == Calendar::Standard && (year, month, day) == (1582, 10, 4) {
                    day = 15;
                    continue;
                }
                day += 1;
                let astronomical = if year < 0 && !calendar.has_year_zero() { year + 1 } else { year };
                if day > month_days(calendar, astronomical, month) {
                    (month, day) = (month + 1, 1);
                }
                if month > 12 {
                    (year, month) = (calendar.next_year(year), 1);
                }
            }
        }
    }

    #[test]
    fn dates_that_a_calendar_lacks_have_no_day() {
        use Calendar as C;
        for (calendar, date) in [
            (C::Standard, (1582, 10, 5)),
            (C::Standard, (1582, 10, 14)),
            (C::Standard, (0, 1, 1)),
            (C::Standard, (1900, 2, 29)),
            (C::Julian, (0, 1, 1)),
            (C::Julian, (1901, 2, 29)),
            (C::ProlepticGregorian, (1500, 2, 29)),
            (C::NoLeap, (2000, 2, 29)),
            (C::AllLeap, (2001, 2, 30)),
            (C::Day360, (2000, 1, 31)),
            (C::Day360, (2000, 13, 1)),
            (C::Day360, (2000, 0, 1)),
            (C::NoLeap, (2000, 1, 0)),
            (C::NoLeap, (i128::MAX, 1, 1)),
        ] {
            assert_eq!(calendar.day(date.0, date.1, date.2), None, "{calendar:?} {date:?}");
        }
        assert_eq!(C::Standard.day(1500, 2, 29), C::Julian.day(1500, 2, 29));
        assert_eq!(C::Day360.day(2000, 2, 30).map(|day| C::Day360.date(day)), Some((2000, 2, 30)));
        assert_eq!(C::Standard.day(1582, 10, 4).unwrap() + 1, C::Standard.day(1582, 10, 15).unwrap());
        assert_eq!(C::ProlepticGregorian.day(1582, 10, 15), Some(REFORM_DAY));
    }

    #[test]
    fn every_name_of_cf_is_of_its_calendar() {
        for (names, calendar) in [
            (&["standard", "gregorian", "Gregorian", ""][..], Calendar::Standard),
            (&["proleptic_gregorian"], Calendar::ProlepticGregorian),
            (&["julian"], Calendar::Julian),
            (&["noleap", "365_day"], Calendar::NoLeap),
            (&["all_leap", "366_day"], Calendar::AllLeap),
            (&["360_day"], Calendar::Day360),
        ] {
            for name in names {
                assert_eq!(Calendar::from_attribute(Some(name)), Some(calendar), "{name}");
            }
            assert_eq!(Calendar::from_attribute(Some(calendar.name())), Some(calendar));
        }
        assert_eq!(Calendar::from_attribute(None), Some(Calendar::Standard));
        assert_eq!(Calendar::from_attribute(Some("martian")), None);
    }
}
