//! The vertices in boxes, in three forms.
//!
//! What is short is put together before the head is sent, so that its length is known and every failure has a status. A
//! longer Arrow stream is sent chunk by chunk: then a failure breaks the body off visibly, and the counts follow as trailers.

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

use super::amplification::clamped;
use super::chunks::amplification_of;
use super::{VectorRequest, filter, problem_of};
use crate::cpu::ComputePool;
use crate::http::body::NoBody;
use crate::http::negotiate::{self, Offer};
use crate::http::problem::Problem;
use crate::http::validators::from_text;
use crate::render::{ArrowVertices, BinaryVertices, JsonVertices, RenderError};
use crate::vectors::{Batch, Level, VectorError, VertexStream, dotted};

/// An Arrow stream up to about this long is put together whole.
const WHOLE_ARROW: usize = 1 << 20;

/// The formats; the first is the default.
pub(in crate::http) const OFFERS: &[Offer] = &[
    Offer { name: "json", media_type: "application/json" },
    Offer { name: "arrow", media_type: "application/vnd.apache.arrow.stream" },
    Offer { name: "bin", media_type: "application/octet-stream" },
];

/// What is asked for of the vertices, as `filter` reads it.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query for the API document; `filter` reads it")]
pub(in crate::http) struct VerticesParams {
    /// `vertices` (the default): those in the box. `chunks`: all of touched chunks. `objects`: objects with a fragment in a
    /// touched chunk, whole. `objects_exact`: objects with a vertex in the box, whole. `crop`: what of objects is in touched
    /// chunks. An edge that crosses the box without a vertex inside is found by none.
    mode: Option<String>,
    /// Attributes, such as `intensity,color`.
    attributes: Option<String>,
    /// Some of `position,chunk,row` (the default), `fragment`, `object_id`.
    columns: Option<String>,
    /// Rows at most; `cursor` then tells where the next page begins.
    limit: Option<u64>,
    /// Where the page before ended.
    cursor: Option<String>,
    /// `fail` (the default: 409) or `skip`: leave corrupt chunks out, and list them.
    on_error: Option<String>,
    /// `sizes`: count bytes as stored, for `amplification.bytes`.
    include: Option<String>,
    /// `json` (the default), `arrow` or `bin`; wins over `Accept`. Alias `f`.
    format: Option<String>,
}

/// What routes that give vertices answer.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes the answers for the API document")]
pub(in crate::http) enum VerticesResponses {
    /// The vertices. `X-ZVF-Chunks`, `X-ZVF-Bins`, `X-ZVF-Rows-Loaded`, `X-ZVF-Rows`, `X-ZVF-Amplification` count them; of
    /// a long Arrow stream the rows follow as trailers.
    #[response(status = 200, content_type = "application/json")]
    Vertices,
    /// The box is none (`bbox_rank`, `bbox_nan`, `bbox_inverted`), or a parameter (`bad_param`, `bad_level`).
    #[response(status = 400)]
    NotUnderstood,
    /// No such store, level or attribute.
    #[response(status = 404)]
    NotFound,
    /// None of the formats is acceptable.
    #[response(status = 406)]
    NotAcceptable,
    /// A chunk is corrupt (`corrupt_chunk`); `on_error=skip` answers with the others.
    #[response(status = 409)]
    Corrupt,
    /// More rows than JSON or a frame may have (`too_many_rows`).
    #[response(status = 413)]
    TooMany,
    /// The store's metadata cannot be used (`invalid_metadata`).
    #[response(status = 422)]
    InvalidMetadata,
    /// An encoding that is not read here (`unsupported_encoding`).
    #[response(status = 501)]
    Unsupported,
}

/// The vertices in a box.
///
/// Rows are in the order of their chunks, then of their fragments. `json` has `positions`, `attributes`, `chunks` with the
/// rows of each, and `stats`; what is no number is null. `arrow` is a stream of a record batch for each chunk. `bin` is a
/// little-endian `uint32`, a JSON header of so many bytes with the columns' names, types, offsets and lengths, filling to a
/// multiple of 8, and the columns, each at a multiple of 8, little-endian.
#[utoipa::path(
    method(get, head),
    path = "/v1/vectors/{mount}/{path}/levels/{level}/vertices",
    tag = "vectors",
    operation_id = "get_vectors_vertices",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("path" = String, Path, description = "Path of the store"),
        ("level" = u64, Path, description = "Number of the level. `levels/N` may be left out: the finest"),
        super::BoxParams,
        VerticesParams,
    ),
    responses(VerticesResponses)
)]
pub(in crate::http) async fn answer(question: &VectorRequest<'_>) -> Result<Response, Problem> {
    let known = ["mode", "attributes", "columns", "limit", "cursor", "on_error", "include", "format", "f"];
    let params = &question.params;
    params.check(&[&filter::BOX[..], &known].concat()).map_err(problem_of)?;
    let format = params.get("format").or_else(|| params.get("f"));
    let offer = negotiate::choose(question.headers, format, OFFERS)?;
    let level = question.level().await?;
    let query = filter::query(&level, params).map_err(problem_of)?;
    let is_page = query.limit.is_some();
    let vertices = query.run(&level).await.map_err(problem_of)?;
    let options = question.state.options();
    let held = match offer.name {
        "arrow" if !is_page => vertices.held_bytes(&level).saturating_add(WHOLE_ARROW as u64),
        _ => estimated_bytes(&level, &vertices).unwrap_or(options.max_buffered_response_size),
    };
    let permit = question
        .state
        .admission()
        .acquire(
            question.entrant(),
            held.clamp(
                options.streamed_response_size,
                options.max_buffered_response_size.max(options.streamed_response_size),
            ),
        )
        .await?;
    if *question.method == Method::HEAD {
        // The length is that of rows which nobody reads for this.
        let mut answer = Body::new(NoBody).into_response();
        describe(answer.headers_mut(), offer, &vertices, false);
        return Ok(answer);
    }
    let answer = match offer.name {
        "arrow" => arrow(vertices, offer, is_page, options.max_buffered_response_size).await?,
        "bin" => binary(vertices, offer, options.max_buffered_response_size).await?,
        _ => json_text(vertices, offer, options.max_buffered_response_size).await?,
    };
    Ok(permit.hold(answer))
}

/// What all touched rows would take, if the level says how many it has.
fn estimated_bytes(level: &Level, vertices: &VertexStream) -> Option<u64> {
    let rows = level.vertex_count()?;
    let share =
        u128::from(rows) * vertices.touched.chunks.len() as u128 / (vertices.touched.occupied as u128).max(1);
    u64::try_from(share).ok()?.checked_mul(vertices.schema.row_bytes())
}

const X_ZVF_CHUNKS: HeaderName = HeaderName::from_static("x-zvf-chunks");
const X_ZVF_BINS: HeaderName = HeaderName::from_static("x-zvf-bins");
const X_ZVF_ROWS_LOADED: HeaderName = HeaderName::from_static("x-zvf-rows-loaded");
const X_ZVF_ROWS: HeaderName = HeaderName::from_static("x-zvf-rows");
const X_ZVF_AMPLIFICATION: HeaderName = HeaderName::from_static("x-zvf-amplification");
const X_ZVF_CURSOR: HeaderName = HeaderName::from_static("x-zvf-cursor");
const X_ZVF_ERRORS: HeaderName = HeaderName::from_static("x-zvf-errors");

/// What is known of an answer: all of it, or what was known before its rows were read.
fn describe(headers: &mut HeaderMap, offer: Offer, vertices: &VertexStream, is_whole: bool) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(offer.media_type));
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_ZVF_CHUNKS, HeaderValue::from(vertices.touched.chunks.len()));
    headers.insert(X_ZVF_BINS, HeaderValue::from(clamped(vertices.touched.bins)));
    if let Some(value) =
        vertices.touched.amplification.formula.and_then(|formula| from_text(formula.to_string()))
    {
        headers.insert(X_ZVF_AMPLIFICATION, value);
    }
    if is_whole {
        count(headers, vertices);
    }
}

/// What is known once all rows were read.
fn count(headers: &mut HeaderMap, vertices: &VertexStream) {
    headers.insert(X_ZVF_ROWS_LOADED, HeaderValue::from(vertices.rows_loaded));
    headers.insert(X_ZVF_ROWS, HeaderValue::from(vertices.rows));
    if let Some(cursor) = vertices.cursor.as_ref().and_then(|cursor| from_text(cursor.to_text())) {
        headers.insert(X_ZVF_CURSOR, cursor);
    }
    if !vertices.failures.is_empty() {
        headers.insert(X_ZVF_ERRORS, HeaderValue::from(vertices.failures.len()));
    }
}

/// What is said beside the rows.
fn rest(vertices: &VertexStream) -> Map<String, Value> {
    let mut rest = Map::new();
    let mut put = |name: &str, value: Value| rest.insert(name.to_owned(), value);
    if let Some(objects) = &vertices.objects {
        let object = |object: &crate::vectors::FoundObject| json!({ "id": object.id, "parts": object.parts });
        put("objects", objects.iter().map(object).collect());
    }
    put(
        "stats",
        json!({
            "chunks": vertices.touched.chunks.len(),
            "candidates": clamped(vertices.touched.candidates),
            "bins": clamped(vertices.touched.bins),
            "rows_loaded": vertices.rows_loaded,
            "rows": vertices.rows,
            "amplification": amplification_of(&vertices.amplification()),
        }),
    );
    let mut warnings = Vec::new();
    if vertices.unknown_counts > 0 {
        let detail = "the store does not say how many rows of its chunks are vertices: all are given";
        warnings.push(
            json!({ "code": "row_count_unknown", "detail": detail, "chunks": vertices.unknown_counts }),
        );
    }
    if !vertices.touched.skipped.is_empty() {
        let names: Vec<&String> = vertices.touched.skipped.iter().take(100).collect();
        warnings.push(json!({ "code": "chunk_names_skipped", "names": names }));
    }
    put("warnings", Value::Array(warnings));
    let failure = |failure: &crate::vectors::Failure| {
        json!({
            "code": failure.error.code(), "chunk": dotted(&failure.chunk), "reason": failure.error.to_string(),
        })
    };
    put("errors", vertices.failures.iter().map(failure).collect());
    put("cursor", json!(vertices.cursor.as_ref().map(crate::vectors::Cursor::to_text)));
    rest
}

/// Refuses an answer that grows beyond what is put together whole; says how many rows there would be, about.
fn check(bytes: u64, limit: u64, vertices: &VertexStream) -> Result<(), Problem> {
    if bytes <= limit {
        return Ok(());
    }
    let fits = vertices.rows.saturating_mul(limit) / bytes.max(1);
    let done = u128::from(vertices.done.max(1));
    let all = u128::from(vertices.rows) * (vertices.touched.chunks.len() as u128).max(done) / done;
    Err(problem_of(VectorError::TooMany { what: "rows", estimate: clamped(all), limit: fits }))
}

fn whole(vertices: &VertexStream, offer: Offer, text: Vec<u8>) -> Response {
    let length = HeaderValue::from(text.len());
    let mut answer = Body::from(text).into_response();
    describe(answer.headers_mut(), offer, vertices, true);
    answer.headers_mut().insert(header::CONTENT_LENGTH, length);
    answer
}

async fn json_text(mut vertices: VertexStream, offer: Offer, limit: u64) -> Result<Response, Problem> {
    let mut writer = JsonVertices::new(vertices.schema.clone());
    let cpu = vertices.cpu.clone();
    while let Some(batch) = vertices.next().await.map_err(problem_of)? {
        let bytes = batch.positions.len() as u64;
        let written = cpu.run_or_inline(bytes, move || writer.write(&batch).map(|()| writer));
        writer = written.await??;
        check(writer.bytes(), limit, &vertices)?;
    }
    let text = writer.finish(rest(&vertices));
    Ok(whole(&vertices, offer, text))
}

async fn binary(mut vertices: VertexStream, offer: Offer, limit: u64) -> Result<Response, Problem> {
    let mut writer = BinaryVertices::new(vertices.schema.clone());
    let cpu = vertices.cpu.clone();
    while let Some(batch) = vertices.next().await.map_err(problem_of)? {
        let bytes = batch.rows.len() as u64 * 16;
        let write = move || {
            writer.write(&batch);
            writer
        };
        writer = cpu.run_or_inline(bytes, write).await?;
        check(writer.bytes(), limit, &vertices)?;
    }
    let frame = writer.finish(rest(&vertices));
    Ok(whole(&vertices, offer, frame))
}

async fn arrow(
    mut vertices: VertexStream,
    offer: Offer,
    is_page: bool,
    limit: u64,
) -> Result<Response, Problem> {
    let mut writer = ArrowVertices::new(vertices.schema.clone())?;
    let cpu = vertices.cpu.clone();
    let mut out = Vec::new();
    let most = if is_page { usize::try_from(limit).unwrap_or(usize::MAX) } else { WHOLE_ARROW };
    loop {
        let Some(batch) = vertices.next().await.map_err(problem_of)? else {
            writer.finish(&mut out)?;
            return Ok(whole(&vertices, offer, out));
        };
        (writer, out) = written(&cpu, writer, batch, out).await?;
        if out.len() > most {
            break;
        }
    }
    let mut answer = Body::empty().into_response();
    describe(answer.headers_mut(), offer, &vertices, false);
    answer.headers_mut().insert(
        header::TRAILER,
        HeaderValue::from_static("X-ZVF-Rows-Loaded, X-ZVF-Rows, X-ZVF-Cursor, X-ZVF-Errors"),
    );
    let sending = Sending { vertices, writer: Some(writer), first: Some(out), is_counted: false };
    let frames = stream::try_unfold(sending, Sending::next).boxed();
    *answer.body_mut() = Body::new(Framed(frames));
    Ok(answer)
}

/// Appends the rows of a chunk, off the reactor if there are many.
async fn written(
    cpu: &ComputePool,
    mut writer: ArrowVertices,
    batch: Batch,
    mut out: Vec<u8>,
) -> Result<(ArrowVertices, Vec<u8>), Broken> {
    let bytes = batch.rows.len() as u64 * 16;
    let write = move || writer.write(&batch, &mut out).map(|()| (writer, out));
    Ok(cpu.run_or_inline(bytes, write).await.map_err(VectorError::from)??)
}

/// A stream under way.
struct Sending {
    vertices: VertexStream,
    /// Gone once the stream is finished.
    writer: Option<ArrowVertices>,
    /// What was written before the head.
    first: Option<Vec<u8>>,
    /// Whether the trailers were sent.
    is_counted: bool,
}

/// Why a body breaks off.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Vectors(#[from] VectorError),
    #[error(transparent)]
    Render(#[from] RenderError),
}

impl From<Broken> for Problem {
    fn from(error: Broken) -> Self {
        match error {
            Broken::Vectors(error) => problem_of(error),
            Broken::Render(error) => error.into(),
        }
    }
}

impl Sending {
    async fn next(mut self) -> Result<Option<(Frame<Bytes>, Self)>, Broken> {
        if let Some(first) = self.first.take() {
            return Ok(Some((Frame::data(first.into()), self)));
        }
        let Some(mut writer) = self.writer.take() else {
            if std::mem::replace(&mut self.is_counted, true) {
                return Ok(None);
            }
            let mut trailers = HeaderMap::new();
            count(&mut trailers, &self.vertices);
            return Ok(Some((Frame::trailers(trailers), self)));
        };
        let mut out = Vec::new();
        if let Some(batch) = self.vertices.next().await? {
            let cpu = self.vertices.cpu.clone();
            (writer, out) = written(&cpu, writer, batch, out).await?;
            self.writer = Some(writer);
            return Ok(Some((Frame::data(out.into()), self)));
        }
        writer.finish(&mut out)?;
        Ok(Some((Frame::data(out.into()), self)))
    }
}

/// A body of frames.
struct Framed(BoxStream<'static, Result<Frame<Bytes>, Broken>>);

impl HttpBody for Framed {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        Poll::Ready(ready!(self.0.as_mut().poll_next(context)))
    }
}
