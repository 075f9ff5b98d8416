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

pub use attributes::{Attribute, Values};
pub use bbox::{Amplification, Bbox, Interval, Touch};
pub use cells::{CellArray, Keys, NonEmptyCells, ShardPlace};
pub use chunk::ChunkRows;
pub use context::Context;
pub use coord::{Coord, dotted, parse_dotted};
pub use error::VectorError;
pub use level::Level;
pub use links::{Link, LinkAttribute, LinkFamily, Segment, check_profile, doc_links};
pub use object_rows::rows_of;
pub use objects::{Object, ObjectIndex, ObjectValue};
pub use query::{Cursor, Mode, VertexQuery};
pub use read_plan::{Failure, FoundObject};
pub use root::{Axis, Profile, Root};
pub use select::{Batch, Column, Columns, Schema};
pub use shapes::Shapes;
pub use stats::{Stats, SummaryStats};
pub use store::{LevelName, VectorStore};
pub use touched::TouchedChunks;
pub use vertex_stream::VertexStream;
pub use walk::Walk;
