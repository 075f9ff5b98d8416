//! The format `nc`.

use crate::render::format::{Encoding, Format};

/// A NetCDF file.
pub const FORMAT: Format = Format {
    name: "nc",
    media_type: "application/x-netcdf",
    extension: "nc",
    description: "a NetCDF file of an array and the coordinates of its dimensions, or of the variables of a group: CDF-2 \
        where types, values and sizes allow, else CDF-5. `nc3` insists on CDF-2. Attributes are as stored, and packed values \
        stay packed, unless `decode=cf` unpacks them. A `bool` is a byte, a `float16` a float, texts are arrays of characters, and a `datetime64` is an \
        integer with `units`",
    header_line: None,
    encoding: Encoding::File,
};
