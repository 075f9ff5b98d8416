//! Zarr Vector Format: points, lines, meshes and their objects, stored in Zarr arrays and split into chunks of space.
//!
//! This module reads and validates such stores. It neither writes nor renders them, and it knows nothing of HTTP. The
//! cargo feature `vectors` (on by default) includes it.
//!
//! # The convention
//! A store is a Zarr group whose attributes declare the axes, the edge lengths of a chunk and of a bin, the bounds and
//! the types of geometry ([`RootMetadata`]). Each level of detail is a child group named by its number; level 0 is the
//! finest ([`ResolutionLevel`]). A chunk is a box of space: along each axis, coordinate `x` lies in chunk `floor(x / edge)`
//! ([`Coord`]). Bins subdivide chunks. Each kind of payload has one cell for each chunk ([`CellArray`]).
//!
//! Below a level, in profile 0.9:
//!
//! | Node | Content |
//! |---|---|
//! | `vertices` | positions: one float for each axis and vertex |
//! | `vertex_fragments` | which rows of a chunk belong together |
//! | `vertex_attributes/NAME` | values for each vertex |
//! | `fragment_attributes/NAME` | values for each fragment |
//! | `object_index/manifests`, `object_index/object_ids` | the fragments of each object, and its id |
//! | `object_attributes/NAME` | values for each object |
//! | `groups`, `group_attributes/NAME` | groups of objects, and values for each group |
//! | `links/DELTA/OFFSETS` | records that join rows, within a level (`0`) or to the level that is `DELTA` further |
//! | `link_attributes/NAME/DELTA/OFFSETS`, `link_fragments` | values for each record, and groups of records |
//!
//! # Profiles
//! A store has one of three layouts ([`Profile`]); [`VectorStore`] reads all of them.
//!
//! - `v9`, format 0.9 as its library writes it: a kind of payload is one array of variable-length bytes, with an element
//!   for each chunk.
//! - `v7`, formats 0.6 to 0.8: a kind of payload is a group with an array of bytes for each chunk. Links are not read.
//! - `doc`, version 1.0 of the format's documents: dense arrays with a chunk for each chunk of space, metadata in
//!   `.zattrs`, attributes in `attributes/NAME`, fragments in `vertex_group_offsets`, edges in `links/edges`,
//!   `links/faces` and `cross_chunk_links`, and objects as pairs of numbers in `object_index`.
//!
//! # Routes, and what they read
//! Below `/v1/vectors/{mount}/{path}`; a level's subresources follow `levels/N`, or the path for the finest level. Every
//! request first reads the metadata of the store, of `vertices`, and of the requested level.
//!
//! | Route | Entry point | Nodes and payloads |
//! |---|---|---|
//! | the store itself | [`VectorStore::all_levels`] | metadata of every level and its `vertices` |
//! | `levels/N` | [`ResolutionLevel`] | the list of non-empty chunks, metadata of vertex attributes |
//! | `chunks` | [`TouchedChunks`] | the list of non-empty chunks; with `include=sizes`, sizes of stored cells |
//! | `chunks/COORD` | [`ChunkVertices`] | one chunk of `vertices` and its fragments, all manifests |
//! | `vertices` | [`VertexQuery`] | touched chunks of `vertices`, fragments and the requested attributes; all manifests if objects are requested |
//! | `objects` | [`ObjectIndex`] | object ids, and the manifests, attributes and groups of the objects listed |
//! | `objects/ID` | [`ObjectIndex`] | object ids, one manifest, its attributes |
//! | `objects/ID/vertices` | [`object_rows()`] | the chunks that one manifest names |
//! | `objects/ID/edges` | [`object_rows()`], [`LinkFamily`] | the same, and `links/0` in these chunks |
//! | `links` | [`LinkFamily`] | `links/DELTA` and `link_attributes` of touched chunks |
//! | `amplification` | [`VertexQuery`] | as `vertices`; with `dry_run`, only the list of non-empty chunks |
//! | `stats` | [`LevelStats`] | a sample of the chunks of `vertices`, all manifests |
//! | `validate` | [`validate`] | metadata of all nodes; from level 3 on, all payloads |
//!
//! # Inside
//! [`payload`] parses what cells hold. Reads go through the `array` module ([`VectorContext`]), so codecs, shards, caches
//! and limits are those of every other array. A query finds the chunks that its boxes touch, plans its reads, and streams
//! rows chunk by chunk in bounded memory ([`VertexStream`]).

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
pub use level::ResolutionLevel;
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
