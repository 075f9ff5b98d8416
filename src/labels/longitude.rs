//! Which coordinates have longitudes.

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
