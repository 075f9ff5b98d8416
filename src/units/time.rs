//! Points in time as text: RFC 3339, in UTC.

use std::fmt::Display;
use std::time::SystemTime;

/// A time to the microsecond, such as `2020-02-29T00:00:00.000001Z`; for a time before 1970, the first of 1970.
#[must_use]
pub fn rfc3339(time: SystemTime) -> impl Display {
    // humantime panics before 1970, where a clock without a battery may be.
    humantime::format_rfc3339_micros(time.max(SystemTime::UNIX_EPOCH))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_time_has_a_text_in_utc() {
        let leap_day = SystemTime::UNIX_EPOCH + Duration::from_micros(1_582_934_400_000_001);
        assert_eq!(rfc3339(leap_day).to_string(), "2020-02-29T00:00:00.000001Z");
        let early = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(rfc3339(early).to_string(), "1970-01-01T00:00:00.000000Z");
    }
}
