//! What attributes say according to CF (1.11) and to the Attribute Convention for Data Discovery (ACDD 1.3).

use serde_json::Value;

use super::plane::DimensionRole;
use super::values::{cut, exactly};
use crate::labels::is_longitude_unit;
use crate::metadata::Attributes;

/// What a coordinate is along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CfAxis {
    X,
    Y,
    Z,
    T,
}

impl CfAxis {
    /// The type of such an axis in OME metadata, which summaries use for all.
    pub(super) const fn as_axis_type(self) -> &'static str {
        match self {
            Self::X | Self::Y | Self::Z => "space",
            Self::T => "time",
        }
    }
}

/// The axis that a coordinate is along, by its attributes or its name: `X`, `Y`, `Z` or `T` (CF 1.11, section 4).
#[must_use]
pub fn coordinate_axis(name: &str, attributes: &Attributes) -> Option<&'static str> {
    axis_of(name, attributes).map(|axis| match axis {
        CfAxis::X => "X",
        CfAxis::Y => "Y",
        CfAxis::Z => "Z",
        CfAxis::T => "T",
    })
}

/// The words of the attribute `coordinates`, unless it is very long: the names of other arrays with labels (CF 1.11, section 5).
#[must_use]
pub fn named_coordinates(attributes: &Attributes) -> Vec<String> {
    let value = attributes.get_short("coordinates");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    value.as_ref().and_then(Value::as_str).map(words).unwrap_or_default()
}

/// The text of an attribute, cut; `None` if it is empty or no text.
#[must_use]
pub fn text_attribute(attributes: &Attributes, name: &str) -> Option<String> {
    attribute(attributes, name)
}

/// The text of an attribute.
pub(super) fn attribute(attributes: &Attributes, name: &str) -> Option<String> {
    let text = cut(&attributes.beginning(name)?).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The version of CF that a group declares, such as `CF-1.8`.
pub(super) fn version(attributes: &Attributes) -> Option<String> {
    let declared = attribute(attributes, "Conventions")?;
    declared.split([',', ' ']).find(|word| word.starts_with("CF-")).map(str::to_owned)
}

/// What a coordinate array is along (CF 1.11, section 4).
pub(super) fn axis_of(name: &str, attributes: &Attributes) -> Option<CfAxis> {
    match attribute(attributes, "axis").as_deref() {
        Some("X") => return Some(CfAxis::X),
        Some("Y") => return Some(CfAxis::Y),
        Some("Z") => return Some(CfAxis::Z),
        Some("T") => return Some(CfAxis::T),
        _ => {}
    }
    match attribute(attributes, "standard_name").as_deref() {
        Some("longitude" | "projection_x_coordinate" | "grid_longitude") => return Some(CfAxis::X),
        Some("latitude" | "projection_y_coordinate" | "grid_latitude") => return Some(CfAxis::Y),
        Some("time" | "forecast_reference_time") => return Some(CfAxis::T),
        Some("depth" | "height" | "altitude" | "air_pressure") => return Some(CfAxis::Z),
        _ => {}
    }
    let units = attribute(attributes, "units").unwrap_or_default();
    if is_longitude_unit(&units) {
        return Some(CfAxis::X);
    }
    if is_latitude_unit(&units) {
        return Some(CfAxis::Y);
    }
    if units.contains(" since ") {
        return Some(CfAxis::T);
    }
    if attribute(attributes, "positive").is_some() {
        return Some(CfAxis::Z);
    }
    match DimensionRole::of(name)? {
        DimensionRole::Columns => Some(CfAxis::X),
        DimensionRole::Rows => Some(CfAxis::Y),
        DimensionRole::Heights => Some(CfAxis::Z),
        DimensionRole::Times => Some(CfAxis::T),
        DimensionRole::Channels => None,
    }
}

/// Whether a coordinate is a longitude or a latitude in degrees: by its units or its standard name, else by its name.
#[must_use]
pub fn is_geographic(name: &str, attributes: &Attributes) -> bool {
    let units = attribute(attributes, "units").unwrap_or_default();
    let standard_name = attribute(attributes, "standard_name").unwrap_or_default();
    is_longitude_unit(&units)
        || is_latitude_unit(&units)
        || matches!(standard_name.as_str(), "longitude" | "latitude")
        || (units.is_empty()
            && standard_name.is_empty()
            && matches!(name.to_lowercase().as_str(), "lon" | "longitude" | "lat" | "latitude"))
}

fn is_latitude_unit(units: &str) -> bool {
    matches!(units, "degrees_north" | "degree_north" | "degree_N" | "degrees_N" | "degreeN" | "degreesN")
}

/// The names of the grid mapping variables of a variable: `crs`, or `crs: x y other: lat lon`.
pub(super) fn grid_mappings(attributes: &Attributes) -> Vec<String> {
    const MAX_MAPPINGS: usize = 2;
    let Some(declared) = attribute(attributes, "grid_mapping") else { return Vec::new() };
    let words = declared.split_whitespace();
    // With several mappings, the names of their coordinates follow each.
    let has_several = declared.contains(':');
    let name = |word: &str| {
        if has_several { word.strip_suffix(':').map(str::to_owned) } else { Some(word.to_owned()) }
    };
    words.filter_map(name).take(MAX_MAPPINGS).collect()
}

/// The name of the grid mapping variable that holds for two dimensions of a variable. With several, that of their coordinates.
pub(super) fn grid_mapping_of(attributes: &Attributes, dimensions: [&str; 2]) -> Option<String> {
    let declared = attributes.get_short("grid_mapping")?;
    let declared = declared.as_str().map(str::trim)?;
    if !declared.contains(':') {
        return (!declared.is_empty() && !declared.contains(' ')).then(|| declared.to_owned());
    }
    // The names of its coordinates follow each name with a colon.
    let mut mappings: Vec<(&str, Vec<&str>)> = Vec::new();
    for word in declared.split_whitespace() {
        match word.strip_suffix(':') {
            Some(name) => mappings.push((name, Vec::new())),
            None => mappings.last_mut()?.1.push(word),
        }
    }
    let holds =
        |(_, names): &&(&str, Vec<&str>)| dimensions.iter().all(|dimension| names.contains(dimension));
    mappings.iter().find(holds).map(|(name, _)| (*name).to_owned())
}

/// The smallest and the largest value of a variable, if its attributes have them.
pub(super) fn actual_range(attributes: &Attributes) -> Option<(f64, f64)> {
    let [one, other] = exactly(attributes.get_short("actual_range").as_ref())?;
    Some((f64::min(one, other), f64::max(one, other)))
}

/// The bounding box of a dataset in degrees, if its attributes have one (ACDD).
pub(super) fn geospatial_box(attributes: &Attributes) -> Option<Vec<f64>> {
    let number = |name: &str| match attributes.get_short(name)? {
        // Some writers quote numbers.
        Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        value => super::values::number(&value),
    };
    ["geospatial_lon_min", "geospatial_lat_min", "geospatial_lon_max", "geospatial_lat_max"]
        .into_iter()
        .map(number)
        .collect()
}

/// The first and the last time of a dataset, if its attributes have them (ACDD).
pub(super) fn time_coverage(attributes: &Attributes) -> Option<[String; 2]> {
    let end = |name: &str| attribute(attributes, name);
    Some([end("time_coverage_start")?, end("time_coverage_end")?])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::values::attributes;
    use super::*;

    #[test]
    fn a_coordinate_is_along_an_axis_by_its_attributes_before_its_name() {
        for (name, value, expected) in [
            ("lat", json!({}), Some(CfAxis::Y)),
            ("lat", json!({ "units": "degrees_east" }), Some(CfAxis::X)),
            ("a", json!({ "axis": "Z" }), Some(CfAxis::Z)),
            ("a", json!({ "standard_name": "projection_x_coordinate" }), Some(CfAxis::X)),
            ("a", json!({ "units": "days since 2000-01-01" }), Some(CfAxis::T)),
            ("a", json!({ "units": 3, "axis": ["X"] }), None),
            ("band", json!({}), None),
            ("a", json!({ "positive": "down" }), Some(CfAxis::Z)),
        ] {
            assert_eq!(axis_of(name, &attributes(value.clone())), expected, "{name} {value}");
        }
    }

    #[test]
    fn conventions_grid_mappings_and_coverage_are_read_from_their_attributes() {
        assert_eq!(
            version(&attributes(json!({ "Conventions": "ACDD-1.3, CF-1.8" }))).as_deref(),
            Some("CF-1.8")
        );
        assert_eq!(version(&attributes(json!({ "Conventions": 1.8 }))), None);
        assert_eq!(grid_mappings(&attributes(json!({ "grid_mapping": "crs" }))), ["crs"]);
        let several = json!({ "grid_mapping": "crsOSGB: x y crsWGS84: lat lon other: a" });
        assert_eq!(grid_mappings(&attributes(several)), ["crsOSGB", "crsWGS84"]);
        let bounds = json!({
            "geospatial_lon_min": "-10.5", "geospatial_lat_min": 40, "geospatial_lon_max": 5, "geospatial_lat_max": 60,
            "time_coverage_start": "2000-01-01", "time_coverage_end": "2001-01-01",
        });
        assert_eq!(geospatial_box(&attributes(bounds.clone())), Some(vec![-10.5, 40.0, 5.0, 60.0]));
        assert_eq!(time_coverage(&attributes(bounds)).unwrap()[1], "2001-01-01");
        assert_eq!(geospatial_box(&attributes(json!({ "geospatial_lon_min": [] }))), None);
    }
}
