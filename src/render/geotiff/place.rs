//! [`PlanePlace`]: where the elements of a plane are on a map, as GeoTIFF has it.

use super::directory::{Tag, TagValues};

/// `ModelPixelScaleTag`.
const PIXEL_SCALE: u16 = 33_550;
/// `ModelTiepointTag`.
const TIE_POINT: u16 = 33_922;
/// `GeoKeyDirectoryTag`.
const GEO_KEYS: u16 = 34_735;
/// `GeoDoubleParamsTag`.
const GEO_DOUBLES: u16 = 34_736;
/// `GeoAsciiParamsTag`.
const GEO_TEXTS: u16 = 34_737;
/// The value of a key that says that others define the system.
const USER_DEFINED: u16 = 32_767;
/// What GDAL and others know a definition by in the citation of a system.
const DEFINITION_PREFIX: &str = "ESRI PE String = ";
/// The longest definition that GDAL reads, or less, in bytes.
const MAX_DEFINITION_BYTES: usize = 1500;

/// A coordinate reference system, as GeoTIFF has it.
#[derive(Clone, Debug, PartialEq)]
pub enum PlaneCrs {
    /// Longitudes and latitudes, of this EPSG code.
    Geographic(u16),
    /// Of a projection, of this EPSG code.
    Projected(u16),
    /// Longitudes and latitudes in degrees on an ellipsoid, from Greenwich.
    OnEllipsoid {
        /// Metres from the centre to the equator.
        semi_major_axis: f64,
        /// 0 of a sphere.
        inverse_flattening: f64,
    },
    /// User-defined by a text.
    Defined(CrsDefinition),
}

/// A definition as WKT that a file can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrsDefinition(String);

impl CrsDefinition {
    /// A definition; `None` for one that is too long, or has characters that a file cannot have.
    #[must_use]
    pub fn new(wkt: &str) -> Option<Self> {
        // A vertical line ends a text.
        let can_be = |character: char| matches!(character, ' '..='~') && character != '|';
        (wkt.len() <= MAX_DEFINITION_BYTES && wkt.chars().all(can_be)).then(|| Self(wkt.to_owned()))
    }
}

/// Where the elements of a plane are: rows go to the south and columns to the east.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanePlace {
    /// The western edge of the first column.
    pub west: f64,
    /// The northern edge of the first row.
    pub north: f64,
    /// The width of a column.
    pub width: f64,
    /// The height of a row.
    pub height: f64,
    /// The coordinate reference system, if it is known.
    pub crs: Option<PlaneCrs>,
}

impl PlanePlace {
    /// The tags, in the order of their numbers.
    pub(super) fn tags(&self) -> Vec<Tag> {
        let Self { west, north, width, height, .. } = *self;
        let GeoKeys { mut keys, doubles, texts } = self.keys();
        let count = u16::try_from(keys.len()).unwrap_or(u16::MAX);
        keys.insert(0, [1, 1, 0, count]);
        let mut tags = vec![
            Tag { number: PIXEL_SCALE, values: TagValues::Doubles(vec![width, height, 0.0]) },
            // The corner of the first pixel is there.
            Tag { number: TIE_POINT, values: TagValues::Doubles(vec![0.0, 0.0, 0.0, west, north, 0.0]) },
            Tag { number: GEO_KEYS, values: TagValues::Shorts(keys.concat()) },
        ];
        if !doubles.is_empty() {
            tags.push(Tag { number: GEO_DOUBLES, values: TagValues::Doubles(doubles) });
        }
        if !texts.is_empty() {
            tags.push(Tag { number: GEO_TEXTS, values: TagValues::Text(texts) });
        }
        tags
    }

    /// The keys (OGC GeoTIFF 1.1, section 7.1), in ascending order.
    fn keys(&self) -> GeoKeys {
        // Pixels are areas (`GTRasterTypeGeoKey`).
        let is_area = [1025, 0, 1, 1];
        let model = |model: u16| [1024, 0, 1, model];
        let mut found = GeoKeys::default();
        match &self.crs {
            None => found.keys.push(is_area),
            Some(PlaneCrs::Projected(code)) => found.keys = vec![model(1), is_area, [3072, 0, 1, *code]],
            Some(PlaneCrs::Geographic(code)) => found.keys = vec![model(2), is_area, [2048, 0, 1, *code]],
            Some(PlaneCrs::OnEllipsoid { semi_major_axis, inverse_flattening }) => {
                let is_user_defined = |key: u16| [key, 0, 1, USER_DEFINED];
                let (key, shape) = if *inverse_flattening == 0.0 {
                    (2058, *semi_major_axis)
                } else {
                    (2059, *inverse_flattening)
                };
                found.keys = vec![
                    model(2),
                    is_area,
                    is_user_defined(2048),
                    // Its datum, degrees, and its ellipsoid.
                    is_user_defined(2050),
                    [2054, 0, 1, 9102],
                    is_user_defined(2056),
                    [2057, GEO_DOUBLES, 1, 0],
                    [key, GEO_DOUBLES, 1, 1],
                ];
                found.doubles = vec![*semi_major_axis, shape];
            }
            Some(PlaneCrs::Defined(CrsDefinition(wkt))) => {
                found.texts = format!("{DEFINITION_PREFIX}{wkt}|");
                let length = u16::try_from(found.texts.len()).unwrap_or(u16::MAX);
                found.keys = vec![model(USER_DEFINED), is_area, [3073, GEO_TEXTS, length, 0]];
            }
        }
        found
    }
}

/// Keys, and what is too long to be in one.
#[derive(Default)]
struct GeoKeys {
    keys: Vec<[u16; 4]>,
    doubles: Vec<f64>,
    texts: String,
}
