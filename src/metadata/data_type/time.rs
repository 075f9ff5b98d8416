//! [`TimeStep`]: the step of dates and time spans (Zarr extensions, "numpy.datetime64" and "numpy.timedelta64").
//!
//! A step is a number of units. Calendars and formatting are not implemented here.

use std::fmt;

/// A unit of time of numpy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Years of the calendar
    Year,
    /// Months of the calendar
    Month,
    /// Weeks
    Week,
    /// Days
    Day,
    /// Hours
    Hour,
    /// Minutes
    Minute,
    /// Seconds; a day has 86 400
    Second,
    /// 10^-3 seconds
    Millisecond,
    /// 10^-6 seconds
    Microsecond,
    /// 10^-9 seconds
    Nanosecond,
    /// 10^-12 seconds
    Picosecond,
    /// 10^-15 seconds
    Femtosecond,
    /// 10^-18 seconds
    Attosecond,
    /// No unit
    Generic,
}

/// Every unit with its name in documents of v2 and v3.
const NAMES: [(TimeUnit, &str); 14] = [
    (TimeUnit::Year, "Y"),
    (TimeUnit::Month, "M"),
    (TimeUnit::Week, "W"),
    (TimeUnit::Day, "D"),
    (TimeUnit::Hour, "h"),
    (TimeUnit::Minute, "m"),
    (TimeUnit::Second, "s"),
    (TimeUnit::Millisecond, "ms"),
    (TimeUnit::Microsecond, "us"),
    (TimeUnit::Nanosecond, "ns"),
    (TimeUnit::Picosecond, "ps"),
    (TimeUnit::Femtosecond, "fs"),
    (TimeUnit::Attosecond, "as"),
    (TimeUnit::Generic, "generic"),
];

impl TimeUnit {
    /// The unit's name, such as `ns`.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(unit, _)| *unit == self).map_or("generic", |(_, name)| name)
    }

    /// Its length in attoseconds; `None` for months and years, whose lengths differ, and for no unit.
    #[must_use]
    pub const fn attoseconds(self) -> Option<i128> {
        const SECOND: i128 = 1_000_000_000_000_000_000;
        Some(match self {
            Self::Year | Self::Month | Self::Generic => return None,
            Self::Week => 7 * 86_400 * SECOND,
            Self::Day => 86_400 * SECOND,
            Self::Hour => 3600 * SECOND,
            Self::Minute => 60 * SECOND,
            Self::Second => SECOND,
            Self::Millisecond => SECOND / 1000,
            Self::Microsecond => SECOND / 1_000_000,
            Self::Nanosecond => SECOND / 1_000_000_000,
            Self::Picosecond => 1_000_000,
            Self::Femtosecond => 1000,
            Self::Attosecond => 1,
        })
    }

    /// The unit with this name. Microseconds may also be written with a Greek letter or the micro sign.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = if matches!(name, "\u{3bc}s" | "\u{b5}s") { "us" } else { name };
        NAMES.iter().find(|(_, known)| *known == name).map(|(unit, _)| *unit)
    }
}

/// The step of a count of time: a number of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeStep {
    unit: TimeUnit,
    scale_factor: u32,
    has_julian_dates: bool,
}

impl TimeStep {
    /// A step of 1 to 2^31 − 1 units; `None` for other numbers.
    #[must_use]
    pub const fn new(unit: TimeUnit, scale_factor: u32) -> Option<Self> {
        match scale_factor {
            1..=0x7fff_ffff => Some(Self { unit, scale_factor, has_julian_dates: false }),
            _ => None,
        }
    }

    /// The unit.
    #[must_use]
    pub const fn unit(self) -> TimeUnit {
        self.unit
    }

    /// The number of units in a step: 1 to 2^31 − 1.
    #[must_use]
    pub const fn scale_factor(self) -> u32 {
        self.scale_factor
    }

    /// The same step, whose dates before 1582-10-15 are written as text in the Julian calendar, as those of the calendar `standard`
    /// of CF are. No stored type is such.
    #[must_use]
    pub const fn with_julian_dates(self) -> Self {
        Self { has_julian_dates: true, ..self }
    }

    /// Whether dates before 1582-10-15 are written in the Julian calendar.
    #[must_use]
    pub const fn has_julian_dates(self) -> bool {
        self.has_julian_dates
    }
}

/// The spelling of numpy within brackets: `ns`, `25us`.
impl fmt::Display for TimeStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scale_factor != 1 {
            write!(formatter, "{}", self.scale_factor)?;
        }
        formatter.write_str(self.unit.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_found_by_its_name() {
        for (unit, name) in NAMES {
            assert_eq!((unit.name(), TimeUnit::from_name(name)), (name, Some(unit)));
        }
        for name in ["", "S", "H", "min", "d", "y", "sec", "B", "Generic"] {
            assert_eq!(TimeUnit::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn steps_are_from_1_to_the_largest_int32() {
        assert_eq!(TimeStep::new(TimeUnit::Day, 0), None);
        assert_eq!(TimeStep::new(TimeUnit::Day, 1 << 31), None);
        assert_eq!(TimeStep::new(TimeUnit::Nanosecond, 1).unwrap().to_string(), "ns");
        let largest = TimeStep::new(TimeUnit::Minute, (1 << 31) - 1).unwrap();
        assert_eq!(largest.to_string(), "2147483647m");
    }
}
