//! Integer geometry: chunk grids, chunk keys, selections, and copies between boxes of elements.
//!
//! Zarr core 3.1, "Chunk grids" and "Chunk key encoding", the extensions "rectilinear", "prefix", "suffix", "template" and
//! "fanout". The selection grammar is this server's own, with numpy's meaning. This module moves elements; it neither reads
//! nor decodes them. Coordinates and lengths are `u64` in elements; products that may exceed that are `u128` or saturate. No
//! code enumerates a whole grid, except to compare the keys of two grids within a budget.

mod auto_shape;
mod axis;
mod copy;
mod elements;
mod extended_keys;
mod gather;
mod grid;
mod index_list;
mod joined_keys;
mod key_encoding;
mod key_set;
mod point_gather;
mod points;
mod positions;
mod runs;
mod selection;
pub mod strided;
mod subset;
mod window;

pub use auto_shape::auto_chunk_shape;
pub use axis::{AxisChunk, AxisPiece, ChunkAxis, TouchedChunkTotals};
pub use copy::{copy_box, fill_box, place_box};
pub use elements::{AssembleError, Elements, ElementsMut, VarSlice};
pub use gather::{Gather, GatherBox, MAX_GATHER_PARTS};
pub use grid::{ChunkCoords, ChunkGrid};
pub use index_list::{IndexList, MAX_LIST_ITEMS};
pub use key_encoding::ChunkKeyEncoding;
pub use key_set::{ChunkKeySet, Overlap};
pub use point_gather::PointGather;
pub use points::Points;
pub use positions::AxisPositions;
pub use runs::Runs;
pub use selection::{Selection, SelectionError, dimension_called};
pub use subset::{AxisRange, Subset};
pub use window::{CopyRegion, RowRange};
