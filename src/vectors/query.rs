//! [`VertexQuery`]: which vertices of a level are wanted, and what of them.
//!
//! What is touched is known before any vertex is read ([`TouchedChunks`]); the vertices come as a stream ([`VertexStream`]). An
//! edge that crosses the box without a vertex inside is found by no mode.

use super::select::Columns;
use super::{Bbox, Coord, format_coord, parse_coord};

/// What of the touched chunks is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryMode {
    /// The vertices in the box.
    #[default]
    Vertices,
    /// All vertices of touched chunks.
    Chunks,
    /// Objects with a fragment in a touched chunk, whole.
    Objects,
    /// Objects with a vertex in the box, whole.
    ObjectsExact,
    /// The parts of objects that are in touched chunks.
    Crop,
}

impl QueryMode {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Vertices, Self::Chunks, Self::Objects, Self::ObjectsExact, Self::Crop];

    /// Its name.
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

/// Where a page ended: so many rows of a chunk were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCursor {
    /// The chunk.
    pub chunk: Coord,
    /// Rows of it that were given.
    pub rows: u64,
}

impl PageCursor {
    /// As it is written.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{}:{}", format_coord(&self.chunk), self.rows)
    }

    /// From how it is written.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (chunk, rows) = text.split_once(':')?;
        Some(Self { chunk: parse_coord(chunk)?, rows: rows.parse().ok()? })
    }
}

/// Which vertices are wanted, and what of them.
#[derive(Clone, Debug)]
pub struct VertexQuery {
    /// Boxes: what lies in any of them.
    pub boxes: Vec<Bbox>,
    /// What of the touched chunks is wanted.
    pub mode: QueryMode,
    /// Names of attributes.
    pub attributes: Vec<String>,
    /// The columns.
    pub columns: Columns,
    /// The attribute that chunks are cut by, and a value of it.
    pub chunk_filter: Option<(String, String)>,
    /// Whether chunks that cannot be read are left out.
    pub skips_corrupt: bool,
    /// Whether stored bytes are counted.
    pub counts_bytes: bool,
    /// Most rows.
    pub limit: Option<u64>,
    /// Where the page before ended.
    pub cursor: Option<PageCursor>,
}

impl VertexQuery {
    /// All of one box.
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
