//! Days of the proleptic Gregorian calendar, counted from 1970-01-01.

/// Days of 400 years, after which the calendar repeats itself.
const ERA_DAYS: i128 = 146_097;
/// Days from the 1st of March of the year 0 to 1970-01-01.
const TO_1970: i128 = 719_468;

/// The year, the month and the day of the month `days` days after 1970-01-01.
pub(crate) fn date_of_days(days: i128) -> (i128, i128, i128) {
    // Years begin in March here, so that the leap day is the last day of its year.
    let days = days + TO_1970;
    let (era, day) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year = (day - day / 1_460 + day / 36_524 - day / (ERA_DAYS - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day_of_month)
}

/// Days from 1970-01-01 to a date; `None` if there is no such date.
pub(crate) fn days_of_date(year: i128, month: i128, day: i128) -> Option<i128> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year.abs() > 1 << 32 {
        return None;
    }
    let (from_march, year_in_march) = if month > 2 { (month - 3, year) } else { (month + 9, year - 1) };
    let (era, of_era) = (year_in_march.div_euclid(400), year_in_march.rem_euclid(400));
    let days = of_era * 365 + of_era / 4 - of_era / 100 + (153 * from_march + 2) / 5 + day - 1;
    let days = era * ERA_DAYS + days - TO_1970;
    // A day that the month has not is one of the next month.
    (date_of_days(days) == (year, month, day)).then_some(days)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_days_are_those_of_the_calendar() {
        for (date, days) in [
            ((1970, 1, 1), 0),
            ((1969, 12, 31), -1),
            ((2000, 2, 29), 11_016),
            ((1600, 1, 1), -135_140),
            ((0, 3, 1), -719_468),
            ((9999, 12, 31), 2_932_896),
        ] {
            assert_eq!((date_of_days(days), days_of_date(date.0, date.1, date.2)), (date, Some(days)));
        }
        for (year, month, day) in [(1900, 2, 29), (2001, 4, 31), (2001, 13, 1), (2001, 0, 1), (2001, 1, 0)] {
            assert_eq!(days_of_date(year, month, day), None);
        }
        for days in (-800_000..800_000).step_by(97) {
            let (year, month, day) = date_of_days(days);
            assert_eq!(days_of_date(year, month, day), Some(days));
        }
    }
}
