//! [`TimeStep`]: what a date or a time span counts (Zarr extensions, "numpy.datetime64" and "numpy.timedelta64").
//!
//! A unit, and how many of it one step is. Calendars and texts of dates are not known here.

use std::fmt;

/// A unit of time, as numpy has them.
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
    /// Seconds, of which a day has 86 400
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
    /// No unit: a number that says nothing about time
    Generic,
}

/// Every unit under the name that documents of both versions have for it.
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

    /// The unit of this name. Microseconds may have a Greek letter or the micro sign too.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = if matches!(name, "\u{3bc}s" | "\u{b5}s") { "us" } else { name };
        NAMES.iter().find(|(_, known)| *known == name).map(|(unit, _)| *unit)
    }
}

/// What one is in a count of time: so many of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeStep {
    unit: TimeUnit,
    scale_factor: u32,
}

impl TimeStep {
    /// A step of so many units; `None` unless they are 1 to 2^31 − 1.
    #[must_use]
    pub const fn new(unit: TimeUnit, scale_factor: u32) -> Option<Self> {
        match scale_factor {
            1..=0x7fff_ffff => Some(Self { unit, scale_factor }),
            _ => None,
        }
    }

    /// The unit.
    #[must_use]
    pub const fn unit(self) -> TimeUnit {
        self.unit
    }

    /// How many units a step is: 1 to 2^31 − 1.
    #[must_use]
    pub const fn scale_factor(self) -> u32 {
        self.scale_factor
    }
}

/// As numpy writes it between brackets: `ns`, `25us`.
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
    fn every_unit_is_found_under_its_own_name() {
        for (unit, name) in NAMES {
            assert_eq!((unit.name(), TimeUnit::from_name(name)), (name, Some(unit)));
        }
        for name in ["", "S", "H", "min", "d", "y", "sec", "B", "Generic"] {
            assert_eq!(TimeUnit::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_step_is_from_1_to_the_largest_int32() {
        assert_eq!(TimeStep::new(TimeUnit::Day, 0), None);
        assert_eq!(TimeStep::new(TimeUnit::Day, 1 << 31), None);
        assert_eq!(TimeStep::new(TimeUnit::Nanosecond, 1).unwrap().to_string(), "ns");
        let largest = TimeStep::new(TimeUnit::Minute, (1 << 31) - 1).unwrap();
        assert_eq!(largest.to_string(), "2147483647m");
    }
}
