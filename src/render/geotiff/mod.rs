//! GeoTIFF files of one plane (TIFF 6.0; OGC GeoTIFF 1.1; BigTIFF where 32 bits are too few).
//!
//! A file is a header and the rows of the plane from north to south, big-endian and not compressed, in strips. The header follows
//! from the shape, the type and the place of the plane alone, so the length of a file and the place of each row in it are known
//! before an element is read: a file is streamed, and programs read ranges of it.

mod directory;
mod file;
mod format;
mod place;

pub use file::{GeoTiffFile, GeoTiffPlane};
pub use format::FORMAT;
pub use place::{CrsDefinition, PlaneCrs, PlanePlace};
