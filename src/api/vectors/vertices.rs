//! The vertices in boxes, as JSON, as an Arrow stream or as a binary frame.
//!
//! A short response is buffered before its head is sent, so that its length is known and every failure has a status. A
//! longer Arrow stream is sent chunk by chunk: a failure then aborts the body, and row counts follow as trailers.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use http_body::{Body as HttpBody, Frame};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, IntoResponses};

use super::filter;
use super::json::{amplification_json, saturating_u64};
use super::memory::{charge, settle};
use super::params::{BoxParams, LevelPath};
use super::problem::problem_of;
use super::request::VectorRequest;
use crate::admission::Permit;
use crate::api::query_params::{KnownParams, QueryParams};
use crate::cpu::ComputePool;
use crate::http::body::NoBody;
use crate::http::negotiate;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, MediaTypes, Resource, RouteSpec};
use crate::http::validators::from_text;
use crate::render::{ArrowVertices, BinaryVertices, JsonVertices, RenderError, VertexFormat};
use crate::vectors::{Batch, ResolutionLevel, VectorError, VertexStream, format_coord};

/// The vertices of a level.
pub(crate) const VERTICES: RouteSpec =
    RouteSpec::new("/v1/vectors/{mount}/{path}/levels/{level}/vertices", Resource::Vectors)
        .admitted_by(AdmittedBy::Handler)
        .post_reads()
        .media_types(MediaTypes::Vertices);

/// An Arrow stream up to about this many bytes is buffered.
const BUFFERED_ARROW_BYTES: usize = 1 << 20;

/// The query parameters of vertices, which `filter` parses.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `VectorParams` holds it")]
pub(crate) struct VerticesParams {
    /// `vertices` (the default): vertices in the box. `chunks`: all vertices of touched chunks. `objects`: all vertices
    /// of objects with a fragment in a touched chunk. `objects_exact`: all vertices of objects with a vertex in the
    /// box. `crop`: the vertices of objects that are in touched chunks. No mode finds an edge that crosses the box
    /// without a vertex inside it.
    mode: Option<String>,
    /// Attributes, such as `intensity,color`.
    attributes: Option<String>,
    /// Some of `position,chunk,row` (the default), `fragment`, `object_id`.
    columns: Option<String>,
    /// The largest number of rows; `cursor` is then where the next page starts.
    #[param(minimum = 1)]
    limit: Option<u64>,
    /// The `cursor` of the previous page.
    cursor: Option<String>,
    /// `fail` (the default: 409) or `skip`: skip corrupt chunks, and list them.
    on_error: Option<String>,
    /// `sizes`: count stored bytes, for `amplification.bytes`.
    include: Option<String>,
    /// `json` (the default), `arrow` or `bin`; takes precedence over `Accept`. Alias `f`.
    format: Option<String>,
}

impl QueryParams for VerticesParams {
    const ALIASES: &'static [(&'static str, &'static str)] = &[("f", "format")];
}

/// The responses of routes that return vertices.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes the responses for the API document")]
pub(crate) enum VerticesResponses {
    /// The vertices. `X-ZVF-Chunks`, `X-ZVF-Bins`, `X-ZVF-Rows-Loaded`, `X-ZVF-Rows` and `X-ZVF-Amplification` count
    /// them; for a long Arrow stream the row counts follow as trailers.
    #[response(status = 200, content_type = "application/json")]
    Vertices,
    /// The box is invalid (`bbox_rank`, `bbox_nan`, `bbox_inverted`), or a parameter is (`bad_param`, `bad_level`).
    #[response(status = 400)]
    NotUnderstood,
    /// No such store, level or attribute.
    #[response(status = 404)]
    NotFound,
    /// None of the formats is acceptable.
    #[response(status = 406)]
    NotAcceptable,
    /// A chunk is corrupt (`corrupt_chunk`); with `on_error=skip` the others are returned.
    #[response(status = 409)]
    Corrupt,
    /// More rows than a JSON or binary response may have (`too_many_rows`).
    #[response(status = 413)]
    TooMany,
    /// The store's metadata cannot be used (`invalid_metadata`).
    #[response(status = 422)]
    InvalidMetadata,
    /// An unsupported encoding (`unsupported_encoding`).
    #[response(status = 501)]
    Unsupported,
}

/// The vertices in a box.
///
/// Rows are ordered by chunk, then by fragment. `json` has `positions`, `attributes`, `chunks` with the rows of each,
/// and `stats`; a value that is not a number is null. `arrow` is a stream with a record batch for each chunk. `bin` is
/// a little-endian `uint32`, a JSON header of that many bytes with the names, types, offsets and lengths of the
/// columns, padding to a multiple of 8, and the columns, each at a multiple of 8, little-endian.
#[utoipa::path(
    method(get, head),
    path = VERTICES.template,
    tag = "vectors",
    operation_id = "get_vectors_vertices",
    params(
        LevelPath,
        BoxParams,
        VerticesParams,
    ),
    responses(VerticesResponses)
)]
pub(crate) async fn get_vertices(request: &VectorRequest<'_>) -> Result<(Response, VertexFormat), Problem> {
    let params = &request.params;
    params.check(&KnownParams::default().and::<BoxParams>().and::<VerticesParams>()).map_err(problem_of)?;
    let format = params.get("format").or_else(|| params.get("f"));
    let format = negotiate::choose(request.headers, format, &VertexFormat::ALL)?;
    let level = request.level().await?;
    let query = filter::parse_query(&level, params).map_err(problem_of)?;
    let limit = query.limit;
    let vertices = query.run(&level).await.map_err(problem_of)?;
    let is_head = *request.method == Method::HEAD;
    let memory = match format {
        _ if is_head => 0,
        VertexFormat::Arrow if limit.is_none() => {
            vertices.in_flight_bytes(&level).saturating_add(BUFFERED_ARROW_BYTES as u64)
        }
        _ => estimated_bytes(&level, &vertices, limit),
    };
    let (options, admission) = (&request.state.options, &request.state.traffic.admission);
    let least = options.streamed_response_size;
    let memory = memory.clamp(least, options.max_buffered_response_size.max(least));
    let mut permit = admission.acquire(request.admission_request(), memory).await?;
    if is_head {
        // The length is unknown: HEAD does not read the rows.
        let mut response = Body::new(NoBody).into_response();
        set_headers(response.headers_mut(), format, &vertices, false);
        return Ok((response, format));
    }
    let most = options.max_buffered_response_size;
    let response = match format {
        VertexFormat::Arrow => arrow_response(vertices, limit.is_some(), most, &mut permit).await?,
        VertexFormat::Binary => binary_response(vertices, most, &mut permit).await?,
        VertexFormat::Json => json_response(vertices, most, &mut permit).await?,
    };
    Ok((permit.hold(response), format))
}

/// The estimated size of all touched rows, of which a page has no more than `limit`; zero if the level does not declare
/// its number of vertices.
fn estimated_bytes(level: &ResolutionLevel, vertices: &VertexStream, limit: Option<u64>) -> u64 {
    let rows = level.vertex_count().unwrap_or_default();
    let share = u128::from(rows) * vertices.touched.chunks.len() as u128
        / (vertices.touched.non_empty_chunks as u128).max(1);
    let rows = saturating_u64(share).min(limit.unwrap_or(u64::MAX));
    rows.saturating_mul(vertices.schema.row_bytes())
}

const X_ZVF_CHUNKS: HeaderName = HeaderName::from_static("x-zvf-chunks");
const X_ZVF_BINS: HeaderName = HeaderName::from_static("x-zvf-bins");
const X_ZVF_ROWS_LOADED: HeaderName = HeaderName::from_static("x-zvf-rows-loaded");
const X_ZVF_ROWS: HeaderName = HeaderName::from_static("x-zvf-rows");
const X_ZVF_AMPLIFICATION: HeaderName = HeaderName::from_static("x-zvf-amplification");
const X_ZVF_CURSOR: HeaderName = HeaderName::from_static("x-zvf-cursor");
const X_ZVF_ERRORS: HeaderName = HeaderName::from_static("x-zvf-errors");

/// Sets the headers known before rows are read and, if the response is complete, the row counts.
fn set_headers(headers: &mut HeaderMap, format: VertexFormat, vertices: &VertexStream, is_whole: bool) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_ZVF_CHUNKS, HeaderValue::from(vertices.touched.chunks.len()));
    headers.insert(X_ZVF_BINS, HeaderValue::from(saturating_u64(vertices.touched.bins)));
    if let Some(value) =
        vertices.touched.amplification.formula.and_then(|formula| from_text(formula.to_string()))
    {
        headers.insert(X_ZVF_AMPLIFICATION, value);
    }
    if is_whole {
        set_row_counts(headers, vertices);
    }
}

/// Sets the headers or trailers known after all rows were read.
fn set_row_counts(headers: &mut HeaderMap, vertices: &VertexStream) {
    headers.insert(X_ZVF_ROWS_LOADED, HeaderValue::from(vertices.rows_loaded));
    headers.insert(X_ZVF_ROWS, HeaderValue::from(vertices.rows));
    if let Some(cursor) = vertices.cursor.as_ref().and_then(|cursor| from_text(cursor.to_text())) {
        headers.insert(X_ZVF_CURSOR, cursor);
    }
    if !vertices.failures.is_empty() {
        headers.insert(X_ZVF_ERRORS, HeaderValue::from(vertices.failures.len()));
    }
}

/// The members of the response beside the rows.
fn document_members(vertices: &VertexStream) -> Map<String, Value> {
    let mut rest = Map::new();
    let mut put = |name: &str, value: Value| rest.insert(name.to_owned(), value);
    if let Some(objects) = &vertices.objects {
        let object =
            |object: &crate::vectors::MatchedObject| json!({ "id": object.id, "parts": object.parts });
        put("objects", objects.iter().map(object).collect());
    }
    put(
        "stats",
        json!({
            "chunks": vertices.touched.chunks.len(),
            "candidates": saturating_u64(vertices.touched.candidates),
            "bins": saturating_u64(vertices.touched.bins),
            "rows_loaded": vertices.rows_loaded,
            "rows": vertices.rows,
            "amplification": amplification_json(&vertices.amplification()),
        }),
    );
    let mut warnings = Vec::new();
    if vertices.unknown_counts > 0 {
        let detail = "the store does not declare how many rows of its chunks are vertices: all are returned";
        warnings.push(
            json!({ "code": "row_count_unknown", "detail": detail, "chunks": vertices.unknown_counts }),
        );
    }
    if !vertices.touched.invalid_names.is_empty() {
        let names: Vec<&String> = vertices.touched.invalid_names.iter().take(100).collect();
        warnings.push(json!({ "code": "chunk_names_skipped", "names": names }));
    }
    put("warnings", Value::Array(warnings));
    let failure = |failure: &crate::vectors::ChunkFailure| {
        json!({
            "code": failure.error.code(), "chunk": format_coord(&failure.chunk), "reason": failure.error.to_string(),
        })
    };
    put("errors", vertices.failures.iter().map(failure).collect());
    put("cursor", json!(vertices.cursor.as_ref().map(crate::vectors::PageCursor::to_text)));
    rest
}

/// Rejects a response above the limit of buffered responses, with an estimate of its number of rows.
fn check_size(bytes: u64, limit: u64, vertices: &VertexStream) -> Result<(), Problem> {
    if bytes <= limit {
        return Ok(());
    }
    let fits = vertices.rows.saturating_mul(limit) / bytes.max(1);
    let done = u128::from(vertices.chunks_read.max(1));
    let all = u128::from(vertices.rows) * (vertices.touched.chunks.len() as u128).max(done) / done;
    Err(problem_of(VectorError::TooMany { what: "rows", estimate: saturating_u64(all), limit: fits }))
}

/// The response of this text, which is all that its permit is for from now on.
fn buffered_response(
    vertices: &VertexStream,
    format: VertexFormat,
    text: Vec<u8>,
    permit: &mut Permit,
) -> Result<Response, Problem> {
    let text = settle(permit, text)?;
    let length = HeaderValue::from(text.len());
    let mut response = Body::from(text).into_response();
    set_headers(response.headers_mut(), format, vertices, true);
    response.headers_mut().insert(header::CONTENT_LENGTH, length);
    Ok(response)
}

/// Charges a response with this many bytes so far: its parts, and the whole that is made of them.
fn charge_parts(permit: &mut Permit, bytes: u64) -> Result<(), Problem> {
    charge(permit, bytes.saturating_mul(2))
}

async fn json_response(
    mut vertices: VertexStream,
    limit: u64,
    permit: &mut Permit,
) -> Result<Response, Problem> {
    let mut writer = JsonVertices::new(vertices.schema.clone());
    let cpu = vertices.cpu.clone();
    while let Some(batch) = vertices.next().await.map_err(problem_of)? {
        let bytes = batch.positions.len() as u64;
        let written = cpu.run_or_inline(bytes, move || writer.write(&batch).map(|()| writer));
        writer = written.await??;
        check_size(writer.bytes(), limit, &vertices)?;
        charge_parts(permit, writer.bytes())?;
    }
    let text = writer.finish(document_members(&vertices));
    buffered_response(&vertices, VertexFormat::Json, text, permit)
}

async fn binary_response(
    mut vertices: VertexStream,
    limit: u64,
    permit: &mut Permit,
) -> Result<Response, Problem> {
    let mut writer = BinaryVertices::new(vertices.schema.clone());
    let cpu = vertices.cpu.clone();
    while let Some(batch) = vertices.next().await.map_err(problem_of)? {
        let bytes = batch.rows.len() as u64 * 16;
        let write = move || {
            writer.write(&batch);
            writer
        };
        writer = cpu.run_or_inline(bytes, write).await?;
        check_size(writer.bytes(), limit, &vertices)?;
        charge_parts(permit, writer.bytes())?;
    }
    let frame = writer.finish(document_members(&vertices));
    buffered_response(&vertices, VertexFormat::Binary, frame, permit)
}

async fn arrow_response(
    mut vertices: VertexStream,
    is_page: bool,
    limit: u64,
    permit: &mut Permit,
) -> Result<Response, Problem> {
    let mut writer = ArrowVertices::new(vertices.schema.clone())?;
    let cpu = vertices.cpu.clone();
    let mut out = Vec::new();
    let buffer_limit =
        if is_page { usize::try_from(limit).unwrap_or(usize::MAX) } else { BUFFERED_ARROW_BYTES };
    loop {
        let Some(batch) = vertices.next().await.map_err(problem_of)? else {
            writer.finish(&mut out)?;
            return buffered_response(&vertices, VertexFormat::Arrow, out, permit);
        };
        (writer, out) = write_batch(&cpu, writer, batch, out).await?;
        charge(permit, out.capacity() as u64)?;
        if out.len() > buffer_limit {
            break;
        }
    }
    let mut response = Body::empty().into_response();
    set_headers(response.headers_mut(), VertexFormat::Arrow, &vertices, false);
    response.headers_mut().insert(
        header::TRAILER,
        HeaderValue::from_static("X-ZVF-Rows-Loaded, X-ZVF-Rows, X-ZVF-Cursor, X-ZVF-Errors"),
    );
    let sending = ArrowStream { vertices, writer: Some(writer), first: Some(out), is_counted: false };
    let frames = stream::try_unfold(sending, ArrowStream::next).boxed();
    *response.body_mut() = Body::new(FrameBody(frames));
    Ok(response)
}

/// Appends a batch of rows, on the compute pool if it is large.
async fn write_batch(
    cpu: &ComputePool,
    mut writer: ArrowVertices,
    batch: Batch,
    mut out: Vec<u8>,
) -> Result<(ArrowVertices, Vec<u8>), StreamError> {
    let bytes = batch.rows.len() as u64 * 16;
    let write = move || writer.write(&batch, &mut out).map(|()| (writer, out));
    Ok(cpu.run_or_inline(bytes, write).await.map_err(VectorError::from)??)
}

/// A response that is being streamed.
struct ArrowStream {
    vertices: VertexStream,
    /// `None` once the stream is finished.
    writer: Option<ArrowVertices>,
    /// The bytes written before the head was sent.
    first: Option<Vec<u8>>,
    /// Whether the trailers were sent.
    is_counted: bool,
}

/// Why a streamed body is aborted.
#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error(transparent)]
    Vectors(#[from] VectorError),
    #[error(transparent)]
    Render(#[from] RenderError),
}

impl From<StreamError> for Problem {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Vectors(error) => problem_of(error),
            StreamError::Render(error) => error.into(),
        }
    }
}

impl ArrowStream {
    async fn next(mut self) -> Result<Option<(Frame<Bytes>, Self)>, StreamError> {
        if let Some(first) = self.first.take() {
            return Ok(Some((Frame::data(first.into()), self)));
        }
        let Some(mut writer) = self.writer.take() else {
            if std::mem::replace(&mut self.is_counted, true) {
                return Ok(None);
            }
            let mut trailers = HeaderMap::new();
            set_row_counts(&mut trailers, &self.vertices);
            return Ok(Some((Frame::trailers(trailers), self)));
        };
        let mut out = Vec::new();
        if let Some(batch) = self.vertices.next().await? {
            let cpu = self.vertices.cpu.clone();
            (writer, out) = write_batch(&cpu, writer, batch, out).await?;
            self.writer = Some(writer);
            return Ok(Some((Frame::data(out.into()), self)));
        }
        writer.finish(&mut out)?;
        Ok(Some((Frame::data(out.into()), self)))
    }
}

/// A response body of frames.
struct FrameBody(BoxStream<'static, Result<Frame<Bytes>, StreamError>>);

impl HttpBody for FrameBody {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        Poll::Ready(ready!(self.0.as_mut().poll_next(context)))
    }
}
