//! [`DeclaredCrs`]: the coordinate reference system that is declared of a variable.
//!
//! The first of these counts: the convention `proj:` of the variable; its grid mapping (CF 1.12, section 5.6); its attribute `crs`;
//! the convention `proj:` of its group.

use serde_json::Value;

use super::cf;
use super::geo::{CrsSummary, Georeference};
use super::values::{cut, number};
use crate::metadata::Attributes;

/// Attributes of a grid mapping about its ellipsoid, its meridian and its datum.
const FIGURE: [&str; 9] = [
    "earth_radius",
    "semi_major_axis",
    "semi_minor_axis",
    "inverse_flattening",
    "longitude_of_prime_meridian",
    "reference_ellipsoid_name",
    "prime_meridian_name",
    "horizontal_datum_name",
    "geographic_crs_name",
];

/// A reference system, or what was meant to be one.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredCrs {
    /// Where it is declared, in words: "the grid mapping `crs`".
    pub place: String,
    /// What is declared; `None` if that cannot be read.
    pub crs: Option<CrsSummary>,
    /// The ellipsoid that a grid mapping has.
    pub ellipsoid: Option<Ellipsoid>,
    /// Whether a grid mapping says something about an ellipsoid, a meridian or a datum.
    pub has_figure: bool,
}

/// An ellipsoid of revolution, whose longitudes count from Greenwich.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ellipsoid {
    /// Metres from the centre to the equator.
    pub semi_major_axis: f64,
    /// 0 of a sphere.
    pub inverse_flattening: f64,
}

impl DeclaredCrs {
    /// What is declared of a variable with these two dimensions, by its attributes, by the grid mappings of their names, and by
    /// the attributes of its group; `None` if nothing is declared.
    #[must_use]
    pub fn of_variable<'a>(
        variable: &Attributes,
        dimensions: [&str; 2],
        mapping: impl Fn(&str) -> Option<&'a Attributes>,
        group: Option<&Attributes>,
    ) -> Option<Self> {
        let by_proj = |attributes: &Attributes, place: &str| {
            let crs = Georeference::declared(attributes)?.crs?;
            Some(Self { place: place.to_owned(), crs: Some(crs), ellipsoid: None, has_figure: false })
        };
        by_proj(variable, "the `proj:` attributes of the array")
            .or_else(|| Self::of_mapping(variable, dimensions, mapping))
            .or_else(|| Self::of_attribute(variable))
            .or_else(|| by_proj(group?, "the `proj:` attributes of the group"))
    }

    fn of_mapping<'a>(
        variable: &Attributes,
        dimensions: [&str; 2],
        mapping: impl Fn(&str) -> Option<&'a Attributes>,
    ) -> Option<Self> {
        let declared = variable.member_text("grid_mapping")?;
        let name = cf::grid_mapping_of(variable, dimensions);
        let named = name.as_deref().unwrap_or(declared);
        let place = format!("the grid mapping `{}`", cut(named));
        let attributes = name.as_deref().and_then(mapping);
        let crs = attributes.and_then(|attributes| Georeference::of_grid_mapping(attributes)?.crs);
        let ellipsoid = attributes.and_then(Ellipsoid::of_grid_mapping);
        let says = |attributes: &Attributes| FIGURE.iter().any(|name| attributes.contains_key(name));
        Some(Self { place, crs, ellipsoid, has_figure: attributes.is_some_and(says) })
    }

    /// A code or a definition, as some programs write it.
    fn of_attribute(variable: &Attributes) -> Option<Self> {
        let of_name = |name: &&'static str| Some((*name, variable.get(name)?));
        let (name, value) = ["crs", "crs_wkt", "spatial_ref"].iter().find_map(of_name)?;
        let text =
            value.as_str().map(str::trim).filter(|text| text.len() <= super::geo::MAX_DEFINITION_BYTES);
        let summary = |text: &str| {
            let (code, wkt) =
                if text.contains('[') { (None, Some(text.to_owned())) } else { (Some(cut(text)), None) };
            CrsSummary { source: "crs", code, wkt, ..CrsSummary::default() }
        };
        let place = format!("the attribute `{name}`");
        Some(Self { place, crs: text.map(summary), ellipsoid: None, has_figure: false })
    }
}

impl Ellipsoid {
    /// That of the attributes of a grid mapping (CF 1.12, appendix F).
    fn of_grid_mapping(attributes: &Attributes) -> Option<Self> {
        let find = |name: &str| attributes.get(name).as_ref().and_then(number);
        if find("longitude_of_prime_meridian").is_some_and(|longitude| longitude != 0.0) {
            return None;
        }
        let radius = find("earth_radius");
        let semi_major_axis = find("semi_major_axis").or(radius).filter(|&axis| axis > 0.0)?;
        let by_axes = || {
            let semi_minor_axis = find("semi_minor_axis").or(radius)?;
            let difference = semi_major_axis - semi_minor_axis;
            Some(if difference == 0.0 { 0.0 } else { semi_major_axis / difference })
        };
        let inverse_flattening = find("inverse_flattening").or_else(by_axes)?;
        let is_one = inverse_flattening == 0.0 || inverse_flattening > 1.0;
        is_one.then_some(Self { semi_major_axis, inverse_flattening })
    }
}

/// The EPSG code at the top of a definition as PROJJSON.
#[must_use]
pub fn epsg_code_of_projjson(definition: &Value) -> Option<String> {
    let id = definition.get("id")?;
    let code = id.get("code")?;
    let code = code.as_str().map_or_else(|| code.to_string(), str::to_owned);
    (id.get("authority")? == "EPSG").then_some(code)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::values::attributes;
    use super::*;

    fn declared(variable: Value, mapping: Value, group: Value) -> Option<DeclaredCrs> {
        let (variable, mapping, group) = (attributes(variable), attributes(mapping), attributes(group));
        let find = |name: &str| (name == "crs").then_some(&mapping);
        DeclaredCrs::of_variable(&variable, ["y", "x"], find, Some(&group))
    }

    #[test]
    fn the_nearest_declaration_counts_and_one_that_cannot_be_read_is_not_absent() {
        let code = |variable: Value, mapping: Value, group: Value| {
            let found = declared(variable.clone(), mapping, group)?;
            Some((found.place, found.crs.and_then(|crs| crs.code)))
        };
        let (none, group) = (|| json!({}), || json!({ "proj:code": "EPSG:3" }));
        let expected = |place: &str, code: Option<&str>| Some((place.to_owned(), code.map(str::to_owned)));
        assert_eq!(code(none(), none(), none()), None);
        assert_eq!(
            code(none(), none(), group()),
            expected("the `proj:` attributes of the group", Some("EPSG:3"))
        );
        let mapped = || json!({ "grid_mapping": "crs", "crs": "EPSG:2" });
        let one = json!({ "epsg_code": 1 });
        assert_eq!(code(mapped(), one, group()), expected("the grid mapping `crs`", Some("EPSG:1")));
        assert_eq!(code(mapped(), none(), group()), expected("the grid mapping `crs`", None));
        assert_eq!(
            code(json!({ "crs": "EPSG:2" }), none(), group()),
            expected("the attribute `crs`", Some("EPSG:2"))
        );
        assert_eq!(code(json!({ "crs": [2] }), none(), none()), expected("the attribute `crs`", None));
        assert_eq!(
            code(json!({ "grid_mapping": 7 }), none(), none()),
            expected("the grid mapping `7`", None)
        );
        let several = json!({ "grid_mapping": "other: lat lon crs: x y" });
        assert_eq!(
            code(several, json!({ "epsg": "5" }), none()),
            expected("the grid mapping `crs`", Some("EPSG:5"))
        );
    }

    #[test]
    fn an_ellipsoid_is_that_of_its_axes_or_its_flattening() {
        for (value, expected) in [
            (json!({ "earth_radius": 6_371_229.0 }), Some((6_371_229.0, 0.0))),
            (
                json!({ "semi_major_axis": 3_396_190, "inverse_flattening": 169.9 }),
                Some((3_396_190.0, 169.9)),
            ),
            (json!({ "semi_major_axis": 4.0, "semi_minor_axis": 3.0 }), Some((4.0, 4.0))),
            (json!({ "semi_major_axis": 4.0, "semi_minor_axis": 4.0 }), Some((4.0, 0.0))),
            (json!({ "semi_major_axis": 4.0 }), None),
            (json!({ "semi_major_axis": 4.0, "semi_minor_axis": 5.0 }), None),
            (json!({ "earth_radius": -1.0 }), None),
            (json!({ "earth_radius": "1" }), None),
            (json!({ "earth_radius": 1.0, "longitude_of_prime_meridian": 2.5 }), None),
        ] {
            let found = Ellipsoid::of_grid_mapping(&attributes(value.clone()));
            let found = found.map(|found| (found.semi_major_axis, found.inverse_flattening));
            assert_eq!(found, expected, "{value}");
        }
    }
}
