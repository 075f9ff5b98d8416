//! The names of the format.

use crate::render::format::{Encoding, Format};

pub(in crate::render) const FORMAT: Format = Format {
    name: "parquet",
    media_type: "application/vnd.apache.parquet",
    extension: "parquet",
    description: "a Parquet file of a long table, as with `coords=1`: a column for each dimension with its labels, and one for each \
        variable",
    header_line: None,
    encoding: Encoding::File,
};
