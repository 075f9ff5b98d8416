//! [`VertexQuery`]: which vertices of a level are wanted, and what of them.
//!
//! What is touched is known before any vertex is read ([`TouchedChunks`]); the vertices come as a stream ([`VertexStream`]). An
//! edge that crosses the box without a vertex inside is found by no mode.

use std::sync::Arc;

use super::attributes::Attribute;
use super::chunk::ChunkRows;
use super::level::Level;
use super::read_plan::{ReadPlan, Work, plan_reads};
use super::select::{Columns, RowSelection, Schema};
use super::touched::TouchedChunks;
use super::vertex_stream::{Reading, VertexStream};
use super::{Bbox, Coord, VectorError, dotted, parse_dotted};

/// What of the touched chunks is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
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

impl Mode {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Vertices, Self::Chunks, Self::Objects, Self::ObjectsExact, Self::Crop];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
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
pub struct Cursor {
    /// The chunk.
    pub chunk: Coord,
    /// Rows of it that were given.
    pub rows: u64,
}

impl Cursor {
    /// As it is written.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{}:{}", dotted(&self.chunk), self.rows)
    }

    /// From how it is written.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (chunk, rows) = text.split_once(':')?;
        Some(Self { chunk: parse_dotted(chunk)?, rows: rows.parse().ok()? })
    }
}

/// Which vertices are wanted, and what of them.
#[derive(Clone, Debug)]
pub struct VertexQuery {
    /// Boxes: what lies in any of them.
    pub boxes: Vec<Bbox>,
    /// What of the touched chunks is wanted.
    pub mode: Mode,
    /// Names of attributes.
    pub attributes: Vec<String>,
    /// The columns.
    pub columns: Columns,
    /// The attribute that chunks are cut by, and a value of it.
    pub only: Option<(String, String)>,
    /// Whether chunks that cannot be read are left out.
    pub skips_corrupt: bool,
    /// Whether stored bytes are counted.
    pub counts_bytes: bool,
    /// Most rows.
    pub limit: Option<u64>,
    /// Where the page before ended.
    pub cursor: Option<Cursor>,
}

impl VertexQuery {
    /// All of one box.
    #[must_use]
    pub fn of(bbox: Bbox) -> Self {
        Self {
            boxes: vec![bbox],
            mode: Mode::Vertices,
            attributes: Vec::new(),
            columns: Columns::default(),
            only: None,
            skips_corrupt: false,
            counts_bytes: false,
            limit: None,
            cursor: None,
        }
    }

    /// Finds what is touched, and begins to read it.
    ///
    /// # Errors
    /// [`VectorError`].
    pub async fn run(self, level: &Level) -> Result<VertexStream, VectorError> {
        let mut attributes = Vec::new();
        for name in &self.attributes {
            attributes.push(Arc::new(Attribute::open(level, name).await?));
        }
        let touched = TouchedChunks::of(level, &self.boxes, self.only.as_ref()).await?;
        let schema = Arc::new(self.schema(level, &attributes));
        let ReadPlan { work, objects, failures } = plan_reads(&self, level, &touched).await?;
        let with_fragments = self.needs_fragments(level, work.first()).await?;
        let reading = Reading {
            level: level.clone(),
            attributes,
            columns: self.columns,
            with_fragments,
            counts_bytes: self.counts_bytes,
        };
        let mut stream = VertexStream::new(schema, touched, reading, work, self.cursor);
        (stream.objects, stream.failures) = (objects, failures);
        (stream.skips_corrupt, stream.left) = (self.skips_corrupt, self.limit.unwrap_or(u64::MAX));
        Ok(stream)
    }

    fn schema(&self, level: &Level, attributes: &[Arc<Attribute>]) -> Schema {
        let list = |numbers: &[f64]| format!("{numbers:?}");
        let interval = self.boxes.first().map_or("closed", |bbox| bbox.interval.name());
        let notes = [
            ("level", level.name.index.to_string()),
            ("chunk_shape", list(&level.shapes.chunk)),
            ("bin_shape", list(&level.shapes.bin)),
            ("interval", interval.to_owned()),
            ("mode", self.mode.name().to_owned()),
        ];
        Schema {
            columns: self.columns,
            kind: level.kind.clone(),
            axes: level.store.root.axes(),
            coordinates: level.vertices.rank(),
            attributes: attributes.iter().map(|attribute| attribute.column()).collect(),
            notes: notes.into_iter().map(|(name, text)| (format!("zvf.{name}"), text)).collect(),
        }
    }

    /// Whether fragments have to be read: not where the level says that they make up each chunk, and the first bears it out.
    async fn needs_fragments(&self, level: &Level, first: Option<&Work>) -> Result<bool, VectorError> {
        let is_asked = self.columns.fragment || self.columns.object_id;
        let is_by_fragment = first.is_some_and(|work| matches!(work.pick, RowSelection::Fragments(_)));
        if is_asked || is_by_fragment || !level.claims_tiles() {
            return Ok(true);
        }
        let Some(first) = first else { return Ok(false) };
        match ChunkRows::read(level, &first.chunk, true).await {
            Ok(chunk) => {
                Ok(chunk.and_then(|chunk| chunk.fragments).is_some_and(|fragments| !fragments.tiles()))
            }
            // Whoever reads the chunk will say so.
            Err(error) if error.is_corrupt_chunk() => Ok(true),
            Err(error) => Err(error),
        }
    }
}
