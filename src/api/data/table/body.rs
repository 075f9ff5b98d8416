//! [`TableBody`]: the bytes of a table, some rows at a time.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::stream::{self, BoxStream, Stream, TryStreamExt};

use super::columns::{ColumnSource, PlannedColumn, ReadColumn, TableColumns, TextLimit};
use crate::api::data::error::ElementsError;
use crate::array::{ArrayError, ReadContext, Snapshot};
use crate::chunk::{Elements, VarSlice};
use crate::metadata::DataType;
use crate::render::RenderError;
use crate::render::table::{
    ColumnContent, LabelColumn, LabelSource, TableColumn, TableOptions, TableRows, TableWriter, table_writer,
};
use crate::services::engine::ArrayEngine;
use crate::store::{MemoryBudget, Reservation};

/// The most rows that are written at a time.
const MAX_BATCH_ROWS: u64 = 1 << 17;
/// How many times what a row with long texts has beyond a batch is in memory: with the unused capacity while it is written.
const LONG_ROW_COPIES: u64 = 2;

/// A column that is read while the table is written.
struct ColumnStream {
    elements: BoxStream<'static, Result<Elements, ArrayError>>,
    read: ReadColumn,
    /// What was read and is not written yet.
    part: Elements,
}

/// A table while it is written.
pub(super) struct TableBody {
    engine: Arc<ArrayEngine>,
    trace: Arc<ReadContext>,
    streams: Vec<ColumnStream>,
    /// `None` after the last row.
    writer: Option<Box<dyn TableWriter>>,
    has_begun: bool,
    /// Rows that are written.
    written: u64,
    rows: u64,
    batch_rows: u64,
    batch_bytes: u64,
    /// Bytes of the texts of a column that are written together.
    text_bytes: u64,
    text_growth: u64,
    /// Bytes of the longest labels of a row.
    label_bytes: u64,
    /// Bytes of all labels of variable length in the table, and of the texts that were read so far.
    texts: u128,
    text_limit: TextLimit,
    /// Memory beyond that of a batch, for the rows that were written last, and for what the writer keeps.
    memory: Reservation,
    long_bytes: u64,
}

impl TableBody {
    /// The table of columns, whose labels are read now. Each column that is read has its snapshot, in their order.
    ///
    /// # Errors
    /// Failures of reading; [`RenderError`] if the format cannot have a column.
    pub(super) async fn new(
        engine: &Arc<ArrayEngine>,
        table: TableColumns,
        snapshots: Vec<Snapshot>,
        options: TableOptions,
        trace: &Arc<ReadContext>,
        budget: &Arc<dyn MemoryBudget>,
    ) -> Result<Self, ElementsError> {
        let batch_bytes = table.batch_bytes(options);
        let TableColumns { columns, rows, text_limit, .. } = table;
        let mut snapshots = snapshots.into_iter();
        let mut next = || snapshots.next().ok_or(RenderError::ElementCount);
        let mut streams = Vec::new();
        let mut written = Vec::with_capacity(columns.len());
        for PlannedColumn { name, source } in columns {
            let column = |data_type: &DataType, units, content| TableColumn {
                name,
                data_type: data_type.clone(),
                units,
                content,
            };
            written.push(match source {
                ColumnSource::Positions(labels) => {
                    column(&DataType::Int64, None, ColumnContent::Labels(labels))
                }
                ColumnSource::Labels { read, count, repeat } => {
                    let labels = LabelSource::Elements(labels(engine, next()?, &read, trace).await?);
                    let content = ColumnContent::Labels(LabelColumn { labels, count, repeat });
                    column(read.conversion.data_type(), read.units.clone(), content)
                }
                ColumnSource::Values(read) => {
                    let bytes = read.plan.response_bytes();
                    let elements = engine.reader.elements(next()?, 0..bytes, trace);
                    let column =
                        column(read.conversion.data_type(), read.units.clone(), ColumnContent::Values);
                    streams.push(ColumnStream { elements, read, part: Elements::default() });
                    column
                }
            });
        }
        let text_growth = options.text_growth();
        let row_bytes = options.row_bytes(&written);
        // The labels are written as text here.
        let prepare = move || {
            let label_bytes = written.iter().map(TableColumn::longest_label).fold(0, u64::saturating_add);
            // A label is in as many rows as select it, so that few bytes are many in the table.
            let labels = written.iter().map(|column| column.label_bytes(rows)).fold(0, u128::saturating_add);
            text_limit.check(labels)?;
            Ok::<_, ElementsError>((table_writer(options, written)?, label_bytes, labels))
        };
        let (writer, label_bytes, texts) = engine.cpu.run(prepare).await.map_err(ArrayError::from)??;
        let row_bytes = row_bytes.saturating_add(label_bytes.saturating_mul(text_growth));
        let of_texts = streams.iter().filter(|stream| stream.is_variable()).count().max(1) as u64;
        Ok(Self {
            engine: Arc::clone(engine),
            trace: Arc::clone(trace),
            streams,
            writer: Some(writer),
            has_begun: false,
            written: 0,
            rows,
            batch_rows: (batch_bytes / row_bytes).clamp(1, MAX_BATCH_ROWS),
            batch_bytes,
            text_bytes: batch_bytes / text_growth / of_texts,
            text_growth,
            label_bytes,
            texts,
            text_limit,
            memory: Reservation::new(Some(budget)),
            long_bytes: 0,
        })
    }

    /// Whether all of the table was returned.
    pub(super) fn is_finished(&self) -> bool {
        self.writer.is_none()
    }

    /// The next bytes of the table; `None` at its end.
    ///
    /// # Errors
    /// Failures of reading, and elements that the format cannot have.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ElementsError> {
        let Some(mut writer) = self.writer.take() else { return Ok(None) };
        let rows = self.next_rows().await?;
        self.reserve(&rows, writer.kept_bytes())?;
        self.written = self.written.saturating_add(rows.count as u64);
        let (begins, ends) = (!self.has_begun, self.written == self.rows);
        self.has_begun = true;
        let conversions: Vec<_> =
            self.streams.iter().map(|stream| Arc::clone(&stream.read.conversion)).collect();
        let begun = Instant::now();
        let write = move || {
            let mut out = Vec::new();
            if begins {
                writer.begin(&mut out)?;
            }
            let values = rows.values.into_iter().zip(conversions).map(|(elements, conversion)| {
                elements.map_items(|items| conversion.try_convert(items)).map_err(ArrayError::Cast)
            });
            let rows = TableRows { values: values.collect::<Result<_, _>>()?, ..rows };
            writer.write(&rows, &mut out)?;
            if ends {
                writer.finish(&mut out)?;
            }
            out.shrink_to_fit();
            Ok::<_, ElementsError>((out, writer))
        };
        let (out, writer) = self.engine.cpu.run(write).await.map_err(ArrayError::from)??;
        self.trace.add_encode_time(begun);
        if !ends {
            self.writer = Some(writer);
        }
        Ok(Some(out.into()))
    }

    /// The rest of the table.
    pub(super) fn into_stream(self) -> impl Stream<Item = Result<Bytes, ElementsError>> + Send {
        stream::try_unfold(self, |mut body| async move { Ok(body.next().await?.map(|bytes| (bytes, body))) })
    }

    /// The next rows, as they are stored.
    async fn next_rows(&mut self) -> Result<TableRows, ElementsError> {
        let left = self.rows - self.written;
        let mut count = left.min(self.batch_rows);
        for stream in &mut self.streams {
            while left > 0 && stream.part.items().is_empty() {
                stream.part = stream.elements.try_next().await?.ok_or(RenderError::ElementCount)?;
                // Before any of it is sent.
                self.texts = self.texts.saturating_add(stream.text_bytes(&stream.part).into());
                self.text_limit.check(self.texts)?;
            }
            count = count.min(stream.rows_of_a_batch(self.text_bytes));
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let values = self.streams.iter_mut().map(|stream| stream.take(count)).collect();
        Ok(TableRows { first: self.written, count, values })
    }

    /// Reserves memory for rows that are longer than a batch, with those before them, which may not be sent yet; and for what the
    /// writer keeps.
    fn reserve(&mut self, rows: &TableRows, kept_bytes: u64) -> Result<(), ElementsError> {
        let texts = |(stream, elements): (&ColumnStream, &Elements)| stream.text_bytes(elements);
        let labels = self.label_bytes.saturating_mul(rows.count as u64);
        let texts = self.streams.iter().zip(&rows.values).map(texts).fold(labels, u64::saturating_add);
        let long_bytes = texts.saturating_mul(self.text_growth).saturating_sub(self.batch_bytes);
        let before = std::mem::replace(&mut self.long_bytes, long_bytes);
        // The first is reserved twice if others follow: a table for which there is no memory is refused before its head is sent.
        let is_first_of_several = !self.has_begun && (rows.count as u64) < self.rows;
        let together = long_bytes.saturating_add(if is_first_of_several { long_bytes } else { before });
        self.memory.resize(together.saturating_mul(LONG_ROW_COPIES).saturating_add(kept_bytes))?;
        Ok(())
    }
}

impl ColumnStream {
    fn is_variable(&self) -> bool {
        self.read.is_variable()
    }

    /// Bytes of elements of variable length.
    fn text_bytes(&self, elements: &Elements) -> u64 {
        if !self.is_variable() {
            return 0;
        }
        elements.variable_elements().map(|text| text.len() as u64).fold(0, u64::saturating_add)
    }

    fn item_bytes(&self) -> usize {
        self.read.plan.array().metadata().data_type.element_bytes().max(1)
    }

    /// The rows that can be written together: those that were read, and no more text than fits in a batch.
    fn rows_of_a_batch(&self, most_bytes: u64) -> u64 {
        let items = self.part.items();
        if !self.is_variable() {
            return (items.len() / self.item_bytes()) as u64;
        }
        let (items, _) = items.as_chunks();
        let mut bytes = 0_u64;
        let fits = |item: &&[u8; VarSlice::BYTES]| {
            bytes = bytes.saturating_add(VarSlice::from_item(**item).length.into());
            bytes <= most_bytes
        };
        // One that is longer is written by itself.
        (items.iter().take_while(fits).count() as u64).max(1)
    }

    /// The next elements.
    fn take(&mut self, count: usize) -> Elements {
        let bytes = count.saturating_mul(self.item_bytes()).min(self.part.items().len());
        let taken = self.part.slice(0..bytes);
        let rest = bytes..self.part.items().len();
        // The whole part is released with its last element.
        self.part = if rest.is_empty() { Elements::default() } else { self.part.slice(rest) };
        taken
    }
}

/// The labels of a dimension.
async fn labels(
    engine: &ArrayEngine,
    snapshot: Snapshot,
    read: &ReadColumn,
    trace: &Arc<ReadContext>,
) -> Result<Elements, ElementsError> {
    let bytes = read.plan.response_bytes();
    let mut parts = engine.reader.elements(snapshot, 0..bytes, trace);
    // They are in one segment.
    let labels = parts.try_next().await?.unwrap_or_default();
    if labels.items().len() as u64 != bytes {
        return Err(RenderError::ElementCount.into());
    }
    let conversion = Arc::clone(&read.conversion);
    let convert = move || labels.map_items(|items| conversion.try_convert(items)).map_err(ArrayError::Cast);
    Ok(engine.cpu.run(convert).await.map_err(ArrayError::from)??)
}
