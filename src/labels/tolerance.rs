//! How far a label may be from the one that a request names.

use super::instant::SECOND;
use crate::units::duration;

/// The distance in brackets of a method for numbers; `None` if it is none.
pub(super) fn of_numbers(text: &str) -> Option<f64> {
    text.parse().ok().filter(|tolerance: &f64| *tolerance >= 0.0)
}

/// The distance in brackets of a method for times: a duration such as `6h` or `1day`, or `inf`. In attoseconds; `None` if it
/// is none.
pub(super) fn of_times(text: &str) -> Option<u128> {
    if text.eq_ignore_ascii_case("inf") {
        return Some(u128::MAX);
    }
    let duration = duration::parse(text)?;
    let (seconds, nanoseconds) = (u128::from(duration.as_secs()), u128::from(duration.subsec_nanos()));
    Some(seconds * SECOND.unsigned_abs() + nanoseconds * SECOND.unsigned_abs() / 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerance_is_a_number_or_a_duration() {
        assert_eq!(of_numbers("0.3"), Some(0.3));
        assert_eq!(of_numbers("inf"), Some(f64::INFINITY));
        for text in ["-1", "nan", "", "1h"] {
            assert_eq!(of_numbers(text), None, "{text}");
        }
        assert_eq!(of_times("6h"), Some(6 * 3600 * SECOND.unsigned_abs()));
        assert_eq!(of_times("1ns"), Some(1_000_000_000));
        assert_eq!(of_times("inf"), Some(u128::MAX));
        for text in ["0.3", "", "-1h", "1 parsec"] {
            assert_eq!(of_times(text), None, "{text}");
        }
    }
}
