//! Integer geometry: grids of chunks, their keys, what a request selects, and the copying between boxes.
//!
//! Zarr core 3.1, "Chunk grids" and "Chunk key encoding", the extensions "rectilinear", "prefix", "suffix", "template" and
//! "fanout"; the selection grammar is this server's own (numpy's meaning). Elements are moved here, and neither read nor
//! decoded. Coordinates and lengths are `u64` in elements; products that may exceed it are `u128` or saturate. No grid is
//! ever enumerated as a whole, but where the keys of two are compared, within a budget.

mod axis;
mod copy;
mod elements;
mod extended_keys;
mod grid;
mod joined_keys;
mod key_encoding;
mod key_set;
mod runs;
mod selection;
pub mod strided;
mod subset;
mod window;

pub use axis::{AxisChunk, AxisPiece, ChunkAxis, Touched};
pub use copy::{copy_box, fill_box};
pub use elements::{AssembleError, Elements, ElementsMut, VarSlice};
pub use grid::{ChunkCoords, ChunkGrid};
pub use key_encoding::ChunkKeyEncoding;
pub use key_set::{KeySet, Overlap};
pub use runs::Runs;
pub use selection::{Selection, SelectionError};
pub use subset::{AxisRange, Subset};
pub use window::{CopyRegion, RowRange};
