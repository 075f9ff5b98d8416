//! [`VertexStream`]: runs a [`VertexQuery`], chunk by chunk in chunk order and in bounded memory.

use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt};

use super::attributes::VertexAttribute;
use super::bbox::Amplification;
use super::chunk::ChunkVertices;
use super::level::ResolutionLevel;
use super::query::{PageCursor, VertexQuery};
use super::read_plan::{ChunkFailure, ChunkRead, MatchedObject, ReadPlan, plan_reads};
use super::select::{Batch, Columns, RowSelection, Schema, gather_rows, select_rows};
use super::touched::TouchedChunks;
use super::{CellArray, Coord, VectorError, format_coord};
use crate::cpu::ComputePool;

/// The number of chunks read concurrently.
const CONCURRENCY: usize = 8;

/// The selected rows of a chunk, and what reading them cost.
struct DecodedRows {
    batch: Batch,
    /// The number of rows decoded.
    loaded: u64,
    /// Stored bytes, if they are counted.
    encoded: Option<u64>,
    is_count_known: bool,
}

/// The outcome of reading a chunk.
struct FinishedChunk {
    chunk: Coord,
    outcome: Result<Option<DecodedRows>, VectorError>,
}

/// The vertices that a query returns, chunk by chunk.
pub struct VertexStream {
    /// The columns of every batch.
    pub schema: Arc<Schema>,
    /// The chunks that the query touches.
    pub touched: TouchedChunks,
    /// The objects that match, in modes that select objects.
    pub objects: Option<Vec<MatchedObject>>,
    /// Rows decoded so far.
    pub rows_loaded: u64,
    /// Rows returned so far.
    pub rows: u64,
    /// Stored bytes read so far, if they are counted.
    pub encoded_bytes: u64,
    /// Chunks skipped so far.
    pub failures: Vec<ChunkFailure>,
    /// Chunks read so far whose number of vertices is unknown.
    pub unknown_counts: u64,
    /// Where this page ended, if more rows may follow.
    pub cursor: Option<PageCursor>,
    /// Chunks read so far.
    pub chunks_read: u64,
    /// The pool on which rows are decoded and encoded.
    pub cpu: ComputePool,
    chunks: BoxStream<'static, FinishedChunk>,
    pub(super) skips_corrupt: bool,
    /// Rows that may still be returned.
    pub(super) rows_left: u64,
    resume: Option<PageCursor>,
}

impl std::fmt::Debug for VertexStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VertexStream").field("touched", &self.touched).finish_non_exhaustive()
    }
}

/// Reads the chunks of a query.
pub(super) struct VertexChunkReader {
    pub(super) level: ResolutionLevel,
    pub(super) attributes: Vec<Arc<VertexAttribute>>,
    pub(super) columns: Columns,
    pub(super) with_fragments: bool,
    pub(super) counts_bytes: bool,
}

impl VertexChunkReader {
    async fn read(&self, read: &ChunkRead) -> Result<Option<DecodedRows>, VectorError> {
        let Some(chunk) = ChunkVertices::read(&self.level, &read.chunk, self.with_fragments).await? else {
            if let RowSelection::Fragments(fragments) = &read.selection {
                let owner = fragments.first().and_then(|first| read.owners.as_ref()?.get(first).copied());
                let reason = format!("it names chunk `{}`, which has no vertices", format_coord(&read.chunk));
                return Err(VectorError::CorruptManifest { object: owner.unwrap_or_default(), reason });
            }
            return Ok(None);
        };
        let mut values = Vec::with_capacity(self.attributes.len());
        for attribute in &self.attributes {
            values.push((Arc::clone(attribute), attribute.values(&self.level, &chunk).await?));
        }
        let encoded = if self.counts_bytes { Some(self.encoded_bytes(&read.chunk).await?) } else { None };
        let bytes = chunk.positions.bytes().len() as u64;
        let (selection, owners, columns) = (read.selection.clone(), read.owners.clone(), self.columns);
        let select = move || {
            let rows = select_rows(&chunk, &selection, owners.as_deref())?;
            let loaded = chunk.positions.rows() as u64;
            let batch = gather_rows(&chunk, rows, columns, owners.as_deref(), &values);
            Ok::<_, VectorError>(DecodedRows { batch, loaded, encoded, is_count_known: chunk.is_count_known })
        };
        self.level.store.context.cpu.run_or_inline(bytes, select).await?.map(Some)
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
    /// The rows of these chunks, from where the previous page ended.
    pub(super) fn new(
        schema: Arc<Schema>,
        touched: TouchedChunks,
        reader: VertexChunkReader,
        reads: Vec<ChunkRead>,
        resume: Option<PageCursor>,
    ) -> Self {
        let cpu = reader.level.store.context.cpu.clone();
        let is_due = |read: &ChunkRead| resume.as_ref().is_none_or(|cursor| read.chunk >= cursor.chunk);
        let reads: Vec<ChunkRead> = reads.into_iter().filter(is_due).collect();
        let reader = Arc::new(reader);
        let chunks = stream::iter(reads)
            .map(move |read| {
                let reader = Arc::clone(&reader);
                async move {
                    let outcome = reader.read(&read).await;
                    FinishedChunk { chunk: read.chunk, outcome }
                }
            })
            .buffered(CONCURRENCY)
            .boxed();
        Self {
            schema,
            touched,
            objects: None,
            rows_loaded: 0,
            rows: 0,
            encoded_bytes: 0,
            failures: Vec::new(),
            unknown_counts: 0,
            cursor: None,
            chunks_read: 0,
            cpu,
            chunks,
            skips_corrupt: false,
            rows_left: u64::MAX,
            resume,
        }
    }

    /// The next non-empty batch; `None` after the last.
    ///
    /// # Errors
    /// [`VectorError::Corrupt`] for a chunk that cannot be read, unless corrupt chunks are skipped.
    pub async fn next(&mut self) -> Result<Option<Batch>, VectorError> {
        while self.rows_left > 0 {
            let Some(FinishedChunk { chunk, outcome }) = self.chunks.next().await else { return Ok(None) };
            self.chunks_read += 1;
            let DecodedRows { mut batch, loaded, encoded, is_count_known } = match outcome {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(error) if error.is_corrupt_chunk() && self.skips_corrupt => {
                    if !self.failures.iter().any(|known| known.chunk == chunk) {
                        self.failures.push(ChunkFailure { chunk, error });
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.rows_loaded = self.rows_loaded.saturating_add(loaded);
            self.encoded_bytes = self.encoded_bytes.saturating_add(encoded.unwrap_or_default());
            self.unknown_counts += u64::from(!is_count_known);
            let returned = match &self.resume {
                Some(cursor) if cursor.chunk == chunk => cursor.rows,
                _ => 0,
            };
            let skip = usize::try_from(returned).unwrap_or(usize::MAX);
            let limit = usize::try_from(self.rows_left).unwrap_or(usize::MAX);
            let all = batch.rows.len();
            batch.slice_rows(skip, limit, &self.schema);
            let count = batch.rows.len() as u64;
            self.rows = self.rows.saturating_add(count);
            self.rows_left -= count.min(self.rows_left);
            if self.rows_left == 0 {
                let rows = returned.min(all as u64).saturating_add(count);
                self.end_page(chunk, rows, all as u64).await;
            }
            if count > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// Sets the cursor, if rows may follow this page.
    async fn end_page(&mut self, chunk: Coord, rows: u64, all: u64) {
        if rows < all || self.chunks.next().await.is_some() {
            self.cursor = Some(PageCursor { chunk, rows });
        }
    }

    /// The read amplification of all rows so far.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "ratios")]
    pub fn amplification(&self) -> Amplification {
        let ratio = |of: u64, by: u64| (by > 0).then(|| of as f64 / by as f64);
        let schema = &self.schema;
        let mut row_bytes = (schema.kind.element_bytes() * schema.axes.len()) as u64;
        for column in &schema.attributes {
            row_bytes =
                row_bytes.saturating_add(column.kind.element_bytes().saturating_mul(column.width) as u64);
        }
        Amplification {
            rows: ratio(self.rows_loaded, self.rows),
            bytes: (self.encoded_bytes > 0)
                .then(|| ratio(self.encoded_bytes, self.rows.saturating_mul(row_bytes)))
                .flatten(),
            ..self.touched.amplification
        }
    }

    /// The approximate size in bytes of the rows in flight at a time.
    #[must_use]
    pub fn in_flight_bytes(&self, level: &ResolutionLevel) -> u64 {
        let chunks = (self.touched.non_empty_chunks as u64).max(1);
        let rows = level.vertex_count().unwrap_or_default().div_ceil(chunks);
        rows.saturating_mul(self.schema.row_bytes()).saturating_mul(CONCURRENCY as u64)
    }
}

impl VertexQuery {
    /// Finds the touched chunks and starts to read them.
    ///
    /// # Errors
    /// [`VectorError`].
    pub async fn run(self, level: &ResolutionLevel) -> Result<VertexStream, VectorError> {
        let mut attributes = Vec::new();
        for name in &self.attributes {
            attributes.push(Arc::new(VertexAttribute::open(level, name).await?));
        }
        let touched = TouchedChunks::find(level, &self.boxes, self.chunk_filter.as_ref()).await?;
        let schema = Arc::new(self.schema(level, &attributes));
        let ReadPlan { reads, objects, failures } = plan_reads(&self, level, &touched).await?;
        let with_fragments = self.needs_fragments(level, reads.first()).await?;
        let reader = VertexChunkReader {
            level: level.clone(),
            attributes,
            columns: self.columns,
            with_fragments,
            counts_bytes: self.counts_bytes,
        };
        let mut stream = VertexStream::new(schema, touched, reader, reads, self.cursor);
        (stream.objects, stream.failures) = (objects, failures);
        (stream.skips_corrupt, stream.rows_left) = (self.skips_corrupt, self.limit.unwrap_or(u64::MAX));
        Ok(stream)
    }

    fn schema(&self, level: &ResolutionLevel, attributes: &[Arc<VertexAttribute>]) -> Schema {
        let list = |numbers: &[f64]| format!("{numbers:?}");
        let interval = self.boxes.first().map_or("closed", |bbox| bbox.interval.as_str());
        let notes = [
            ("level", level.name.index.to_string()),
            ("chunk_shape", list(&level.shapes.chunk)),
            ("bin_shape", list(&level.shapes.bin)),
            ("interval", interval.to_owned()),
            ("mode", self.mode.as_str().to_owned()),
        ];
        Schema {
            columns: self.columns,
            kind: level.coordinate_type.clone(),
            axes: level.store.root.axes(),
            chunk_rank: level.vertices.rank(),
            attributes: attributes.iter().map(|attribute| attribute.column()).collect(),
            notes: notes.into_iter().map(|(name, text)| (format!("zvf.{name}"), text)).collect(),
        }
    }

    /// Whether the fragment index has to be read. It does not where the level declares tiling and its first chunk
    /// confirms it.
    async fn needs_fragments(
        &self,
        level: &ResolutionLevel,
        first: Option<&ChunkRead>,
    ) -> Result<bool, VectorError> {
        let is_requested = self.columns.fragment || self.columns.object_id;
        let is_by_fragment = first.is_some_and(|read| matches!(read.selection, RowSelection::Fragments(_)));
        if is_requested || is_by_fragment || !level.declares_tiling() {
            return Ok(true);
        }
        let Some(first) = first else { return Ok(false) };
        match ChunkVertices::read(level, &first.chunk, true).await {
            Ok(chunk) => {
                Ok(chunk.and_then(|chunk| chunk.fragments).is_some_and(|fragments| !fragments.is_tiling()))
            }
            // Reading the chunk reports the error.
            Err(error) if error.is_corrupt_chunk() => Ok(true),
            Err(error) => Err(error),
        }
    }
}
