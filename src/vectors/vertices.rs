//! [`VertexQuery`]: the vertices in a box, chunk by chunk in the order of the chunks.
//!
//! What is touched is known before any vertex is read ([`Touched`]); the vertices come as a stream ([`VertexStream`]) in
//! bounded memory. An edge that crosses the box without a vertex inside is found by no mode.

use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt};

use super::attributes::Attribute;
use super::bbox::{Amplification, Touch};
use super::choose::{Choice, FoundObject, Work, choose};
use super::chunk::ChunkRows;
use super::level::Level;
use super::objects::Object;
use super::root::Profile;
use super::select::{Batch, Columns, Owners, Pick, Schema, fragment_of, gather, pick};
use super::walk::Walk;
use super::{Bbox, CellArray, Coord, VectorError, dotted, parse_dotted};
use crate::cpu::Cpu;

/// Chunks that are read at a time.
const CONCURRENCY: usize = 8;

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

/// What a query touches, before any vertex is read.
#[derive(Clone, Debug)]
pub struct Touched {
    /// The touched chunks that hold vertices, in order.
    pub chunks: Vec<Coord>,
    /// Chunks in touched space, whether they hold vertices or not. Of several boxes, a chunk counts for each.
    pub candidates: u128,
    /// Bins in touched space.
    pub bins: u128,
    /// How much more is read than was asked for.
    pub amplification: Amplification,
    /// What each box touches.
    pub touches: Vec<Touch>,
    /// Names of chunks that are none.
    pub skipped: Vec<String>,
    /// All chunks that hold vertices.
    pub occupied: usize,
}

impl Touched {
    /// What boxes touch of a level.
    ///
    /// # Errors
    /// Failures of the store; [`VectorError::BadParam`] for a value that chunks are not cut by.
    pub async fn of(
        level: &Level,
        boxes: &[Bbox],
        only: Option<&(String, String)>,
    ) -> Result<Self, VectorError> {
        let occupied = level.occupied().await?;
        let grid = level.grid(&occupied.cells);
        let touches: Vec<Touch> = boxes.iter().map(|bbox| Touch::of(bbox, &level.shapes, &grid)).collect();
        let lead = level.lead();
        let leading = only.map(|only| leading(level, only)).transpose()?;
        let count = occupied.cells.len();
        let spaces = touches.clone();
        let is_wanted = move |coord: &Coord| {
            let spatial = coord.get(lead..).unwrap_or_default();
            leading.is_none_or(|at| coord.first() == Some(&at))
                && spaces.iter().any(|touch| touch.holds(spatial))
        };
        let cells = occupied.cells;
        let filter = move || cells.into_iter().filter(is_wanted).collect::<Vec<Coord>>();
        let chunks = level.store.context.cpu.run_sized(count as u64 * 64, filter).await?;
        let layers = match (lead, leading) {
            (0, _) | (_, Some(_)) => 1,
            (_, None) => level.vertices.grid().and_then(|grid| grid.first().copied()).unwrap_or(1),
        };
        let total = |of: fn(&Touch) -> u128| {
            touches
                .iter()
                .fold(0_u128, |sum, touch| sum.saturating_add(of(touch)))
                .saturating_mul(layers.into())
        };
        let loaded = || chunks.iter().map(|coord| coord.get(lead..).unwrap_or_default());
        let amplification = match touches.as_slice() {
            [touch] => touch.amplification(&level.shapes, loaded()),
            // Boxes may overlap: their bins are not counted twice, nor told apart.
            _ => Amplification::default(),
        };
        let (candidates, bins) = (total(Touch::candidates), total(Touch::bins));
        Ok(Self {
            chunks,
            candidates,
            bins,
            amplification,
            touches,
            skipped: occupied.skipped,
            occupied: count,
        })
    }
}

/// The place along the leading axis that a value of the attribute stands for.
fn leading(level: &Level, (name, value): &(String, String)) -> Result<i64, VectorError> {
    let unknown = |takes: String| VectorError::bad_param("where", takes);
    let (attribute, values) = level
        .chunk_attribute()
        .ok_or_else(|| unknown("nothing at this level: its chunks are not cut by an attribute".to_owned()))?;
    let place = values.iter().position(|known| known == value).filter(|_| attribute == *name);
    let place = place.and_then(|place| i64::try_from(place).ok());
    place.ok_or_else(|| unknown(format!("`{attribute}:` and one of {values:?}")))
}

/// A chunk that could not be read, and was left out.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The chunk.
    pub chunk: Coord,
    /// Why.
    pub error: VectorError,
}

/// The rows of a chunk that are wanted, and what they took.
struct Rows {
    batch: Batch,
    /// Rows that were decoded.
    loaded: u64,
    /// Bytes as stored, if they were counted.
    encoded: Option<u64>,
    is_count_known: bool,
}

/// What came of a chunk.
struct Done {
    chunk: Coord,
    outcome: Result<Option<Rows>, VectorError>,
}

/// Vertices, chunk by chunk.
pub struct VertexStream {
    /// What the rows have.
    pub schema: Arc<Schema>,
    /// What is touched.
    pub touched: Touched,
    /// The objects that were found, if they were looked for.
    pub objects: Option<Vec<FoundObject>>,
    /// Rows that were decoded so far.
    pub rows_loaded: u64,
    /// Rows that were given so far.
    pub rows: u64,
    /// Bytes as stored, if they were counted.
    pub encoded_bytes: u64,
    /// Chunks that were left out so far.
    pub failures: Vec<Failure>,
    /// Chunks of which it is not known how many of their rows are vertices.
    pub unknown_counts: u64,
    /// Where this page ended, if it ended before the last row.
    pub cursor: Option<Cursor>,
    /// Chunks that were read so far.
    pub done: u64,
    /// Where rows are decoded.
    pub cpu: Cpu,
    chunks: BoxStream<'static, Done>,
    skips_corrupt: bool,
    left: u64,
    resume: Option<Cursor>,
}

impl std::fmt::Debug for VertexStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VertexStream").field("touched", &self.touched).finish_non_exhaustive()
    }
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
        let touched = Touched::of(level, &self.boxes, self.only.as_ref()).await?;
        let schema = Arc::new(self.schema(level, &attributes));
        let Choice { work, objects, failures } = choose(&self, level, &touched).await?;
        let with_fragments = self.needs_fragments(level, work.first()).await?;
        let resume = self.cursor.clone();
        let is_due = |work: &Work| resume.as_ref().is_none_or(|cursor| work.chunk >= cursor.chunk);
        let shared = Arc::new(Reading {
            level: level.clone(),
            attributes,
            columns: self.columns,
            with_fragments,
            counts_bytes: self.counts_bytes,
        });
        let work: Vec<Work> = work.into_iter().filter(is_due).collect();
        let chunks = stream::iter(work)
            .map(move |work| {
                let shared = Arc::clone(&shared);
                async move {
                    let outcome = shared.read(&work).await;
                    Done { chunk: work.chunk, outcome }
                }
            })
            .buffered(CONCURRENCY)
            .boxed();
        Ok(VertexStream {
            schema,
            touched,
            objects,
            rows_loaded: 0,
            rows: 0,
            encoded_bytes: 0,
            failures,
            unknown_counts: 0,
            cursor: None,
            done: 0,
            cpu: level.store.context.cpu.clone(),
            chunks,
            skips_corrupt: self.skips_corrupt,
            left: self.limit.unwrap_or(u64::MAX),
            resume,
        })
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
        let is_by_fragment = first.is_some_and(|work| matches!(work.pick, Pick::Fragments(_)));
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

/// What all chunks of a query are read with.
struct Reading {
    level: Level,
    attributes: Vec<Arc<Attribute>>,
    columns: Columns,
    with_fragments: bool,
    counts_bytes: bool,
}

impl Reading {
    async fn read(&self, work: &Work) -> Result<Option<Rows>, VectorError> {
        let Some(chunk) = ChunkRows::read(&self.level, &work.chunk, self.with_fragments).await? else {
            if let Pick::Fragments(fragments) = &work.pick {
                let owner = fragments.first().and_then(|first| work.owners.as_ref()?.get(first).copied());
                let reason = format!("it names chunk `{}`, which has no vertices", dotted(&work.chunk));
                return Err(VectorError::CorruptManifest { object: owner.unwrap_or_default(), reason });
            }
            return Ok(None);
        };
        let mut values = Vec::with_capacity(self.attributes.len());
        for attribute in &self.attributes {
            values.push((Arc::clone(attribute), attribute.values(&self.level, &chunk).await?));
        }
        let encoded = if self.counts_bytes { Some(self.encoded_bytes(&work.chunk).await?) } else { None };
        let bytes = chunk.positions.bytes().len() as u64;
        let (wanted, owners, columns) = (work.pick.clone(), work.owners.clone(), self.columns);
        let select = move || {
            let rows = pick(&chunk, &wanted, owners.as_deref())?;
            let loaded = chunk.positions.rows() as u64;
            let batch = gather(&chunk, rows, columns, owners.as_deref(), &values);
            Ok::<_, VectorError>(Rows { batch, loaded, encoded, is_count_known: chunk.is_count_known })
        };
        self.level.store.context.cpu.run_sized(bytes, select).await?.map(Some)
    }

    async fn encoded_bytes(&self, coord: &[i64]) -> Result<u64, VectorError> {
        let fragments = self.level.fragments.as_ref().filter(|_| self.with_fragments);
        let attributes = self.attributes.iter().filter_map(|attribute| attribute.cells());
        let mut total = 0_u64;
        for cells in std::iter::once(&self.level.vertices).chain(fragments).chain(attributes) {
            let bytes = CellArray::encoded_bytes(cells, &self.level.store.context, coord).await?;
            total = total.saturating_add(bytes.unwrap_or_default());
        }
        Ok(total)
    }
}

impl VertexStream {
    /// The next rows that there are.
    ///
    /// # Errors
    /// [`VectorError::Corrupt`] for a chunk that cannot be read, unless such are left out.
    pub async fn next(&mut self) -> Result<Option<Batch>, VectorError> {
        while self.left > 0 {
            let Some(Done { chunk, outcome }) = self.chunks.next().await else { return Ok(None) };
            self.done += 1;
            let Rows { mut batch, loaded, encoded, is_count_known } = match outcome {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(error) if error.is_corrupt_chunk() && self.skips_corrupt => {
                    if !self.failures.iter().any(|known| known.chunk == chunk) {
                        self.failures.push(Failure { chunk, error });
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.rows_loaded = self.rows_loaded.saturating_add(loaded);
            self.encoded_bytes = self.encoded_bytes.saturating_add(encoded.unwrap_or_default());
            self.unknown_counts += u64::from(!is_count_known);
            let given = match &self.resume {
                Some(cursor) if cursor.chunk == chunk => cursor.rows,
                _ => 0,
            };
            let skip = usize::try_from(given).unwrap_or(usize::MAX);
            let most = usize::try_from(self.left).unwrap_or(usize::MAX);
            let all = batch.rows.len();
            batch.cut(skip, most, &self.schema);
            let count = batch.rows.len() as u64;
            self.rows = self.rows.saturating_add(count);
            self.left -= count.min(self.left);
            if self.left == 0 {
                let rows = given.min(all as u64).saturating_add(count);
                self.page_ends(chunk, rows, all as u64).await;
            }
            if count > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// Notes where the page ends, if anything may come behind it.
    async fn page_ends(&mut self, chunk: Coord, rows: u64, all: u64) {
        if rows < all || self.chunks.next().await.is_some() {
            self.cursor = Some(Cursor { chunk, rows });
        }
    }

    /// How much more was read than asked for, of all rows so far.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "ratios")]
    pub fn amplification(&self) -> Amplification {
        let ratio = |of: u64, by: u64| (by > 0).then(|| of as f64 / by as f64);
        let schema = &self.schema;
        let mut row_bytes = (schema.kind.item_bytes() * schema.axes.len()) as u64;
        for column in &schema.attributes {
            row_bytes =
                row_bytes.saturating_add(column.kind.item_bytes().saturating_mul(column.width) as u64);
        }
        Amplification {
            rows: ratio(self.rows_loaded, self.rows),
            bytes: (self.encoded_bytes > 0)
                .then(|| ratio(self.encoded_bytes, self.rows.saturating_mul(row_bytes)))
                .flatten(),
            ..self.touched.amplification
        }
    }

    /// Bytes of rows that are held while they are under way, about.
    #[must_use]
    pub fn held_bytes(&self, level: &Level) -> u64 {
        let chunks = (self.touched.occupied as u64).max(1);
        let rows = level.vertex_count().unwrap_or_default().div_ceil(chunks);
        rows.saturating_mul(self.schema.row_bytes()).saturating_mul(CONCURRENCY as u64)
    }
}

/// The rows of an object, in its order: each with its chunk. At most so many: a manifest may name a fragment as often as
/// it likes.
///
/// # Errors
/// [`VectorError::CorruptManifest`], [`VectorError::Corrupt`], [`VectorError::TooMany`].
pub async fn rows_of(
    level: &Level,
    object: &Object,
    attributes: &[Arc<Attribute>],
    most: u64,
) -> Result<Vec<Batch>, VectorError> {
    if level.store.root.profile == Profile::Doc {
        return walked(level, object, attributes).await;
    }
    let (mut batches, mut total) = (Vec::new(), 0_u64);
    for span in &object.manifest.spans {
        let missing = || VectorError::CorruptManifest {
            object: object.id,
            reason: format!("it names chunk `{}`, which has no vertices", dotted(&span.chunk)),
        };
        let chunk = ChunkRows::read(level, &span.chunk, true).await?.ok_or_else(missing)?;
        let owners: Owners = span.fragments.iter().map(|fragment| (fragment, object.id)).collect();
        let mut values = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            values.push((Arc::clone(attribute), attribute.values(level, &chunk).await?));
        }
        let mut rows = Vec::new();
        for fragment in span.fragments.iter() {
            let fragment = fragment_of(&chunk, fragment, Some(&owners))?;
            total = total.saturating_add(fragment.count());
            if total > most {
                return Err(VectorError::TooMany { what: "rows", estimate: total, limit: most });
            }
            rows.extend(fragment.rows().filter_map(|row| u32::try_from(row).ok()));
        }
        batches.push(gather(&chunk, rows, Columns::default(), None, &values));
    }
    Ok(batches)
}

/// The rows of an object that is found along its edges.
async fn walked(
    level: &Level,
    object: &Object,
    attributes: &[Arc<Attribute>],
) -> Result<Vec<Batch>, VectorError> {
    let mut batches: Vec<(ChunkRows, Vec<u32>)> = Vec::new();
    for (coord, row) in Walk::of(level, object).await?.places {
        let outside = || VectorError::CorruptManifest {
            object: object.id,
            reason: format!("its edges lead to row {row} of chunk `{}`, which is not there", dotted(&coord)),
        };
        if batches.last().is_none_or(|(chunk, _)| chunk.coord != coord) {
            let chunk = ChunkRows::read(level, &coord, false).await?.ok_or_else(outside)?;
            batches.push((chunk, Vec::new()));
        }
        let Some((chunk, rows)) = batches.last_mut() else { continue };
        let row = u32::try_from(row).ok().filter(|&row| (row as usize) < chunk.positions.rows());
        rows.push(row.ok_or_else(outside)?);
    }
    let mut gathered = Vec::with_capacity(batches.len());
    for (chunk, rows) in batches {
        let mut values = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            values.push((Arc::clone(attribute), attribute.values(level, &chunk).await?));
        }
        gathered.push(gather(&chunk, rows, Columns::default(), None, &values));
    }
    Ok(gathered)
}
