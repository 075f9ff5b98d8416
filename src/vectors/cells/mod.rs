//! [`CellArray`]: the payloads of one kind, a cell for each chunk of a level, whichever profile the store has.
//!
//! Of the newer layout the cells are elements of variable length of one array; of the older each is an array of bytes of
//! its own, named by its chunk; of the documents' layout a chunk of a dense array. Reads go through the array room, so
//! codecs, shards, memory and limits are its business; what a payload means is not decided here.

mod cell_array;
mod keys;
mod list;
mod short_keys;

pub use cell_array::CellArray;
pub use keys::{CellKey, ShardPosition};
pub use list::NonEmptyCells;
