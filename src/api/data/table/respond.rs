//! [`table`]: the response with a table.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, StreamExt};
use sha2::{Digest, Sha256};

use super::axes::TableAxes;
use super::body::TableBody;
use super::columns::{ColumnOptions, TableArrays, TableColumns};
use super::sources::TableSources;
use crate::admission::text_memory::TextMemory;
use crate::admission::{AdmissionRequest, BufferedBytes};
use crate::api::data::error::ElementsError;
use crate::api::data::opening::open;
use crate::api::data::query::DataQuery;
use crate::api::data::rendering::Rendering;
use crate::api::data::slice_version::SliceVersion;
use crate::api::data::too_large::Broken;
use crate::api::export::source_finder::SourceFinder;
use crate::api::export::sources::ExportSource;
use crate::api::label_params::{LabelPositions, positions};
use crate::api::selection::ListedPositions;
use crate::array::{ArrayError, OpenNode, Snapshot, Suggestions};
use crate::auth::caller::Caller;
use crate::chunk::{AxisPositions, SelectionError, Subset};
use crate::error::ErrorClass;
use crate::http::body::NoBody;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::download;
use crate::http::negotiate;
use crate::http::problem::Problem;
use crate::http::timing::put_trace;
use crate::http::validators::put_validators;
use crate::render::table::{TABLE_FORMATS, TableOptions};
use crate::render::{FormatOptions, NanMode};
use crate::services::coordinates::coordinate_of;
use crate::services::extract::NodeTarget;
use crate::services::permit_budget::PermitBudget;
use crate::services::state::AppState;
use crate::store::{ValueInfo, Version};
use crate::units::hexadecimal::digest_tag;

/// Maximum number of attempts for a response whose chunks change while it starts.
const TRIES: usize = 3;
/// Bytes of work that an item of a list takes, about: for where it is planned.
const ITEM_BYTES: u64 = 256;
/// The most rows of a table that is tried with little memory for texts. All of them are read before the head is sent, so that there is
/// still a status if their texts are longer.
const FEW_ROWS: u64 = 1024;
/// How many times the bytes of these texts are in memory while a batch of rows is written and sent, about.
const TEXT_COPIES: u64 = 16;
/// The largest permit divided by this is the most for a table; the rest is left for what it grows by while it is written, and for other
/// responses of the same client.
const TABLE_PARTS: u64 = 2;
/// What to do if a coordinate is not as long as its dimension.
const WITHOUT_LABELS: &str = "to get the elements without labels, leave out `coords=1` and `format=parquet`";

/// A table that was planned.
struct TableRequest {
    columns: TableColumns,
    /// The same columns where their texts are short, if that can be tried.
    short: Option<Box<TableColumns>>,
    rendering: Rendering,
    group: Option<Arc<OpenNode>>,
    positions: Option<LabelPositions>,
    /// What the rows are, for the version.
    form: String,
}

/// The response with a table: of an array, or of variables of a group.
pub(in crate::api::data) async fn table(
    state: &AppState,
    head: &Parts,
    target: &NodeTarget,
    query: &DataQuery,
    started: Instant,
) -> Result<Response, Problem> {
    let rendering = rendering(&head.headers, query)?;
    if query.reduction.reduces()
        || query.over.reduces()
        || query.fields.fields.is_some()
        || query.format.dtype().is_some()
    {
        return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(
            "a table (`coords=1`) has elements as they are selected: leave out `downsample`, `fit`, `reduce.NAME`, `fields` and \
             `dtype`",
        ));
    }
    let node = open(head, target, &target.path, &query.array).await?;
    let rights = Caller::of(&head.extensions).rights();
    let finder = SourceFinder { target, rights, began: started };
    let TableSources { group, variables } =
        TableSources::find(&finder, node, query.variables.vars.as_deref()).await?;
    let Some(first) = variables.first().cloned() else {
        return Err(Problem::from_class(ErrorClass::Internal));
    };
    query.array.check_shape(&first.metadata().shape)?;
    let request = (state, head, target);
    let path = first.array.path();
    let positions = positions(request, &query.selection, path, first.metadata(), None).await?;
    let selection = positions.as_ref().map_or(&query.selection, |positions| &positions.selection).clone();
    let work = (selection.listed_items() as u64).saturating_mul(ITEM_BYTES);
    let (metadata, names) = (Arc::clone(first.metadata()), first.dimension_names.clone());
    let select = move || {
        let listed = selection.listed(&metadata)?;
        let identity = digest_tag(&Sha256::digest(format!("{listed:?}")));
        Ok::<_, SelectionError>((TableAxes::new(listed, &names), identity))
    };
    let (axes, identity) = state.engine.cpu.run_or_inline(work, select).await??;
    let mut coordinates: Vec<Option<ExportSource>> = Vec::with_capacity(axes.axes.len());
    for axis in &axes.axes {
        let length = axis.axis.and_then(|axis| first.metadata().shape.get(axis));
        let name = axis.axis.and_then(|axis| first.dimension_names.get(axis)?.as_ref());
        coordinates.push(match (name, length) {
            (Some(name), Some(&length)) => {
                let dimension = (name.as_str(), length);
                let found = coordinate_of(target, rights, path, dimension, WITHOUT_LABELS, started).await?;
                found.map(|(node, array)| ExportSource::coordinate(name, node, array))
            }
            _ => None,
        });
    }
    let options = ColumnOptions {
        limits: &state.engine.read,
        whole_bytes: state.options.max_buffered_response_size,
        label_bytes: state.options.max_buffered_response_size,
        table: table_options(&rendering),
        decodes: rendering.decodes,
        decodes_labels: !query.format.keeps_stored(),
    };
    let arrays = TableArrays::new(coordinates, variables, options)?;
    arrays.check_types(table_options(&rendering))?;
    let (limits, whole_bytes, table) = (state.engine.read, options.whole_bytes, options.table);
    let (decodes, decodes_labels) = (options.decodes, options.decodes_labels);
    let short_bytes = TextMemory::short_bytes(&state.traffic.admission);
    // The positions of a list without labels are written out.
    let lists = axes.axes.iter().filter(|axis| matches!(axis.positions, AxisPositions::List(_)));
    let listed = lists.map(|axis| axis.positions.count()).fold(0, u64::saturating_add);
    let work = work.saturating_add(listed.saturating_mul(size_of::<u64>() as u64));
    let plan = move || {
        let label_bytes = whole_bytes;
        let options =
            ColumnOptions { limits: &limits, whole_bytes, label_bytes, table, decodes, decodes_labels };
        let columns = TableColumns::new(&arrays, &axes, options)
            .map_err(|error| Box::new((error, suggestions(&arrays, &axes, &first, options))))?;
        let few = axes.rows <= FEW_ROWS && columns.is_variable() && columns.is_read_at_once();
        let options =
            ColumnOptions { whole_bytes: short_bytes / TEXT_COPIES, label_bytes: short_bytes, ..options };
        let short = few.then(|| TableColumns::new(&arrays, &axes, options).ok().map(Box::new)).flatten();
        Ok::<_, Box<_>>((columns, short))
    };
    let columns = state.engine.cpu.run_or_inline(work, plan).await?;
    let (columns, short) = columns.map_err(|refused| {
        let (error, suggestions) = *refused;
        too_large(state, error, suggestions)
    })?;
    let names: Vec<(&str, &str)> =
        columns.columns.iter().map(|column| (column.name.as_str(), column.array_path())).collect();
    let form = format!("table {} {names:?} {identity}", query.format.keeps_stored());
    TableRequest { columns, short, rendering, group, positions, form }.respond(state, target, head).await
}

/// How the rows are written.
fn rendering(headers: &HeaderMap, query: &DataQuery) -> Result<Rendering, Problem> {
    let format = negotiate::choose(headers, query.format.name(), TABLE_FORMATS)?;
    // Readers of a table take a text for the type of its column.
    let style =
        FormatOptions { format, endian: query.format.endian(), nan: query.format.nan_or(NanMode::Null) };
    let decodes = query.format.decodes_or(format.is_text());
    Ok(Rendering { style, fields: None, header: query.format.has_header(), decodes, dtype: None })
}

fn table_options(rendering: &Rendering) -> TableOptions {
    let FormatOptions { format, nan, .. } = rendering.style;
    TableOptions { format, nan, header: rendering.header }
}

/// Slices of the selection that are within the limits.
fn suggestions(
    arrays: &TableArrays,
    axes: &TableAxes,
    first: &ExportSource,
    options: ColumnOptions<'_>,
) -> Suggestions {
    let Some(subset) = axes.subset() else { return Suggestions::default() };
    let fits = |part: &Subset| {
        let ranges = part.axes().iter().copied().map(AxisPositions::Range).collect();
        let listed = ListedPositions { axes: ranges, points: None };
        arrays.fits(&TableAxes::new(listed, &first.dimension_names), options)
    };
    Suggestions::new(&first.array, subset, options.limits, fits)
}

/// The problem for an exceeded limit.
fn too_large(state: &AppState, error: ArrayError, suggestions: Suggestions) -> Problem {
    let error = ElementsError::from(error);
    match Broken::of(&state.engine.read, state.options.max_buffered_response_size, &error) {
        Some(broken) => broken.problem(error, suggestions),
        None => error.into(),
    }
}

impl TableRequest {
    async fn respond(self, state: &AppState, target: &NodeTarget, head: &Parts) -> Result<Response, Problem> {
        let options = table_options(&self.rendering);
        let (admission, entrant) = (&state.traffic.admission, AdmissionRequest::to_elements(head));
        let most = state.options.max_buffered_response_size;
        // A table whose estimate is more than there is still finds memory for what it grows by: long rows, and what its writer keeps.
        let largest = admission.most_bytes(entrant) / TABLE_PARTS;
        let memory_bytes = |limit| self.columns_within(limit, most).memory_bytes(options).min(largest);
        let mut memory = TextMemory::acquire(admission, entrant, most, memory_bytes).await?;
        let mut tries = 1;
        let mut answer = loop {
            match self.attempt(state, head, self.columns_within(memory.limit(), most)).await {
                Err(ElementsError::Array(error)) if error.is_changed() && tries < TRIES => tries += 1,
                Err(error) if memory.can_extend(error.exceeded_limit()) => memory.extend().await?,
                Err(ElementsError::Array(error @ ArrayError::TooLarge { .. })) => {
                    return Err(too_large(state, error, Suggestions::default()));
                }
                answered => break answered?,
            }
        };
        let headers = answer.headers_mut();
        headers.insert(header::CACHE_CONTROL, target.mount.cache_control.of_decoded());
        if answer.status().is_success() {
            let name = download::name_of(&target.mount.name, &target.path, &target.path);
            download::put(answer.headers_mut(), &name, self.rendering.style.format.extension);
        }
        Ok(memory.into_permit().hold(answer))
    }

    /// The columns with up to `limit` bytes of text, of at most `most`.
    fn columns_within(&self, limit: u64, most: u64) -> &TableColumns {
        self.short.as_deref().filter(|_| limit < most).unwrap_or(&self.columns)
    }

    async fn attempt(
        &self,
        state: &AppState,
        head: &Parts,
        columns: &TableColumns,
    ) -> Result<Response, ElementsError> {
        let engine = &state.engine;
        let mount = columns.reads().next().map(|read| Arc::clone(read.plan.array().mount()));
        let trace = engine.reader.read_context(&mount.unwrap_or_else(|| "".into()));
        let mut snapshots = Vec::with_capacity(columns.columns.len());
        for read in columns.reads() {
            snapshots.push(engine.reader.lookup_versions(&read.plan, &trace).await?);
        }
        let version = self.version(&snapshots);
        let mut answer = match Conditions::from_headers(&head.headers).for_read(&version, None) {
            Verdict::Failed => {
                return Ok(Problem::from_class(ErrorClass::PreconditionFailed).into_response());
            }
            Verdict::NotModified => StatusCode::NOT_MODIFIED.into_response(),
            Verdict::Proceed => {
                let (columns, entrant) = (columns.clone(), AdmissionRequest::to_elements(head));
                let options = table_options(&self.rendering);
                let budget = PermitBudget::alongside(&state.traffic.admission, &head.extensions, entrant);
                let mut body = TableBody::new(engine, columns, snapshots, options, &trace, &budget).await?;
                // A failure to read the first rows still has a status; and what is short has a length.
                let first = body.next().await?.unwrap_or_default();
                let length = body.is_finished().then_some(first.len());
                let whole_bytes = length.unwrap_or_default() as u64;
                let mut answer = Response::new(if head.method == Method::HEAD {
                    if length.is_some() { Body::empty() } else { Body::new(NoBody) }
                } else if length.is_some() {
                    Body::from(first)
                } else {
                    let first = stream::once(std::future::ready(Ok(first)));
                    Body::from_stream(first.chain(body.into_stream()))
                });
                BufferedBytes::put(whole_bytes, answer.extensions_mut());
                let headers = answer.headers_mut();
                headers.insert(header::CONTENT_TYPE, self.rendering.media_type());
                if let Some(length) = length {
                    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
                }
                put_trace(headers, &trace);
                answer
            }
        };
        put_validators(answer.headers_mut(), &ValueInfo { size: 0, version, modified: None });
        answer.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
        if let Some(positions) = &self.positions {
            positions.put_headers(answer.headers_mut());
        }
        Ok(answer)
    }

    /// The version of the table, derived from the versions of all arrays, the coordinates among them.
    fn version(&self, snapshots: &[Snapshot]) -> Version {
        let mut version = SliceVersion::new(&Subset(Vec::new()), Some(&self.form));
        self.group.iter().flat_map(|group| group.located.versions()).for_each(|found| version.add(found));
        for (read, snapshot) in self.columns.reads().zip(snapshots) {
            read.node.located.versions().chain(snapshot.versions()).for_each(|found| version.add(found));
        }
        if let Some(positions) = &self.positions {
            version.add_labels(positions);
        }
        version.of_representation(&self.rendering)
    }
}
