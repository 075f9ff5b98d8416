//! Which coordinates go around a circle, so that labels a turn apart are one place.

use super::dimension_labels::DimensionLabels;
use super::places::Order;
use crate::metadata::Attributes;

/// Whether units are those of longitudes (CF conventions 1.12, section 4.2).
#[must_use]
pub fn is_longitude_unit(units: &str) -> bool {
    matches!(units, "degrees_east" | "degree_east" | "degree_E" | "degrees_E" | "degreeE" | "degreesE")
}

/// Whether a coordinate has longitudes: by its units or its standard name, else by its name.
pub(super) fn is_longitude(name: &str, attributes: &Attributes) -> bool {
    let text = |name: &str| {
        let text = attributes.member_text(name).and_then(|text| serde_json::from_str::<String>(text).ok());
        text.unwrap_or_default()
    };
    let (units, standard_name) = (text("units"), text("standard_name"));
    is_longitude_unit(&units)
        || standard_name == "longitude"
        || (units.is_empty()
            && standard_name.is_empty()
            && matches!(name.to_lowercase().as_str(), "lon" | "longitude"))
}

impl DimensionLabels {
    /// Whether labels that are `turn` apart are the same place: those of longitudes, and numbers that are once around.
    #[must_use]
    pub fn goes_around(&self, turn: f64) -> bool {
        self.is_longitude || self.is_once_around(turn)
    }

    /// Whether the labels go from one place to the same again, or to the last before it.
    fn is_once_around(&self, turn: f64) -> bool {
        let Some((smallest, largest)) = self.ends().filter(|_| self.order != Order::Unsorted) else {
            return false;
        };
        let span = largest - smallest;
        #[expect(clippy::cast_precision_loss, reason = "a part of a step does not matter")]
        let step = span / (self.len().saturating_sub(1)).max(1) as f64;
        [span, span + step].into_iter().any(|around| (around - turn).abs() < step / 2.0)
    }
}
