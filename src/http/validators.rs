//! Validators and the media type of a value: `ETag`, `Last-Modified`, `Content-Type` (RFC 9110, section 8).
//!
//! A date that HTTP cannot represent is omitted. Comparison of validators is in `conditions`.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, HeaderValue, header};
use bytes::Bytes;

use crate::key::StoreKey;
use crate::store::{ValueInfo, Version};

/// The media type of JSON.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// The media type of other values.
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
/// The first second of the year 10,000, which no HTTP date can represent.
const YEAR_10000: u64 = 253_402_300_800;

/// Dates that were formatted last, by their seconds. What is read often has few dates, and to format one takes as long as the lookup
/// of its value.
static RECENT_DATES: [Mutex<Option<(u64, HeaderValue)>>; 64] = [const { Mutex::new(None) }; 64];

/// A version as an entity tag, quotes included.
pub(crate) fn entity_tag(version: &Version) -> String {
    [if version.is_strong() { "\"" } else { "W/\"" }, version.tag(), "\""].concat()
}

/// Sets `ETag` and `Last-Modified` of a response.
pub(crate) fn put_validators(headers: &mut HeaderMap, info: &ValueInfo) {
    if let Some(tag) = from_text(entity_tag(&info.version)) {
        headers.insert(header::ETAG, tag);
    }
    if let Some(date) = info.modified.and_then(http_date) {
        headers.insert(header::LAST_MODIFIED, date);
    }
}

/// A time as an HTTP date, in whole seconds rounded down.
pub(crate) fn http_date(time: SystemTime) -> Option<HeaderValue> {
    // `httpdate` panics outside this range.
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
    if seconds >= YEAR_10000 {
        return None;
    }
    let place = RECENT_DATES.get(usize::try_from(seconds % RECENT_DATES.len() as u64).ok()?)?;
    let mut recent = place.lock().unwrap_or_else(PoisonError::into_inner);
    match &*recent {
        Some((second, date)) if *second == seconds => Some(date.clone()),
        _ => {
            let date = from_text(httpdate::fmt_http_date(time))?;
            *recent = Some((seconds, date.clone()));
            Some(date)
        }
    }
}

/// A text as a header value, without a copy; `None` if it has invalid characters.
pub(crate) fn from_text(text: String) -> Option<HeaderValue> {
    HeaderValue::from_maybe_shared(Bytes::from(text)).ok()
}

/// Parses an HTTP date; `None` for an invalid one, which RFC 9110 requires to be ignored.
pub(crate) fn parse_http_date(value: &HeaderValue) -> Option<SystemTime> {
    httpdate::parse_http_date(value.to_str().ok()?).ok()
}

/// A time rounded down to the second: the resolution of HTTP dates.
pub(crate) fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

/// A time as RFC 3339 in UTC, in milliseconds rounded down; `None` before 1970 and from the year 10,000.
pub(crate) fn rfc3339(time: SystemTime) -> Option<String> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    if since.as_secs() >= YEAR_10000 {
        return None;
    }
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let millis = since.subsec_millis();
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"))
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
///
/// Years are counted from 1 March, so that the leap day is the last day of its year.
fn civil_date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 1 March of the year 0
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153; // 0 is March
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// Whether a value is a metadata document, by its key alone.
pub(crate) fn is_metadata(key: &StoreKey) -> bool {
    let name = key.name();
    matches!(name, ".zarray" | ".zgroup" | ".zattrs" | ".zmetadata") || name.as_bytes().ends_with(b".json")
}

/// The media type of a value, by its key alone: JSON for metadata documents, bytes for all others.
pub(crate) fn content_type(key: &StoreKey) -> HeaderValue {
    if is_metadata(key) { JSON } else { BYTES }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn days_are_those_of_the_gregorian_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_799, "2000-02-29T23:59:59.000Z"),
            (1_709_251_200, "2024-03-01T00:00:00.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(at(seconds)).unwrap(), text);
            // An independent oracle for the date part.
            let date = httpdate::fmt_http_date(at(seconds));
            assert_eq!(date.get(5..7), text.get(8..10), "{date}");
        }
    }

    #[test]
    fn times_that_http_cannot_represent_are_omitted() {
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        for time in [before, at(YEAR_10000), at(u64::from(u32::MAX) * 100_000)] {
            assert_eq!((http_date(time), rfc3339(time)), (None, None));
        }
        assert_eq!(http_date(at(784_111_777)).unwrap(), "Sun, 06 Nov 1994 08:49:37 GMT");
    }

    #[test]
    fn metadata_documents_are_json_and_chunks_are_bytes() {
        for (key, json) in [
            ("zarr.json", true),
            ("a/.zattrs", true),
            ("a/labels.json", true),
            ("a/c/0/0", false),
            ("a/json", false),
            ("a.json/0", false),
            ("x.html", false),
        ] {
            assert_eq!(content_type(&StoreKey::parse(key).unwrap()) == JSON, json, "{key}");
        }
    }
}
