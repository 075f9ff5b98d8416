//! Dates in the units of CF: `2000-01-01`, `1990-1-1 0:0:0.0`, `2000-01-01T00:00:00Z`, `2001-02-03 04:00 +02:00`.
//!
//! Writers differ, so this is as lenient as the parsers of cftime and UDUNITS where a text has one meaning.

use super::calendar::Calendar;
use super::instant::{Instant, SECOND, beginning};

/// The fields of a date and a time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) year: i128,
    pub(super) month: Option<i128>,
    pub(super) day: Option<i128>,
    pub(super) hour: Option<i128>,
    pub(super) minute: Option<i128>,
    pub(super) second: Option<i128>,
    /// Attoseconds, and the number of digits that they were written with.
    pub(super) fraction: Option<(i128, u32)>,
    /// Attoseconds that the time is ahead of UTC.
    pub(super) ahead: i128,
}

/// The instant of the date in units, in UTC; `None` if the text is no date of the calendar.
pub(super) fn origin(text: &str, calendar: Calendar) -> Option<Instant> {
    let fields = fields(text)?;
    let day = calendar.day(fields.year, fields.month.unwrap_or(1), fields.day.unwrap_or(1))?;
    beginning(day)?.checked_add(fields.time_of_day())?.checked_sub(fields.ahead)
}

impl Fields {
    /// Attoseconds since the beginning of the day.
    pub(super) fn time_of_day(&self) -> i128 {
        let whole = self.hour.unwrap_or(0) * 3600 + self.minute.unwrap_or(0) * 60 + self.second.unwrap_or(0);
        whole * SECOND + self.fraction.map_or(0, |(fraction, _)| fraction)
    }
}

/// The fields of a date, with a time of day or without; `None` if the text is none.
pub(super) fn fields(text: &str) -> Option<Fields> {
    let text = text.trim();
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => (-1, text.get(1..)?),
        b'+' => (1, text.get(1..)?),
        _ => (1, text),
    };
    let end = unsigned.find(['T', 't', ' ']).unwrap_or(unsigned.len());
    let (date, rest) = unsigned.split_at_checked(end)?;
    let mut fields = Fields::default();
    let mut parts = date.split('-');
    let first = parts.next()?;
    if first.len() == 8 && sign == 1 && parts.clone().next().is_none() {
        // Without hyphens, as in ISO 8601's basic format.
        fields.year = number(first.get(..4)?, 4)?;
        fields.month = Some(number(first.get(4..6)?, 2)?);
        fields.day = Some(number(first.get(6..)?, 2)?);
    } else {
        fields.year = sign * number(first, 9)?;
        fields.month = parts.next().map_or(Some(None), |part| number(part, 2).map(Some))?;
        fields.day = parts.next().map_or(Some(None), |part| number(part, 2).map(Some))?;
    }
    if parts.next().is_some() {
        return None;
    }
    if let Some(rest) = rest.get(1..).map(str::trim).filter(|rest| !rest.is_empty()) {
        time_of_day(rest, &mut fields)?;
    }
    let within = |field: Option<i128>, first, last| field.is_none_or(|field| (first..=last).contains(&field));
    let is_date = within(fields.month, 1, 12) && within(fields.day, 1, 31);
    let is_time = within(fields.hour, 0, 23) && within(fields.minute, 0, 59) && within(fields.second, 0, 59);
    // A time of day is one of a day.
    let is_whole = fields.hour.is_none() || fields.day.is_some();
    (is_date && is_time && is_whole).then_some(fields)
}

/// Parses `hh[:mm[:ss[.f]]]`, and the zone after it.
fn time_of_day(text: &str, fields: &mut Fields) -> Option<()> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(text.len());
    let (time, zone) = text.split_at_checked(end)?;
    fields.ahead = zone_of(zone.trim())?;
    if time.is_empty() {
        return Some(());
    }
    let mut parts = time.split(':');
    fields.hour = Some(number(parts.next()?, 2)?);
    fields.minute = parts.next().map_or(Some(None), |part| number(part, 2).map(Some))?;
    if let Some(second) = parts.next() {
        let (whole, fraction) = second.split_once('.').unwrap_or((second, ""));
        fields.second = Some(number(whole, 2)?);
        if !fraction.is_empty() {
            // Digits beyond the finest unit have no meaning here.
            let kept = fraction.get(..fraction.len().min(18))?;
            let digits = u32::try_from(kept.len()).ok()?;
            number(fraction, fraction.len())?;
            fields.fraction = Some((number(kept, 18)? * 10_i128.pow(18 - digits), digits));
        }
    }
    parts.next().is_none().then_some(())
}

/// The attoseconds that a zone is ahead of UTC.
fn zone_of(zone: &str) -> Option<i128> {
    if matches!(zone, "" | "Z" | "z" | "UTC" | "GMT") {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = zone.get(1..)?;
    let (hours, minutes) = match (digits.split_once(':'), digits.len()) {
        (Some(parts), _) => parts,
        (None, 3 | 4) => digits.split_at_checked(digits.len() - 2)?,
        (None, _) => (digits, "0"),
    };
    let (hours, minutes) = (number(hours, 2)?, number(minutes, 2)?);
    (hours <= 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60 * SECOND)
}

/// A number of at most this many decimal digits.
fn number(text: &str, most_digits: usize) -> Option<i128> {
    let is_number =
        !text.is_empty() && text.len() <= most_digits && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.get(..text.len().min(30))?.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::super::instant::text;
    use super::*;

    #[test]
    fn dates_are_read_as_they_are_written_in_files() {
        for (written, expected) in [
            ("2000-01-01", Some("2000-01-01T00:00:00")),
            ("1990-1-1 0:0:0.0", Some("1990-01-01T00:00:00")),
            ("2000-01-01T00:00:00Z", Some("2000-01-01T00:00:00")),
            ("2000-01-01 12:30:15.25 UTC", Some("2000-01-01T12:30:15.25")),
            ("2001-02-03 04:00 +02:00", Some("2001-02-03T02:00:00")),
            ("2001-02-03 04:00:00 -0130", Some("2001-02-03T05:30:00")),
            ("2001-02-03T04:00:00+2", Some("2001-02-03T02:00:00")),
            ("1-1-1 00:00:00", Some("0001-01-01T00:00:00")),
            ("20200115", Some("2020-01-15T00:00:00")),
            ("2000", Some("2000-01-01T00:00:00")),
            ("2000-02-30", None),
            ("2001-02-03 25:00", None),
            ("2001-02-03 04:00:60", None),
            ("2001-02-03 04:00:00:00", None),
            ("2001-02-03 CET", None),
            ("2001-02-03-04", None),
            ("2001-02T04:00", None),
            ("", None),
            ("-", None),
            ("é-01-01", None),
            ("2001-02-03 0é", None),
        ] {
            let instant = origin(written, Calendar::Standard);
            let shown = instant.map(|instant| text(Calendar::Standard, instant));
            assert_eq!(shown.as_deref(), expected, "{written}");
        }
    }
}
