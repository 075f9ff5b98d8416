//! Pictures: numbers become colours, and colours become PNG (ISO/IEC 15948).
//!
//! [`Plane`] is a two-dimensional array of elements, [`Decoding`] says what number each of them is, [`Mapping`] places a number
//! within a range, [`Colormap`] gives the place a colour, [`Style`] puts them together, and [`Picture::encode`] writes the
//! file. [`PictureFile`] writes that of a picture with many pixels while it is drawn.
//! Everything here is pure and deterministic: the same elements and the same style make the same bytes.

mod categories;
mod color;
mod colormap;
mod decoding;
mod file;
mod legend;
mod mapping;
mod numbers;
mod palette;
mod part;
mod picture;
mod place_rows;
mod plane;
mod quantiles;
mod style;
mod tables;

pub use categories::Categories;
pub use color::Color;
pub use colormap::{COLORMAPS, Colormap};
pub use decoding::Decoding;
pub use file::{PictureFile, rows_at_once, waiting_bytes, writing_bytes};
pub use legend::ramps;
pub use mapping::{Mapping, Scale};
pub use part::Part;
pub use picture::{Picture, Pixels, most_file_bytes};
pub use plane::Plane;
pub use quantiles::{extremes, quantiles};
pub use style::{Channel, MappedStyle, Outside, Style};
