//! Zarr Vector Format: points, lines, meshes and their objects, cut into chunks of space.
//!
//! Zarr Vector Format 0.9 as its library writes it, 0.6 to 0.8 as it was written before, and the layout of the documents
//! (version 1.0): one [`VectorStore`] for all three. Payloads are decoded here (`payload`), from cells that the array
//! room reads ([`CellArray`]); boxes are answered chunk by chunk in bounded memory ([`VertexQuery`]); what a store must
//! keep to is checked in levels (`validate`). Rendering and HTTP are not this room's business, nor is writing.

mod attributes;
mod bbox;
mod cells;
mod chunk;
mod context;
mod coord;
mod error;
mod json;
mod level;
mod links;
mod object_rows;
mod objects;
pub mod payload;
mod query;
mod read_plan;
mod root;
mod select;
mod shapes;
mod stats;
mod store;
mod touched;
pub mod validate;
mod vertex_stream;
mod walk;

pub use attributes::{Values, VertexAttribute};
pub use bbox::{Amplification, Bbox, Interval, TouchedRanges};
pub use cells::{CellArray, CellKey, NonEmptyCells, ShardPosition};
pub use chunk::ChunkVertices;
pub use context::VectorContext;
pub use coord::{Coord, format_coord, parse_coord};
pub use error::VectorError;
pub use level::Level;
pub use links::{Link, LinkArray, LinkAttribute, LinkFamily, check_links_supported, read_doc_links};
pub use object_rows::object_rows;
pub use objects::{ObjectIndex, ObjectValue, VectorObject};
pub use query::{PageCursor, QueryMode, VertexQuery};
pub use read_plan::{ChunkFailure, MatchedObject};
pub use root::{Axis, Profile, RootMetadata};
pub use select::{Batch, Column, Columns, Schema};
pub use shapes::Shapes;
pub use stats::{LevelStats, SummaryStats};
pub use store::{LevelName, VectorStore};
pub use touched::TouchedChunks;
pub use vertex_stream::VertexStream;
pub use walk::EdgeTraversal;
