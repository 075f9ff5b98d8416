//! The format `tiff`.

use crate::render::format::{Encoding, Format};

/// A GeoTIFF file.
pub const FORMAT: Format = Format {
    name: "tiff",
    media_type: "image/tiff",
    extension: "tif",
    description: "a GeoTIFF file of one plane of numbers whose dimensions have regular coordinates: from north to south, with its \
        coordinate reference system, its missing value, scale and offset. Packed values stay packed, unless `decode=cf` \
        unpacks them. A `bool` is a byte, a \
        `float16` a float",
    header_line: None,
    encoding: Encoding::File,
};
