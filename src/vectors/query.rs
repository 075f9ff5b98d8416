//! [`VertexQuery`]: which vertices of a level to read, and which of their columns.
//!
//! No mode finds an edge that crosses a box without a vertex inside it.

use super::select::Columns;
use super::{Bbox, Coord, format_coord, parse_coord};

/// Which vertices of the touched chunks are returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryMode {
    /// The vertices in the box.
    #[default]
    Vertices,
    /// All vertices of touched chunks.
    Chunks,
    /// All vertices of objects with a fragment in a touched chunk.
    Objects,
    /// All vertices of objects with a vertex in the box.
    ObjectsExact,
    /// The vertices of objects that are in touched chunks.
    Crop,
}

impl QueryMode {
    /// All modes.
    pub const ALL: [Self; 5] = [Self::Vertices, Self::Chunks, Self::Objects, Self::ObjectsExact, Self::Crop];

    /// Its name in a query.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vertices => "vertices",
            Self::Chunks => "chunks",
            Self::Objects => "objects",
            Self::ObjectsExact => "objects_exact",
            Self::Crop => "crop",
        }
    }
}

/// Where a page ended: a chunk, and the number of its rows returned so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCursor {
    /// The chunk.
    pub chunk: Coord,
    /// The number of its rows returned so far.
    pub rows: u64,
}

impl PageCursor {
    /// The cursor as text: `COORD:ROWS`.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{}:{}", format_coord(&self.chunk), self.rows)
    }

    /// Parses what [`PageCursor::to_text`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (chunk, rows) = text.split_once(':')?;
        Some(Self { chunk: parse_coord(chunk)?, rows: rows.parse().ok()? })
    }
}

/// Which vertices to read, and which of their columns.
#[derive(Clone, Debug)]
pub struct VertexQuery {
    /// The boxes; a vertex in several of them is returned once.
    pub boxes: Vec<Bbox>,
    /// Which vertices of the touched chunks are returned.
    pub mode: QueryMode,
    /// The names of the attributes.
    pub attributes: Vec<String>,
    /// The columns that every vertex has.
    pub columns: Columns,
    /// The attribute by which chunks are split, and the value to which they are restricted.
    pub chunk_filter: Option<(String, String)>,
    /// Whether corrupt chunks are skipped.
    pub skips_corrupt: bool,
    /// Whether stored bytes are counted.
    pub counts_bytes: bool,
    /// The largest number of rows returned.
    pub limit: Option<u64>,
    /// Where the previous page ended.
    pub cursor: Option<PageCursor>,
}

impl VertexQuery {
    /// All vertices in one box.
    #[must_use]
    pub fn new(bbox: Bbox) -> Self {
        Self {
            boxes: vec![bbox],
            mode: QueryMode::Vertices,
            attributes: Vec::new(),
            columns: Columns::default(),
            chunk_filter: None,
            skips_corrupt: false,
            counts_bytes: false,
            limit: None,
            cursor: None,
        }
    }
}
