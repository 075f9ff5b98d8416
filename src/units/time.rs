//! Points in time as text: RFC 3339, in UTC.

use std::fmt::Display;
use std::time::SystemTime;

/// A time to the second, such as `2020-02-29T00:00:00Z`; for a time before 1970, the first of 1970. There is no text of a time from
/// the year 10,000.
#[must_use]
pub fn rfc3339_seconds(time: SystemTime) -> impl Display {
    // humantime panics before 1970, where a clock without a battery may be.
    humantime::format_rfc3339_seconds(time.max(SystemTime::UNIX_EPOCH))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_time_has_a_text_in_utc() {
        let leap_day = SystemTime::UNIX_EPOCH + Duration::from_micros(1_582_934_400_000_001);
        assert_eq!(rfc3339_seconds(leap_day).to_string(), "2020-02-29T00:00:00Z");
        let early = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(rfc3339_seconds(early).to_string(), "1970-01-01T00:00:00Z");
    }
}
