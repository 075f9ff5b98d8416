//! [`CellArray`]: the payloads of one kind, with one cell for each chunk of a level, in any profile.
//!
//! In profile 0.9 a cell is a variable-length element of one array. In the older profile each cell is a byte array of
//! its own, named by its chunk's coordinates. In the documents' profile a cell is a chunk of a dense array. All reads
//! pass through the `array` module, which handles codecs, shards, memory and limits. Payloads are not interpreted here.

mod cell_array;
mod keys;
mod list;
mod short_keys;

pub use cell_array::CellArray;
pub use keys::{CellKey, ShardPosition};
pub use list::NonEmptyCells;
