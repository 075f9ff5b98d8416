//! Response headers of pictures: `Array-Slice`, `Array-Level`, `Array-Downsample`, `Image-Range`, `Image-Range-From`.

use std::fmt::Write;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::range::{RangeSource, shown};
use super::scene::{Drawing, Scene};
use crate::http::timing::SERVER_TIMING;
use crate::http::validators::from_text;

const ARRAY_SLICE: HeaderName = HeaderName::from_static("array-slice");
const ARRAY_LEVEL: HeaderName = HeaderName::from_static("array-level");
const ARRAY_DOWNSAMPLE: HeaderName = HeaderName::from_static("array-downsample");
const IMAGE_RANGE: HeaderName = HeaderName::from_static("image-range");
const IMAGE_RANGE_FROM: HeaderName = HeaderName::from_static("image-range-from");

/// What the headers say.
pub(crate) struct ImageHeaders<'a> {
    pub(crate) scene: &'a Scene,
    /// The ranges of the planes, if they are known.
    pub(crate) ranges: Option<&'a [(f64, f64)]>,
}

impl ImageHeaders<'_> {
    /// Sets the headers.
    pub(crate) fn put(&self, headers: &mut HeaderMap) {
        let mut put = |name: HeaderName, text: String| {
            if let Some(value) = from_text(text) {
                headers.insert(name, value);
            }
        };
        let scene = self.scene;
        put(ARRAY_SLICE, scene.slice());
        if scene.subject.ome.is_some() {
            put(ARRAY_LEVEL, scene.subject.level.to_string());
        }
        let factor = 1_u64.checked_shl(scene.halvings).unwrap_or(u64::MAX);
        put(ARRAY_DOWNSAMPLE, format!("{factor},{factor}"));
        if matches!(scene.drawing, Drawing::Categories(_)) {
            return;
        }
        if let Some(ranges) = self.ranges {
            let text = |range: &(f64, f64)| format!("{},{}", shown(range.0), shown(range.1));
            put(IMAGE_RANGE, ranges.iter().map(text).collect::<Vec<_>>().join(";"));
        }
        let from = |source: &RangeSource| match source {
            RangeSource::Known(_, _, from) => (*from).to_owned(),
            RangeSource::Sample => "sample".to_owned(),
            RangeSource::Slice => "slice".to_owned(),
            RangeSource::Percentiles(low, high) => format!("{low}%,{high}%"),
        };
        put(
            IMAGE_RANGE_FROM,
            scene.planes.iter().map(|plane| from(&plane.range)).collect::<Vec<_>>().join(";"),
        );
    }
}

/// Sets `Server-Timing` to the stages of a picture.
pub(crate) fn put_stages(headers: &mut HeaderMap, plan: Duration, stages: &[(&'static str, Duration)]) {
    let mut timing = String::with_capacity(80);
    for (name, time) in std::iter::once(&("plan", plan)).chain(stages) {
        let (millis, micros) = (time.as_millis(), time.subsec_micros() % 1000);
        let comma = if timing.is_empty() { "" } else { ", " };
        // Writing to a `String` cannot fail.
        let _ = write!(timing, "{comma}{name};dur={millis}.{micros:03}");
    }
    if let Ok(timing) = HeaderValue::try_from(timing) {
        headers.insert(SERVER_TIMING, timing);
    }
}
