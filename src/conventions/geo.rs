//! [`Georeference`]: where elements are on a map.
//!
//! The first of these counts: the Zarr conventions `spatial:` and `proj:`, of the node or else of its direct parent; the
//! grid mapping variable of CF; coordinate variables in degrees. Nothing is concluded from magnitudes.

use serde_json::Value;

use super::cf;
use super::level::as_f64;
use super::values::{Members, cut, exactly, member_text, numbers, objects, text, texts};
use crate::metadata::Attributes;

/// The identifier of the convention `proj` in `zarr_conventions`.
const PROJ_ID: &str = "f17cb550-5864-4468-aeb7-f3180cfb622f";
/// Longest definition of a coordinate reference system, in bytes.
pub(super) const MAX_DEFINITION_BYTES: usize = 16 << 10;

/// A coordinate reference system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrsSummary {
    /// What it comes from: `proj`, `grid_mapping`, `crs` or `coordinates`.
    pub source: &'static str,
    /// Its authority and code, such as `EPSG:4326`.
    pub code: Option<String>,
    /// Its definition as WKT.
    pub wkt: Option<String>,
    /// Its definition as PROJJSON.
    pub projjson: Option<Value>,
    /// The name of its projection in CF.
    pub grid_mapping_name: Option<String>,
}

/// Where elements are on a map.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Georeference {
    pub(super) crs: Option<CrsSummary>,
    /// x is `[0]`·column + `[1]`·row + `[2]`, and y is `[3]`·column + `[4]`·row + `[5]`.
    pub(super) transform: Option<[f64; 6]>,
    pub(super) bbox: Option<Vec<f64>>,
    /// The names of the dimensions of rows and columns.
    pub(super) dimensions: Option<[String; 2]>,
    /// Whether the transform is that of the centres of elements, not of their corners.
    pub(super) is_of_centers: bool,
}

impl Georeference {
    /// What the attributes of a node say by the conventions `spatial:` and `proj:`; `None` if they say nothing.
    pub(super) fn declared(attributes: &Attributes) -> Option<Self> {
        let found = Self {
            crs: declared_crs(attributes),
            transform: exactly(attributes.get("spatial:transform").as_ref()),
            bbox: numbers(attributes.get("spatial:bbox").as_ref()).filter(|bbox| matches!(bbox.len(), 4 | 6)),
            dimensions: texts(attributes.get("spatial:dimensions").as_ref()).try_into().ok(),
            is_of_centers: cf::attribute(attributes, "spatial:registration")
                .is_some_and(|word| word == "node"),
        };
        (found.crs.is_some() || found.transform.is_some() || found.bbox.is_some()).then_some(found)
    }

    /// What a grid mapping variable says (CF 1.11, section 5.6, and the attributes that GDAL writes).
    pub(super) fn of_grid_mapping(attributes: &Attributes) -> Option<Self> {
        let wkt = ["crs_wkt", "spatial_ref"].into_iter().find_map(|name| definition(&attributes.get(name)?));
        let name = cf::attribute(attributes, "grid_mapping_name");
        let code =
            ["epsg_code", "EPSG_code", "epsg"].into_iter().find_map(|name| match attributes.get(name)? {
                Value::Number(code) => Some(format!("EPSG:{}", cut(code.as_str()))),
                Value::String(code) if code.contains(':') => Some(cut(&code)),
                Value::String(code) => Some(format!("EPSG:{}", cut(&code))),
                _ => None,
            });
        let transform = match attributes.get("GeoTransform") {
            // GDAL begins with the corner, and separates numbers by blanks.
            Some(Value::String(numbers)) if numbers.len() <= MAX_DEFINITION_BYTES => {
                let numbers = numbers.split_whitespace().take(7).map(|number| number.parse().ok());
                numbers.collect::<Option<Vec<f64>>>().and_then(|numbers| <[f64; 6]>::try_from(numbers).ok())
            }
            list => exactly(list.as_ref()),
        };
        let transform = transform
            .filter(|numbers| numbers.iter().all(|number| number.is_finite()))
            .map(|[x, a, b, y, d, e]| [a, b, x, d, e, y]);
        if wkt.is_none() && name.is_none() && code.is_none() && transform.is_none() {
            return None;
        }
        let crs = CrsSummary { source: "grid_mapping", code, wkt, projjson: None, grid_mapping_name: name };
        Some(Self { crs: Some(crs), transform, ..Self::default() })
    }

    /// The reference by longitudes and latitudes in degrees.
    pub(super) fn geographic(bbox: Option<Vec<f64>>) -> Self {
        let crs =
            CrsSummary { source: "coordinates", code: Some("EPSG:4326".to_owned()), ..CrsSummary::default() };
        Self { crs: Some(crs), bbox, ..Self::default() }
    }

    /// This reference, and what it leaves open from another one.
    pub(super) fn or(self, other: Option<Self>) -> Self {
        let Some(other) = other else { return self };
        // A transform and a box belong together.
        let has_place = self.transform.is_some() || self.bbox.is_some();
        let (transform, bbox, is_of_centers) = if has_place {
            (self.transform, self.bbox, self.is_of_centers)
        } else {
            (other.transform, other.bbox, other.is_of_centers)
        };
        let (crs, dimensions) = (self.crs.or(other.crs), self.dimensions.or(other.dimensions));
        Self { crs, transform, bbox, dimensions, is_of_centers }
    }

    /// The bounding box: as declared, else that of this many rows and columns under the transform.
    pub(super) fn bounds(&self, rows: u64, columns: u64) -> Option<Vec<f64>> {
        if self.bbox.is_some() {
            return self.bbox.clone();
        }
        let [of_x @ .., y_by_column, y_by_row, top] = self.transform?;
        let [x_by_column, x_by_row, left] = of_x;
        let margin = if self.is_of_centers { 0.5 } else { 0.0 };
        let corners =
            [0.0, as_f64(columns)].into_iter().flat_map(|column| [(column, 0.0), (column, as_f64(rows))]);
        let mut bounds = [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY];
        for (column, row) in corners {
            let (column, row) = (column - margin, row - margin);
            let x = x_by_column * column + x_by_row * row + left;
            let y = y_by_column * column + y_by_row * row + top;
            bounds = [bounds[0].min(x), bounds[1].min(y), bounds[2].max(x), bounds[3].max(y)];
        }
        bounds.iter().all(|bound| bound.is_finite()).then(|| bounds.to_vec())
    }
}

/// The system that attributes declare by the convention `proj`, whose keys have its name as a prefix.
fn declared_crs(attributes: &Attributes) -> Option<CrsSummary> {
    let conventions = attributes.get("zarr_conventions");
    let is_proj = |convention: &&Members| convention.get("uuid").is_some_and(|id| id == PROJ_ID);
    let registered =
        objects(conventions.as_ref()).find(is_proj).and_then(|convention| member_text(convention, "name"));
    let registered = registered.map(|name| name.trim_end_matches(':').to_owned());
    let find = |prefix: &str| {
        let nested = attributes.get(prefix);
        let nested = nested.as_ref().and_then(Value::as_object);
        let member = |name: &str| {
            let own = attributes.get(&format!("{prefix}:{name}"));
            own.or_else(|| nested?.get(name).cloned()).filter(|value| !value.is_null())
        };
        let crs = CrsSummary {
            source: "proj",
            code: member("code").as_ref().and_then(text),
            wkt: member("wkt2").as_ref().and_then(definition),
            projjson: member("projjson")
                .filter(|value| value.is_object() && value.to_string().len() <= MAX_DEFINITION_BYTES),
            grid_mapping_name: None,
        };
        (crs.code.is_some() || crs.wkt.is_some() || crs.projjson.is_some()).then_some(crs)
    };
    find("proj").or_else(|| find(&registered?))
}

/// A definition as text, unless it is very long.
fn definition(value: &Value) -> Option<String> {
    let text = value.as_str()?.trim();
    (!text.is_empty() && text.len() <= MAX_DEFINITION_BYTES).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::values::attributes;
    use super::*;

    #[test]
    fn a_declared_reference_is_found_by_key_and_by_registered_name() {
        let by_key = json!({ "proj:code": "EPSG:32633", "spatial:transform": [10, 0, 5e5, 0, -10, 5e6] });
        let found = Georeference::declared(&attributes(by_key)).unwrap();
        assert_eq!(found.crs.clone().unwrap().code.as_deref(), Some("EPSG:32633"));
        assert_eq!(found.bounds(100, 200), Some(vec![500_000.0, 4_999_000.0, 502_000.0, 5_000_000.0]));
        for nested in [
            json!({ "zarr_conventions": [7, { "uuid": PROJ_ID, "name": "geo-proj:" }], "geo-proj:code": "OGC:CRS84" }),
            json!({ "zarr_conventions": [{ "uuid": PROJ_ID, "name": "geo" }], "geo": { "code": "OGC:CRS84" } }),
            json!({ "proj": { "code": "OGC:CRS84", "wkt2": null } }),
        ] {
            let found = Georeference::declared(&attributes(nested.clone()));
            assert_eq!(found.unwrap().crs.unwrap().code.as_deref(), Some("OGC:CRS84"), "{nested}");
        }
        let centers = json!({ "spatial:transform": [1, 0, 0, 0, 1, 0], "spatial:registration": "node" });
        assert_eq!(
            Georeference::declared(&attributes(centers)).unwrap().bounds(2, 4),
            Some(vec![-0.5, -0.5, 3.5, 1.5])
        );
    }

    #[test]
    fn a_grid_mapping_has_the_transform_of_gdal() {
        let mapping = json!({ "crs_wkt": "PROJCRS[…]", "GeoTransform": "500000 10 0 5000000 0 -10 " });
        let found = Georeference::of_grid_mapping(&attributes(mapping)).unwrap();
        assert_eq!(found.transform, Some([10.0, 0.0, 500_000.0, 0.0, -10.0, 5_000_000.0]));
        let code = json!({ "grid_mapping_name": "transverse_mercator", "epsg_code": 32633 });
        let crs = Georeference::of_grid_mapping(&attributes(code)).unwrap().crs.unwrap();
        assert_eq!(crs.code.as_deref(), Some("EPSG:32633"));
    }

    #[test]
    fn attributes_of_another_form_give_no_georeference() {
        for value in [
            json!({}),
            json!({ "proj:code": 4326, "spatial:transform": [1, 2], "spatial:bbox": "0,0,1,1" }),
            json!({ "spatial:transform": ["1", 0, 0, 0, 1, 0], "proj:wkt2": "x".repeat(1 << 20), "proj:projjson": [] }),
        ] {
            assert_eq!(Georeference::declared(&attributes(value.clone())), None, "{value}");
        }
        let odd = json!({ "GeoTransform": "1 2 nan 4 5 6", "crs_wkt": 3, "grid_mapping_name": [] });
        assert_eq!(Georeference::of_grid_mapping(&attributes(odd)), None);
    }
}
