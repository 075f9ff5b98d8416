//! [`PlanePlace`]: where the elements of a plane are on a map, as GeoTIFF has it.

use super::directory::{Tag, TagValues};

/// `ModelPixelScaleTag`.
const PIXEL_SCALE: u16 = 33_550;
/// `ModelTiepointTag`.
const TIE_POINT: u16 = 33_922;
/// `GeoKeyDirectoryTag`.
const GEO_KEYS: u16 = 34_735;

/// The kind of a coordinate reference system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrsKind {
    /// Longitudes and latitudes.
    Geographic,
    /// Of a projection.
    Projected,
}

/// Where the elements of a plane are: rows go to the south and columns to the east.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanePlace {
    /// The western edge of the first column.
    pub west: f64,
    /// The northern edge of the first row.
    pub north: f64,
    /// The width of a column.
    pub width: f64,
    /// The height of a row.
    pub height: f64,
    /// The kind and the EPSG code of the coordinate reference system, if it is known.
    pub crs: Option<(CrsKind, u16)>,
}

impl PlanePlace {
    /// The tags, in the order of their numbers.
    pub(super) fn tags(&self) -> [Tag; 3] {
        let Self { west, north, width, height, .. } = *self;
        [
            Tag { number: PIXEL_SCALE, values: TagValues::Doubles(vec![width, height, 0.0]) },
            // The corner of the first pixel is there.
            Tag { number: TIE_POINT, values: TagValues::Doubles(vec![0.0, 0.0, 0.0, west, north, 0.0]) },
            Tag { number: GEO_KEYS, values: TagValues::Shorts(self.keys()) },
        ]
    }

    /// The key directory (OGC GeoTIFF 1.1, section 7.1).
    fn keys(&self) -> Vec<u16> {
        // Pixels are areas (`GTRasterTypeGeoKey`).
        let mut keys = vec![[1025, 0, 1, 1]];
        match self.crs {
            Some((CrsKind::Projected, code)) => {
                keys.insert(0, [1024, 0, 1, 1]);
                keys.push([3072, 0, 1, code]);
            }
            Some((CrsKind::Geographic, code)) => {
                keys.insert(0, [1024, 0, 1, 2]);
                keys.push([2048, 0, 1, code]);
            }
            None => {}
        }
        let count = u16::try_from(keys.len()).unwrap_or(u16::MAX);
        [1, 1, 0, count].into_iter().chain(keys.into_iter().flatten()).collect()
    }
}
