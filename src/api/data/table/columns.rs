//! [`TableColumns`]: the columns of a table, with what is read for each, and what that costs.

use std::sync::Arc;

use serde_json::Value;

use super::axes::{SelectedElements, TableAxes, TableAxis, unused};
use crate::api::export::sources::ExportSource;
use crate::array::{Array, ArrayError, OpenNode, Plan, ReadLimits};
use crate::chunk::{AxisPositions, Elements, Subset};
use crate::http::problem::Problem;
use crate::labels::CfTimes;
use crate::metadata::{ArrayMetadata, DataType, Endianness};
use crate::render::table::{
    ColumnContent, LabelColumn, LabelSource, TableColumn, TableOptions, TimeUnits, max_label_bytes,
    table_writer,
};
use crate::render::{CfDecoding, Conversion, RenderError};

/// Smallest segment in which the elements of a column are read.
const LEAST_SEGMENT_BYTES: u64 = 1 << 20;
/// Bytes that a stored chunk takes in a snapshot, about.
const CHUNK_BYTES: u64 = 400;
/// The most bytes of text in the labels of a dimension, in any table.
const LABEL_HEAP_BYTES: u64 = 4 << 20;
/// Bytes of memory for a byte of such text: itself, and as text of the format, where each character may take six.
const HEAP_GROWTH: u64 = 8;
/// How many times the bytes of rows are in memory while they are written, and until they are sent: converted, as columns and as
/// text, and what is begun of the next.
const BATCH_COPIES: u64 = 6;
/// Bytes that a label takes beside its element and its text.
const LABEL_BYTES: u64 = 16;

/// What columns are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnOptions<'a> {
    pub(super) limits: &'a ReadLimits,
    /// The most bytes of texts in one segment,
    pub(super) whole_bytes: u64,
    /// and of labels.
    pub(super) label_bytes: u64,
    /// How the table is written.
    pub(super) table: TableOptions,
    /// Whether elements are decoded by the CF attributes,
    pub(super) decodes: bool,
    /// and labels.
    pub(super) decodes_labels: bool,
}

impl ColumnOptions<'_> {
    fn is_text(&self) -> bool {
        self.table.format.is_text()
    }

    /// The most bytes of text in the labels of a dimension.
    fn label_heap_bytes(&self) -> u64 {
        self.whole_bytes.min(LABEL_HEAP_BYTES)
    }
}

/// Elements that are read for a column.
#[derive(Clone, Debug)]
pub(super) struct ReadColumn {
    pub(super) node: Arc<OpenNode>,
    pub(super) plan: Plan,
    pub(super) conversion: Arc<Conversion>,
    /// What the numbers count, if they are times.
    pub(super) units: Option<TimeUnits>,
}

impl ReadColumn {
    /// Whether its elements have variable length.
    pub(super) fn is_variable(&self) -> bool {
        self.plan.array().metadata().data_type.is_variable()
    }
}

/// Where a column is from.
#[derive(Clone, Debug)]
pub(super) enum ColumnSource {
    /// An element for each row.
    Values(ReadColumn),
    /// Labels that are in memory together.
    Labels { read: ReadColumn, count: u64, repeat: u64 },
    /// Positions in place of labels.
    Positions(LabelColumn),
}

/// A column of a table.
#[derive(Clone, Debug)]
pub(super) struct PlannedColumn {
    pub(super) name: String,
    pub(super) source: ColumnSource,
}

/// The columns of a table that is within the limits.
#[derive(Clone, Debug)]
pub(super) struct TableColumns {
    pub(super) columns: Vec<PlannedColumn>,
    pub(super) rows: u64,
    /// Bytes that labels take at most,
    label_bytes: u64,
    /// and everything else that is in memory while the table is sent, but for the rows that are written.
    held_bytes: u64,
    /// The most bytes of all texts in the table.
    pub(super) text_limit: TextLimit,
    /// The most bytes of all texts as they are read, about.
    text_bytes: u64,
}

/// The most bytes of the texts of a table: what its other elements leave of the most bytes of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextLimit {
    /// Bytes of the elements, of those of variable length what locates them, and of the names in each row.
    elements: u128,
    limit: u64,
}

impl TextLimit {
    /// Checks that texts of this many bytes may be in the table.
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`].
    pub(super) fn check(self, texts: u128) -> Result<(), ArrayError> {
        check("bytes of elements", self.elements.saturating_add(texts), self.limit)
    }
}

/// An array whose elements become a column, and how.
struct ColumnArray {
    name: String,
    node: Arc<OpenNode>,
    array: Arc<Array>,
    conversion: Arc<Conversion>,
    units: Option<TimeUnits>,
}

/// The arrays of a table: the coordinate of each dimension, and the variables.
pub(super) struct TableArrays {
    coordinates: Vec<Option<ColumnArray>>,
    variables: Vec<ColumnArray>,
}

impl TableArrays {
    /// The arrays as columns. A variable that is the coordinate of its own dimension is the column of that.
    ///
    /// # Errors
    /// [`CfError`](crate::reduce::CfError).
    pub(super) fn new(
        coordinates: Vec<Option<ExportSource>>,
        variables: Vec<ExportSource>,
        options: ColumnOptions<'_>,
    ) -> Result<Self, Problem> {
        let paths: Vec<_> = coordinates.iter().flatten().map(|one| one.array.path().clone()).collect();
        let is_column = |variable: &ExportSource| paths.contains(variable.array.path());
        let mut others = Vec::with_capacity(variables.len());
        for variable in variables.into_iter().filter(|variable| !is_column(variable)) {
            let metadata = variable.metadata();
            let decoding =
                options.decodes.then(|| CfDecoding::new(metadata, options.is_text())).transpose()?;
            others.push(ColumnArray::new(variable, decoding));
        }
        let coordinate = |source: ExportSource| {
            let decoding =
                options.decodes_labels.then(|| CfDecoding::of_labels(source.metadata(), options.is_text()));
            ColumnArray::new(source, decoding)
        };
        let coordinates = coordinates.into_iter().map(|source| source.map(coordinate)).collect();
        Ok(Self { coordinates, variables: others })
    }

    /// Checks that a format has columns of the variables' types: if not, no selection helps.
    ///
    /// # Errors
    /// [`RenderError`].
    pub(super) fn check_types(&self, options: TableOptions) -> Result<(), RenderError> {
        let column = |variable: &ColumnArray| TableColumn {
            name: variable.name.clone(),
            data_type: variable.conversion.data_type().clone(),
            units: None,
            content: ColumnContent::Values,
        };
        table_writer(options, self.variables.iter().map(column).collect()).map(drop)
    }

    /// Bytes of the stored elements of a row.
    fn row_bytes(&self) -> u64 {
        let coordinates =
            self.coordinates.iter().map(|one| one.as_ref().map_or(8, ColumnArray::element_bytes));
        let variables = self.variables.iter().map(ColumnArray::element_bytes);
        coordinates.chain(variables).fold(0, u64::saturating_add)
    }

    /// Bytes of memory of a label along each dimension.
    fn label_bytes(&self, is_text: bool) -> Vec<u64> {
        let bytes = |one: &Option<ColumnArray>| {
            let Some(one) = one else { return 8 + max_label_bytes(&DataType::Int64) + LABEL_BYTES };
            let decoded = one.conversion.data_type();
            let text = if is_text { max_label_bytes(decoded) } else { 0 };
            let elements = one.element_bytes().saturating_add(decoded.element_bytes() as u64);
            elements.saturating_mul(2).saturating_add(text).saturating_add(LABEL_BYTES)
        };
        self.coordinates.iter().map(bytes).collect()
    }

    /// Checks what follows from the selection alone.
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`].
    fn check(&self, axes: &TableAxes, options: ColumnOptions<'_>) -> Result<u64, ArrayError> {
        let elements = u128::from(axes.rows).saturating_mul(self.row_bytes().into());
        check("bytes of elements", elements, options.limits.max_response_size)?;
        let labels = axes.axes.iter().zip(self.label_bytes(options.is_text())).zip(&self.coordinates);
        let labels = labels.fold(0_u128, |sum, ((axis, bytes), coordinate)| {
            let is_range = matches!(axis.positions, AxisPositions::Range(_));
            let is_held = if coordinate.is_some() { !is_streamed(axis, axes.rows) } else { !is_range };
            let count = if is_held { axis.positions.count() } else { 0 };
            sum.saturating_add(u128::from(count).saturating_mul(bytes.into()))
        });
        check("bytes of labels", labels, options.label_bytes)?;
        Ok(u64::try_from(labels).unwrap_or(u64::MAX))
    }

    /// Whether a part of the selection is within the limits.
    pub(super) fn fits(&self, axes: &TableAxes, options: ColumnOptions<'_>) -> bool {
        TableColumns::new(self, axes, options).is_ok()
    }
}

impl ColumnArray {
    fn new(source: ExportSource, decoding: Option<CfDecoding>) -> Self {
        let metadata = source.metadata();
        let stored = &metadata.data_type;
        let conversion = match decoding {
            None => Conversion::whole(stored, Endianness::Little),
            Some(decoding) => Conversion::decoded(stored, decoding, Endianness::Little),
        };
        let are_numbers = DataType::NUMPY_REALS.contains(conversion.data_type());
        let units = are_numbers.then(|| units_of(metadata)).flatten();
        let ExportSource { name, node, array, .. } = source;
        Self { name, node, array, conversion: Arc::new(conversion), units }
    }

    fn element_bytes(&self) -> u64 {
        self.array.metadata().data_type.element_bytes() as u64
    }

    fn is_variable(&self) -> bool {
        self.array.metadata().data_type.is_variable()
    }

    fn read(&self, plan: Plan) -> ReadColumn {
        let (node, conversion) = (Arc::clone(&self.node), Arc::clone(&self.conversion));
        ReadColumn { node, plan, conversion, units: self.units.clone() }
    }
}

impl PlannedColumn {
    /// The column as it is written, without elements.
    fn written(&self) -> TableColumn {
        let data_type = match &self.source {
            ColumnSource::Values(read) | ColumnSource::Labels { read, .. } => {
                read.conversion.data_type().clone()
            }
            ColumnSource::Positions(_) => DataType::Int64,
        };
        TableColumn { name: self.name.clone(), data_type, units: None, content: ColumnContent::Values }
    }

    /// The most bytes of its texts, if those of a variable have up to `heap_bytes`, and those of labels up to `label_heap_bytes`.
    fn text_bytes(&self, heap_bytes: u64, label_heap_bytes: u64) -> u64 {
        match &self.source {
            ColumnSource::Values(read) if read.is_variable() => heap_bytes,
            ColumnSource::Labels { read, .. } if read.is_variable() => label_heap_bytes,
            _ => 0,
        }
    }

    /// The path of the array that the column is from; empty for positions.
    pub(super) fn array_path(&self) -> &str {
        match &self.source {
            ColumnSource::Values(read) | ColumnSource::Labels { read, .. } => {
                read.plan.array().path().as_str()
            }
            ColumnSource::Positions(_) => "",
        }
    }
}

impl TableColumns {
    /// Plans to read what is selected. The work grows with lists of positions.
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`] with the limit that is exceeded.
    pub(super) fn new(
        arrays: &TableArrays,
        axes: &TableAxes,
        options: ColumnOptions<'_>,
    ) -> Result<Self, ArrayError> {
        let mut label_bytes = arrays.check(axes, options)?;
        let ColumnOptions { limits, whole_bytes, .. } = options;
        let streamed = |(axis, coordinate): &(&TableAxis, &Option<ColumnArray>)| {
            coordinate.is_some() && is_streamed(axis, axes.rows)
        };
        let streams =
            arrays.variables.len() + axes.axes.iter().zip(&arrays.coordinates).filter(streamed).count();
        let share = streams.max(1) as u64;
        let segment_size = (limits.segment_size / share).max(LEAST_SEGMENT_BYTES).min(limits.segment_size);
        let segmented = ReadLimits { segment_size, ..*limits };
        let whole = ReadLimits { segment_size: u64::MAX, ..*limits };
        let (heap_bytes, label_heap_bytes) = (whole_bytes / share, options.label_heap_bytes());
        let mut columns: Vec<PlannedColumn> = Vec::with_capacity(axes.axes.len() + arrays.variables.len());
        for (axis, coordinate) in axes.axes.iter().zip(&arrays.coordinates) {
            let (count, repeat) = (axis.positions.count(), axis.repeat);
            let source = match coordinate {
                None => {
                    ColumnSource::Positions(LabelColumn { labels: positions(&axis.positions), count, repeat })
                }
                Some(one) if is_streamed(axis, axes.rows) => {
                    let plan = along(&one.array, &axis.positions, &segmented)?.with_heap_limit(heap_bytes);
                    ColumnSource::Values(one.read(plan))
                }
                Some(one) => {
                    let plan = along(&one.array, &axis.positions, &whole)?.with_heap_limit(label_heap_bytes);
                    if one.is_variable() {
                        label_bytes =
                            label_bytes.saturating_add(label_heap_bytes.saturating_mul(HEAP_GROWTH));
                    }
                    label_bytes = label_bytes.saturating_add(plan.reduced_source_bytes());
                    ColumnSource::Labels { read: one.read(plan), count, repeat }
                }
            };
            columns.push(PlannedColumn { name: axis.name.clone(), source });
        }
        for variable in &arrays.variables {
            let plan = match &axes.selected {
                SelectedElements::Subset(subset) => Plan::new(&variable.array, subset.clone(), &segmented)?,
                SelectedElements::Listed { positions, points } => {
                    Plan::gathered(&variable.array, positions, points.as_ref(), &segmented)?
                }
            };
            let name = unused(variable.name.clone(), |name| columns.iter().any(|known| known.name == name));
            let source = ColumnSource::Values(variable.read(plan.with_heap_limit(heap_bytes)));
            columns.push(PlannedColumn { name, source });
        }
        let (mut held_bytes, mut decoded, mut chunks) = (0_u64, 0_u128, 0_u64);
        for column in &columns {
            let (read, is_whole) = match &column.source {
                ColumnSource::Values(read) => (read, false),
                ColumnSource::Labels { read, .. } => (read, true),
                ColumnSource::Positions(_) => continue,
            };
            decoded = decoded.saturating_add(read.plan.decoded_bytes().into());
            chunks = chunks.saturating_add(read.plan.chunks());
            if !is_whole {
                held_bytes = held_bytes.saturating_add(stream_bytes(&read.plan, heap_bytes));
            }
        }
        check("decoded bytes", decoded, limits.max_decoded_size)?;
        check("decoded chunks", chunks.into(), limits.max_chunks)?;
        held_bytes = held_bytes.saturating_add(chunks.saturating_mul(CHUNK_BYTES));
        let written: Vec<TableColumn> = columns.iter().map(PlannedColumn::written).collect();
        let row_bytes = options.table.name_bytes(&written).saturating_add(arrays.row_bytes().into());
        let elements = row_bytes.saturating_mul(axes.rows.into());
        let text_limit = TextLimit { elements, limit: limits.max_response_size };
        text_limit.check(0)?;
        let text_bytes = columns.iter().map(|column| column.text_bytes(heap_bytes, label_heap_bytes));
        let text_bytes = text_bytes.fold(0, u64::saturating_add);
        Ok(Self { columns, rows: axes.rows, label_bytes, held_bytes, text_limit, text_bytes })
    }

    /// Bytes of the rows that are written at a time: of a short table those of all rows.
    pub(super) fn batch_bytes(&self, options: TableOptions) -> u64 {
        let columns: Vec<TableColumn> = self.columns.iter().map(PlannedColumn::written).collect();
        let texts = self.text_bytes.saturating_mul(options.text_growth());
        let all = self.rows.saturating_mul(options.row_bytes(&columns)).saturating_add(texts);
        all.min(options.batch_bytes())
    }

    /// Bytes of memory while it is sent.
    pub(super) fn memory_bytes(&self, options: TableOptions) -> u64 {
        let batches = self.batch_bytes(options).saturating_mul(BATCH_COPIES);
        self.label_bytes.saturating_add(self.held_bytes).saturating_add(batches)
    }

    /// Whether all elements are read before the first row is sent.
    pub(super) fn is_read_at_once(&self) -> bool {
        self.reads().all(|read| read.plan.segment_bytes() == read.plan.response_bytes())
    }

    /// Whether it has elements of variable length.
    pub(super) fn is_variable(&self) -> bool {
        self.reads().any(ReadColumn::is_variable)
    }

    /// Everything that is read, in the order of the columns.
    pub(super) fn reads(&self) -> impl Iterator<Item = &ReadColumn> {
        self.columns.iter().filter_map(|column| match &column.source {
            ColumnSource::Values(read) | ColumnSource::Labels { read, .. } => Some(read),
            ColumnSource::Positions(_) => None,
        })
    }
}

/// Bytes in memory of a column that is read while it is sent: its segment and the next one, and of texts what they point to.
fn stream_bytes(plan: &Plan, heap_bytes: u64) -> u64 {
    let segments = plan.response_bytes().min(plan.segment_bytes().saturating_mul(2));
    let is_variable = plan.array().metadata().data_type.is_variable();
    let texts = if is_variable { heap_bytes.saturating_mul(2) } else { 0 };
    segments.saturating_add(plan.reduced_source_bytes()).saturating_add(texts)
}

/// Whether a dimension has a label of its own for each row, so that its labels are read as they are sent.
fn is_streamed(axis: &TableAxis, rows: u64) -> bool {
    axis.repeat == 1 && axis.positions.count() == rows
}

/// The plan for the labels of a dimension.
fn along(array: &Arc<Array>, positions: &AxisPositions, limits: &ReadLimits) -> Result<Plan, ArrayError> {
    match positions {
        AxisPositions::Range(range) => Plan::new(array, Subset(vec![*range]), limits),
        AxisPositions::List(_) => Plan::gathered(array, std::slice::from_ref(positions), None, limits),
    }
}

/// Positions in place of labels.
fn positions(positions: &AxisPositions) -> LabelSource {
    match positions {
        AxisPositions::Range(range) => LabelSource::Positions(*range),
        AxisPositions::List(_) => {
            let element = |position| i64::try_from(position).unwrap_or(i64::MAX).to_le_bytes();
            let items: Vec<u8> = positions.iter().flat_map(element).collect();
            LabelSource::Elements(Elements::fixed(items.into()))
        }
    }
}

/// What numbers count, if they are times.
fn units_of(metadata: &ArrayMetadata) -> Option<TimeUnits> {
    let times = CfTimes::of_attributes(&metadata.attributes)?;
    let units = metadata.attributes.get("units").as_ref().and_then(Value::as_str)?.to_owned();
    Some(TimeUnits { units, calendar: times.calendar().name().to_owned() })
}

fn check(what: &'static str, requested: u128, limit: u64) -> Result<(), ArrayError> {
    if requested > limit.into() {
        return Err(ArrayError::TooLarge { what, requested, limit });
    }
    Ok(())
}
