//! Which coordinates go to the north: latitudes and northings, by their names and attributes.

use crate::metadata::Attributes;

/// Names of dimensions that may be geographic, in lower case.
const NAMES: [&str; 7] = ["lat", "latitude", "rlat", "nav_lat", "northing", "y", "yc"];
/// Values of `standard_name` of coordinates that ascend to the north (CF Conventions 1.11, chapter 4).
const STANDARD_NAMES: [&str; 3] = ["latitude", "grid_latitude", "projection_y_coordinate"];
/// Values of `units` of latitudes.
const UNITS: [&str; 6] = ["degrees_north", "degree_north", "degree_N", "degrees_N", "degreeN", "degreesN"];

/// Whether a dimension of this name may be one of latitudes or northings.
#[must_use]
pub fn may_be_northing(name: &str) -> bool {
    NAMES.contains(&name.to_lowercase().as_str())
}

/// Whether the coordinates of a dimension are latitudes or northings, by its name and by their attributes.
#[must_use]
pub fn is_northing(name: &str, attributes: &Attributes) -> bool {
    let is_one = |name: &str, of: &[&str]| {
        let text = attributes.member_text(name).filter(|text| text.len() < 64);
        text.is_some_and(|text| of.contains(&text.trim_matches('"')))
    };
    may_be_northing(name) && (is_one("standard_name", &STANDARD_NAMES) || is_one("units", &UNITS))
}
