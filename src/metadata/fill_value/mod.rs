//! [`FillValue`]: the element that absent chunks consist of (Zarr core 3.1, "Fill value").
//!
//! `v3` reads what the specification permits, `lenient` that and what writers of either version put there besides, `emit`
//! writes. All work on exact bits. How large an element may be is the data type's business.

mod element;
mod emit;
mod lenient;
mod v3;
mod value;

pub use value::FillValue;
