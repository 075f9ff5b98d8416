//! Dates in JSON bodies, as `render` writes them (ISO 8601). They are exact, in the calendar of `numpy.datetime64`: the
//! proleptic Gregorian one, in UTC. A date that is less precise than its type is the first instant of its period, as in numpy.

use crate::labels::{Calendar, DateLabel};
use crate::metadata::{TimeStep, TimeUnit};
use crate::units::calendar::date_of_days;

/// The number of steps from the beginning of 1970 to a date.
///
/// # Errors
/// What is wrong with the text.
pub(super) fn steps_of_date(step: TimeStep, text: &str) -> Result<i64, String> {
    let date = DateLabel::parse(text).and_then(|date| date.period(Calendar::ProlepticGregorian));
    let (start, _) = date.ok_or("is no date in ISO 8601, such as `2020-01-31T06:00:00`")?;
    let scale = i128::from(step.scale_factor());
    let units = whole_units(step.unit(), start).filter(|units| units % scale == 0);
    let units = units.ok_or("is a date that its type has not: it lies between two steps")?;
    // The smallest number is `NaT`.
    let steps = i64::try_from(units / scale).ok().filter(|steps| *steps != i64::MIN);
    steps.ok_or_else(|| "is out of range".to_owned())
}

/// The units from 1970 to an instant, if they are whole.
fn whole_units(unit: TimeUnit, instant: i128) -> Option<i128> {
    match unit {
        TimeUnit::Year => months(instant).filter(|months| months % 12 == 0).map(|months| months / 12),
        TimeUnit::Month => months(instant),
        unit => unit.attoseconds().filter(|length| instant % length == 0).map(|length| instant / length),
    }
}

/// The months from 1970 to an instant, if it is the beginning of one.
fn months(instant: i128) -> Option<i128> {
    let length = TimeUnit::Day.attoseconds()?;
    let (year, month, day) = date_of_days(instant.div_euclid(length));
    (instant % length == 0 && day == 1).then_some((year - 1970) * 12 + month - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_the_steps_that_numpy_counts() {
        for (unit, scale, text, steps) in [
            (TimeUnit::Year, 1, "2020", 50),
            (TimeUnit::Month, 1, "1969-12", -1),
            (TimeUnit::Week, 1, "1970-01-08", 1),
            (TimeUnit::Day, 1, "2000-02-29", 11_016),
            (TimeUnit::Day, 1, "2000-02", 10_988),
            (TimeUnit::Hour, 6, "1970-01-02T06:00", 5),
            (TimeUnit::Second, 1, "1969-12-31T23:59:59", -1),
            (TimeUnit::Second, 1, "1970-01-01T02:00:00+02:00", 0),
            (TimeUnit::Second, 1, "+029171-01-01T00:00:00", 858_380_630_400),
            (TimeUnit::Millisecond, 1, "1970-01-01T00:00:00.250", 250),
            (TimeUnit::Nanosecond, 1, "1970-01-01T00:00:00.000000001", 1),
            (TimeUnit::Attosecond, 1, "1970-01-01T00:00:00.000000000000000001", 1),
        ] {
            let found = steps_of_date(TimeStep::new(unit, scale).unwrap(), text);
            assert_eq!(found, Ok(steps), "{text}");
        }
    }

    #[test]
    fn what_the_type_has_not_is_refused_with_the_reason() {
        for (unit, scale, text, reason) in [
            (TimeUnit::Day, 1, "soon", "no date"),
            (TimeUnit::Day, 1, "2001-02-29", "no date"),
            (TimeUnit::Day, 1, "2001-02-28T06:00", "between two steps"),
            (TimeUnit::Month, 1, "2001-02-02", "between two steps"),
            (TimeUnit::Year, 1, "2001-02", "between two steps"),
            (TimeUnit::Second, 25, "1970-01-01T00:00:26", "between two steps"),
            (TimeUnit::Nanosecond, 1, "3000-01-01", "out of range"),
            (TimeUnit::Generic, 1, "2020", "between two steps"),
        ] {
            let found = steps_of_date(TimeStep::new(unit, scale).unwrap(), text);
            assert!(found.as_ref().is_err_and(|found| found.contains(reason)), "{text}: {found:?}");
        }
    }
}
