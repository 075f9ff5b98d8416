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
mod error;
mod json;
mod level;
mod links;
mod object_rows;
mod objects;
pub mod payload;
mod read_plan;
mod root;
mod select;
mod shapes;
mod stats;
mod store;
mod touched;
pub mod validate;
mod vertex_stream;
mod vertices;
mod walk;

pub use attributes::{Attribute, Values};
pub use bbox::{Amplification, Bbox, Interval, Touch};
pub use cells::{CellArray, Keys, NonEmptyCells, ShardPlace};
pub use chunk::ChunkRows;
pub use context::Context;
pub use error::VectorError;
pub use level::Level;
pub use links::{Link, LinkAttribute, LinkFamily, Segment, check_profile, doc_links};
pub use object_rows::rows_of;
pub use objects::{Object, ObjectIndex, ObjectValue};
pub use read_plan::FoundObject;
pub use root::{Axis, Profile, Root};
pub use select::{Batch, Column, Columns, Schema};
pub use shapes::Shapes;
pub use stats::{Stats, SummaryStats};
pub use store::VectorStore;
pub use touched::TouchedChunks;
pub use vertex_stream::{Failure, VertexStream};
pub use vertices::{Cursor, Mode, VertexQuery};
pub use walk::Walk;

/// The coordinates of a chunk: whole numbers, negative ones too; those of attributes before those of space.
pub type Coord = Vec<i64>;

/// A level by its number and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelName {
    /// Its number; 0 is the finest.
    pub index: u64,
    /// The name of its group.
    pub name: String,
}

/// Coordinates as they are written: `-3.0.12`.
#[must_use]
pub fn dotted(coord: &[i64]) -> String {
    let numbers: Vec<String> = coord.iter().map(i64::to_string).collect();
    numbers.join(".")
}

/// Coordinates from how they are written; `None` if they are not.
#[must_use]
pub fn parse_dotted(text: &str) -> Option<Coord> {
    let number = |number: &str| {
        let digits = number.strip_prefix('-').unwrap_or(number);
        let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| number.parse().ok()).flatten()
    };
    text.split('.').map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_written_with_dots_and_read_back() {
        for coord in [vec![0, 0, 0], vec![-3, -1, 0], vec![i64::MIN, i64::MAX]] {
            assert_eq!(parse_dotted(&dotted(&coord)), Some(coord));
        }
        for text in ["", ".", "0.", "-", "+1", "1.a", "--1", "9223372036854775808", "0,1", " 1"] {
            assert_eq!(parse_dotted(text), None, "{text}");
        }
    }
}
