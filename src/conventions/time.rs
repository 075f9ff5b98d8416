//! Times of coordinates as text (CF 1.12, section 4.4): numbers of a unit since a date.
//!
//! Of the calendars of CF, those that agree with the Gregorian one are known here. A number of another calendar has no text.

use crate::units::calendar::{date_of_days, days_of_date};

/// Milliseconds of a day.
const DAY: i128 = 86_400_000;
/// The first day of the Gregorian calendar, where it and the proleptic one begin to agree: 1582-10-15.
const REFORM: i128 = -141_427 * DAY;

/// The text of a time in ISO 8601, in UTC; `None` if the units or the calendar are others.
pub(super) fn time_text(units: &str, calendar: Option<&str>, value: f64) -> Option<String> {
    let (unit, origin) = units.split_once(" since ")?;
    let calendar = calendar.map(|name| name.trim().to_lowercase());
    let is_proleptic = match calendar.as_deref() {
        Some("proleptic_gregorian") => true,
        None | Some("" | "standard" | "gregorian") => false,
        Some(_) => return None,
    };
    let origin = origin_of(origin)?;
    let steps = value * milliseconds(unit.trim())?;
    if steps.is_nan() || steps.abs() > 1e17 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is below 2^63")]
    let time = origin.checked_add(steps.round() as i128)?;
    // The calendar before the reform is the Julian one, unless the attribute says otherwise.
    if !is_proleptic && (time < REFORM || origin < REFORM) {
        return None;
    }
    let (year, month, day) = date_of_days(time.div_euclid(DAY));
    let rest = time.rem_euclid(DAY);
    let (seconds, millis) = (rest / 1000, rest % 1000);
    let fraction = if millis == 0 { String::new() } else { format!(".{millis:03}") };
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    (0..=9999)
        .contains(&year)
        .then(|| format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}{fraction}Z"))
}

/// The milliseconds of a unit. Months and years have no fixed length.
fn milliseconds(unit: &str) -> Option<f64> {
    Some(match unit.to_lowercase().as_str() {
        "millisecond" | "milliseconds" | "msec" | "msecs" | "ms" => 1.0,
        "second" | "seconds" | "sec" | "secs" | "s" => 1000.0,
        "minute" | "minutes" | "min" | "mins" => 60_000.0,
        "hour" | "hours" | "hr" | "hrs" | "h" => 3_600_000.0,
        "day" | "days" | "d" => 86_400_000.0,
        _ => return None,
    })
}

/// The milliseconds from 1970 to a date, with or without a time of day in UTC.
fn origin_of(text: &str) -> Option<i128> {
    let text = text.trim();
    let text = ["UTC", "Z", "+00:00", "+0000", "+00", " 0:00"]
        .into_iter()
        .find_map(|zone| text.strip_suffix(zone))
        .unwrap_or(text);
    let (date, time) = text.trim().split_once([' ', 'T']).unwrap_or((text.trim(), ""));
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<u16>().ok().map(i128::from));
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let days = days_of_date(year, month, day)?;
    let mut parts = time.trim().splitn(3, ':').filter(|part| !part.is_empty());
    let mut whole = |most: u16| match parts.next() {
        None => Some(0),
        Some(part) => part.parse::<u16>().ok().filter(|&number| number < most).map(i128::from),
    };
    let (hours, minutes) = (whole(24)?, whole(60)?);
    let seconds = parts.next().map_or(Some(0.0), |part| part.parse::<f64>().ok())?;
    if !(0.0..60.0).contains(&seconds) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is below 60000")]
    let millis = (seconds * 1000.0).round() as i128;
    Some(days * DAY + (hours * 60 + minutes) * 60_000 + millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected texts are those of cftime 1.6 (`num2date(…).isoformat()`).
    #[test]
    fn times_are_those_of_the_units_and_the_calendar() {
        for (units, calendar, value, expected) in [
            ("days since 2000-01-01", None, 59.5, Some("2000-02-29T12:00:00Z")),
            ("days since 2000-01-01 00:00:00", Some("standard"), 0.0, Some("2000-01-01T00:00:00Z")),
            ("hours since 1900-1-1", Some("gregorian"), 1_051_896.0, Some("2020-01-01T00:00:00Z")),
            ("seconds since 1970-01-01T00:00:00Z", None, -0.25, Some("1969-12-31T23:59:59.750Z")),
            ("minutes since 2001-02-03 04:05:06.5 UTC", None, 1.0, Some("2001-02-03T04:06:06.500Z")),
            ("days since 0001-01-01", Some("proleptic_gregorian"), 1.0, Some("0001-01-02T00:00:00Z")),
            ("days since 0001-01-01", Some("standard"), 1.0, None),
            ("days since 1850-01-01", Some("noleap"), 1.0, None),
            ("months since 2000-01-01", None, 1.0, None),
            ("days since 2001-02-29", None, 1.0, None),
            ("days since 2001-02-03 25:00", None, 1.0, None),
            ("days since 2001-02-03 04:00 +02:00", None, 1.0, None),
            ("days since ", None, 1.0, None),
            ("days", None, 1.0, None),
            ("days since 2000-01-01", None, f64::NAN, None),
            ("days since 2000-01-01", None, 1e300, None),
        ] {
            assert_eq!(
                time_text(units, calendar, value).as_deref(),
                expected,
                "{units} {calendar:?} {value}"
            );
        }
    }
}
