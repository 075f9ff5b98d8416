//! The coordinate reference system of a plane: what is declared of it, if that fits the coordinates.
//!
//! Where nothing is declared, longitudes and latitudes are those of EPSG:4326. Where something is declared that does not fit or that
//! a file cannot have, there is no file: programs would take the place of its pixels for another one.

use crate::conventions::{
    CrsSummary, CrsUnit, DeclaredCrs, epsg_code_of_projjson, epsg_code_of_wkt, is_geographic, text_attribute,
    unit_of_wkt,
};
use crate::metadata::Attributes;
use crate::render::geotiff::{CrsDefinition, PlaneCrs};

/// Names of units (UDUNITS-2), and the units of reference systems that they are.
const UNITS: [(CrsUnit, &[&str]); 4] = [
    (CrsUnit::Metres, &["m", "metre", "metres", "meter", "meters"]),
    (CrsUnit::Feet, &["ft", "foot", "feet", "international_foot", "international_feet"]),
    (
        CrsUnit::UsSurveyFeet,
        &["US_survey_foot", "US_survey_feet", "US survey foot", "ft_us", "us-ft", "ftUS"],
    ),
    (CrsUnit::Degrees, &["degree", "degrees", "deg"]),
];

/// What the coordinates along a dimension say that they are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AxisUnit {
    /// Nothing.
    Unknown,
    /// Longitudes or latitudes.
    Geographic,
    /// A length in no unit, along a projection.
    Projection,
    /// This.
    Of(CrsUnit),
    /// A unit that no reference system has.
    Other(String),
}

impl AxisUnit {
    /// That of a coordinate.
    pub(super) fn of_coordinate(name: &str, attributes: &Attributes) -> Self {
        if is_geographic(name, attributes) {
            return Self::Geographic;
        }
        let standard_name = text_attribute(attributes, "standard_name").unwrap_or_default();
        match text_attribute(attributes, "units") {
            _ if matches!(standard_name.as_str(), "grid_longitude" | "grid_latitude") => {
                Self::Of(CrsUnit::DerivedDegrees)
            }
            None if standard_name.starts_with("projection_") => Self::Projection,
            None => Self::Unknown,
            Some(units) => {
                let known = UNITS.iter().find(|(_, names)| names.contains(&units.as_str()));
                known.map_or(Self::Other(units), |(unit, _)| Self::Of(*unit))
            }
        }
    }

    fn fits(&self, unit: CrsUnit) -> bool {
        match self {
            Self::Unknown => true,
            Self::Geographic => unit == CrsUnit::Degrees,
            Self::Projection => {
                matches!(unit, CrsUnit::Metres | CrsUnit::Feet | CrsUnit::UsSurveyFeet)
            }
            Self::Of(own) => *own == unit,
            Self::Other(_) => false,
        }
    }

    /// What the coordinates are in, in a sentence.
    fn name(&self) -> String {
        match self {
            Self::Unknown => "no unit".to_owned(),
            Self::Geographic => CrsUnit::Degrees.name().to_owned(),
            Self::Projection => "a unit of length of a projection".to_owned(),
            Self::Of(unit) => unit.name().to_owned(),
            Self::Other(units) => format!("`{units}`"),
        }
    }
}

/// The reference system of a plane; `None` if nothing is declared, and the coordinates are no longitudes and latitudes.
///
/// # Errors
/// Why there can be no file, and what to request instead.
pub(super) fn plane_crs(
    declared: Option<&DeclaredCrs>,
    axes: [&AxisUnit; 2],
) -> Result<Option<PlaneCrs>, String> {
    let is_geographic = axes.iter().all(|axis| **axis == AxisUnit::Geographic);
    let Some(declared) = declared else {
        return Ok(is_geographic.then_some(PlaneCrs::Geographic(4326)));
    };
    let place = &declared.place;
    let refuse = |why: String| format!("{place} {why}; request `format=nc`, which keeps it, or a picture");
    let Some(crs) = &declared.crs else {
        return Err(refuse(
            "is not there, or is not a coordinate reference system that can be read".to_owned(),
        ));
    };
    let check = |what: &str, unit: CrsUnit| match axes.into_iter().find(|axis| !axis.fits(unit)) {
        None if has_kind(crs, unit) => Ok(()),
        None => Err(refuse(format!(
            "has the name `{}`, and {what}, whose coordinates are {}",
            crs.grid_mapping_name.as_deref().unwrap_or_default(),
            unit.name()
        ))),
        Some(axis) => Err(refuse(format!(
            "has {what}, whose coordinates are {}, and those of the array are in {}",
            unit.name(),
            axis.name()
        ))),
    };
    if let Some(code) = epsg_code(crs) {
        let what = format!("the code EPSG:{code}");
        let known = code.parse().ok().and_then(|code: u16| Some((code, CrsUnit::of_epsg(code)?)));
        let Some((code, unit)) = known else {
            return Err(refuse(format!(
                "has {what}, which is none of a geographic system in degrees, or of a projected one in metres or feet"
            )));
        };
        check(&what, unit)?;
        let is_projected = unit != CrsUnit::Degrees;
        return Ok(Some(if is_projected { PlaneCrs::Projected(code) } else { PlaneCrs::Geographic(code) }));
    }
    let defined = crs.wkt.as_deref().and_then(|wkt| Some((unit_of_wkt(wkt)?, wkt)));
    if let Some((unit, wkt)) = defined {
        check("a definition", unit)?;
        if let Some(definition) = CrsDefinition::new(wkt) {
            return Ok(Some(PlaneCrs::Defined(definition)));
        }
    }
    let is_mapped = crs.grid_mapping_name.as_deref() == Some("latitude_longitude");
    if let Some(ellipsoid) = declared.ellipsoid.filter(|_| is_mapped) {
        check("an ellipsoid", CrsUnit::Degrees)?;
        let (semi_major_axis, inverse_flattening) = (ellipsoid.semi_major_axis, ellipsoid.inverse_flattening);
        return Ok(Some(PlaneCrs::OnEllipsoid { semi_major_axis, inverse_flattening }));
    }
    // It says that the coordinates are longitudes and latitudes, and no more than they do.
    if is_mapped && is_geographic && crs.wkt.is_none() && crs.code.is_none() && !declared.has_figure {
        return Ok(Some(PlaneCrs::Geographic(4326)));
    }
    let what = [&crs.code, &crs.grid_mapping_name].into_iter().flatten().next();
    let what = what.map_or_else(|| "a definition".to_owned(), |what| format!("`{what}`"));
    Err(refuse(format!(
        "has {what}, which a GeoTIFF file cannot have: it has an EPSG code, or a definition as WKT of at most 1500 bytes, or the \
         grid mapping `latitude_longitude` with an ellipsoid"
    )))
}

/// Whether the coordinates of a grid mapping of this name are in such a unit.
fn has_kind(crs: &CrsSummary, unit: CrsUnit) -> bool {
    match crs.grid_mapping_name.as_deref() {
        None => true,
        Some("latitude_longitude") => unit == CrsUnit::Degrees,
        Some("rotated_latitude_longitude") => unit == CrsUnit::DerivedDegrees,
        Some(_) => !matches!(unit, CrsUnit::Degrees | CrsUnit::DerivedDegrees),
    }
}

/// The EPSG code of a reference system, as it is written.
fn epsg_code(crs: &CrsSummary) -> Option<String> {
    let of_code = |code: &str| {
        let code = code.to_ascii_uppercase();
        if code == "OGC:CRS84" {
            Some("4326".to_owned())
        } else {
            code.strip_prefix("EPSG:").map(str::to_owned)
        }
    };
    crs.code
        .as_deref()
        .and_then(of_code)
        .or_else(|| epsg_code_of_wkt(crs.wkt.as_deref()?).map(str::to_owned))
        .or_else(|| epsg_code_of_projjson(crs.projjson.as_ref()?))
}
