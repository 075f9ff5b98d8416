//! [`FillValue`]: the value of all elements of absent chunks (Zarr core 3.1, "Fill value").
//!
//! `v3` parses the spellings that the specification permits, `lenient` also others that writers use, and `emit` writes. All
//! keep exact bits. The module `data_type` limits the size of elements.

mod element;
mod emit;
mod lenient;
mod v3;
mod value;

pub use value::FillValue;
