//! [`DataType`]: the data types of elements (Zarr core 3.1 "Data types", and extensions).
//!
//! `v2` and `v3` parse and write the names in documents. Rules of fill values are in the module `fill_value`.

mod layout;
mod names;
mod numpy;
mod small_float;
mod structure;
mod time;
mod types;
mod v2;
mod v3;

pub(crate) use layout::VARIABLE_ITEM_BYTES;
pub use small_float::SmallFloat;
pub use time::{TimeStep, TimeUnit};
pub use types::{DataType, Endianness, Field, StructType, SubarrayType};
