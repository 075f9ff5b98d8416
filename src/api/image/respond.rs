//! The response with a picture: versions → conditions → elements → ranges → pixels → file.
//!
//! A picture's entity tag is that of what it is made from: the versions of documents and chunks, of the chunks of the sample
//! if its range comes from there, the words of the request, and the version of the renderer. So a 304 and HEAD read no element.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures::stream::{self, StreamExt};

use super::headers::{ImageHeaders, put_stages};
use super::long::LongPicture;
use super::picture_tag::PictureTag;
use super::range::{RangeSource, usable};
use super::reduced::read_reduced;
use super::sampled::{Sample, known_ranges, range_of_plane, sampled_range, samples};
use super::scene::{Refused, Scene};
use crate::admission::AdmissionRequest;
use crate::api::data::categorical::{and_above, are_known};
use crate::api::data::error::ElementsError;
use crate::api::data::too_large::Broken;
use crate::array::{Array, ArrayError, Dependencies, ReadContext, Snapshot, Suggestions};
use crate::chunk::Subset;
use crate::error::ErrorClass;
use crate::http::body::NoBody;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::download;
use crate::http::problem::Problem;
use crate::http::timing::put_trace;
use crate::http::validators::put_validators;
use crate::render::RenderError;
use crate::services::extract::NodeTarget;
use crate::services::response_cache::{CachedResponse, MAX_SMALL_RESPONSE_BYTES, cache_key};
use crate::services::state::AppState;
use crate::store::{ValueInfo, Version};

/// Maximum number of attempts for a picture whose chunks change while it is drawn.
const TRIES: usize = 3;

/// A picture of which at least the beginning was drawn.
struct Drawn {
    /// The file, or its first pieces.
    file: Bytes,
    /// The rest of it, if it is not all.
    rest: Option<LongPicture>,
    ranges: Vec<(f64, f64)>,
    stages: [(&'static str, Duration); 4],
}

/// A response, and what is needed to charge and to cache it.
struct PictureResponse {
    answer: Response,
    /// Bytes in memory until the body is sent.
    held_bytes: u64,
    /// `None` if the response is not worth caching.
    again: Again,
}

/// The response with the picture of a scene.
///
/// # Errors
/// 412, 413, 503 and those of reading.
pub(crate) async fn respond(
    state: &AppState,
    target: &NodeTarget,
    head: &Parts,
    scene: Arc<Scene>,
    extra: HeaderMap,
) -> Result<Response, Problem> {
    let entrant = AdmissionRequest::to_elements(head);
    if !scene.is_long() {
        check_file(state, entrant, scene.file_bytes())?;
    }
    let mut permit = state.traffic.admission.acquire(entrant, scene.memory_bytes()).await?;
    let mut tries = 1;
    let PictureResponse { mut answer, held_bytes, again } = loop {
        match attempt(state, head, &scene).await {
            Err(ElementsError::Array(error)) if error.is_changed() && tries < TRIES => tries += 1,
            answered => {
                break answered.map_err(|error| {
                    problem(state, &scene.subject.array, &scene.layout.plane(None), error)
                })?;
            }
        }
    };
    if let ([plane], true) =
        (&scene.planes[..], head.method == Method::GET && answer.status() == StatusCode::OK)
    {
        let parts = (&*state.engine, &state.traffic.admission);
        state.scans.observe(parts, target.mount.store.capabilities().near, &plane.plan, entrant);
    }
    put_common(&mut answer, target, extra);
    if let Some(positions) = &scene.subject.positions {
        positions.put_headers(answer.headers_mut());
    }
    // What was only read is no longer in memory.
    permit.resize(held_bytes)?;
    if let Some((made_of, version, body)) =
        again.filter(|_| scene.subject.nodes.len() == 1 && !scene.depends_on_neighbours)
        && let Some(node) = scene.subject.nodes.first()
        && node.dependent.is_none()
        && scene.subject.positions.is_none()
        && let Some(above) = scene.subject.above.as_deref().filter(|above| are_known(above))
        && let Some(key) = cache_key(head)
        && state.responses.fits(body.len() as u64, made_of.bytes())
    {
        let path = scene.subject.array.path().clone();
        let made_of = Dependencies::new(target.opener.clone(), path, node, made_of);
        let made_of = and_above(made_of, above);
        let cached = CachedResponse::new(made_of, version, answer.headers(), vec![body]);
        state.responses.insert(&key, cached).await;
    }
    Ok(permit.hold(answer))
}

/// Refuses a picture whose file is in memory as a whole and could be longer than what a request can hold, before anything is
/// drawn.
pub(super) fn check_file(state: &AppState, entrant: AdmissionRequest, bytes: u64) -> Result<(), Problem> {
    let limit = state.traffic.admission.most_bytes(entrant);
    if bytes <= limit {
        return Ok(());
    }
    let detail = format!(
        "the file of the picture can have {bytes} bytes; a request can hold {limit} (`http.inflight_size`): request a \
         smaller `size`"
    );
    let problem = Problem::from_class(ErrorClass::TooLarge).detail(detail);
    Err(problem.extension("limited", "bytes of the file").extension("asked", bytes).extension("limit", limit))
}

/// Sets the headers that every response with a picture has.
pub(super) fn put_common(answer: &mut Response, target: &NodeTarget, extra: HeaderMap) {
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, target.mount.cache_control.of_decoded());
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    headers.extend(extra);
    if answer.status().is_success() {
        let name = download::name_of(&target.mount.name, &target.path, &target.path);
        download::put(answer.headers_mut(), &name, "png");
    }
}

/// The problem for an error; for an exceeded limit with slices within it.
pub(crate) fn problem(state: &AppState, array: &Array, subset: &Subset, error: ElementsError) -> Problem {
    match Broken::of(&state.engine.read, state.options.max_buffered_response_size, &error) {
        None => error.into(),
        Some(broken) => {
            let suggestions = Suggestions::new(array, subset, &state.engine.read, |_| true);
            broken.problem(error, suggestions)
        }
    }
}

/// The problem of a scene that cannot be planned.
pub(crate) fn refused(state: &AppState, refused: Refused) -> Problem {
    match refused {
        Refused::Problem(problem) => problem,
        Refused::Cost(cost) => {
            let (error, array, subset) = *cost;
            problem(state, &array, &subset, error.into())
        }
    }
}

type Again = Option<(crate::array::ChunkVersions, Version, Bytes)>;

async fn attempt(
    state: &AppState,
    head: &Parts,
    scene: &Arc<Scene>,
) -> Result<PictureResponse, ElementsError> {
    let started = Instant::now();
    let context = state.engine.reader.read_context(scene.subject.array.mount());
    let reads_at_once =
        head.method == Method::GET && !is_conditional(&head.headers) && scene.planes.len() == 1;
    let mut snapshots = Vec::with_capacity(scene.planes.len());
    for plane in &scene.planes {
        snapshots.push(if reads_at_once {
            state.engine.reader.snapshot(&plane.plan, &context).await?
        } else {
            state.engine.reader.lookup_versions(&plane.plan, &context).await?
        });
    }
    let mut tag = PictureTag::default();
    tag.add_scene(scene);
    for version in snapshots.iter().flat_map(Snapshot::versions) {
        tag.add(version);
    }
    let samples = samples(state, scene, &context, &mut tag).await?;
    let version = tag.finish();
    context.set_plan_time(started.elapsed());
    let known = known_ranges(state, scene, &samples);
    let mut held_bytes = 0;
    let (mut answer, ranges, whole) = match Conditions::from_headers(&head.headers).for_read(&version, None) {
        Verdict::Failed => {
            let answer = Problem::from_class(ErrorClass::PreconditionFailed).into_response();
            return Ok(PictureResponse { answer, held_bytes, again: None });
        }
        Verdict::NotModified => (StatusCode::NOT_MODIFIED.into_response(), known, None),
        Verdict::Proceed if head.method == Method::HEAD => (png(Body::new(NoBody)), known, None),
        Verdict::Proceed => {
            let chunks = match &snapshots[..] {
                [only] if samples.iter().all(Option::is_none) => only.chunk_versions(),
                _ => None,
            };
            let Drawn { file, rest, ranges, stages } =
                draw(state, scene, snapshots, &samples, &context).await?;
            held_bytes = file.len() as u64;
            let mut whole = None;
            let mut answer = match rest {
                None => {
                    whole = chunks.map(|chunks| (chunks, file.clone()));
                    let mut answer = png(Body::from(file.clone()));
                    answer.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(file.len()));
                    answer
                }
                Some(rest) => {
                    held_bytes = if rest.is_drawn() { scene.sending_bytes() } else { scene.begun_bytes() };
                    let first = stream::once(std::future::ready(Ok(file)));
                    png(Body::from_stream(first.chain(rest.into_stream())))
                }
            };
            put_trace(answer.headers_mut(), &context);
            put_stages(answer.headers_mut(), context.stats().plan, &stages);
            (answer, Some(ranges), whole)
        }
    };
    let again = whole
        .filter(|(_, file)| file.len() as u64 <= MAX_SMALL_RESPONSE_BYTES)
        .map(|(chunks, file)| (chunks, version.clone(), file));
    put_validators(answer.headers_mut(), &ValueInfo { size: 0, version, modified: None });
    ImageHeaders { scene, ranges: ranges.as_deref() }.put(answer.headers_mut());
    Ok(PictureResponse { answer, held_bytes, again })
}

/// An empty or whole PNG response.
pub(super) fn png(body: Body) -> Response {
    let mut answer = Response::new(body);
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("image/png"));
    answer
}

/// Whether a response may need no elements.
fn is_conditional(headers: &HeaderMap) -> bool {
    let names =
        [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::IF_UNMODIFIED_SINCE];
    names.iter().any(|name| headers.contains_key(name))
}

/// Reads and draws the planes: all of a short picture, and the beginning of a long one.
async fn draw(
    state: &AppState,
    scene: &Arc<Scene>,
    mut snapshots: Vec<Snapshot>,
    samples: &[Option<Sample>],
    context: &Arc<ReadContext>,
) -> Result<Drawn, ElementsError> {
    let begun = Instant::now();
    if scene.is_long()
        && scene.is_drawn_in_bands()
        && let (Some(plane), Some(snapshot)) = (scene.planes.first(), snapshots.pop())
    {
        let (low, high) = match (&plane.range, samples.first()) {
            (RangeSource::Known(low, high, _), _) => (*low, *high),
            (_, Some(Some(sample))) => sampled_range(state, scene, sample, context).await?,
            _ => (0.0, 1.0),
        };
        let ranges = vec![usable(low, high, scene.scale)];
        let picture = LongPicture::of_bands(state, scene, snapshot, &ranges, context)?;
        return begin(picture, ranges, begun, context).await;
    }
    let mut planes = Vec::with_capacity(snapshots.len());
    for snapshot in snapshots {
        let plane = read_reduced(state, scene, snapshot, context).await?;
        planes.push((plane, scene.decoding.clone()));
    }
    let mut ranges = Vec::with_capacity(planes.len());
    for ((plane, sample), drawn) in scene.planes.iter().zip(samples).zip(&planes) {
        let (low, high) = match (&plane.range, sample) {
            (RangeSource::Known(low, high, _), _) => (*low, *high),
            (RangeSource::Sample, Some(sample)) => sampled_range(state, scene, sample, context).await?,
            (source, _) => range_of_plane(state, source.clone(), drawn.clone()).await?,
        };
        ranges.push(usable(low, high, scene.scale));
    }
    if scene.is_long() {
        let picture = LongPicture::of_planes(state, scene, planes, &ranges)?;
        return begin(picture, ranges, begun, context).await;
    }
    let reducing = context.stats().encode;
    let reading = begun.elapsed().saturating_sub(reducing);
    let style = scene.style(&ranges).ok_or(RenderError::ElementCount)?;
    let square = scene.square;
    // One piece of work: a hop to another thread takes as long as drawing a tile.
    let work = move || {
        let begun = Instant::now();
        let picture = style.draw(&planes).ok_or(RenderError::ElementCount)?;
        let rendering = begun.elapsed();
        let file = match square {
            Some(side) => picture.on_square(side).encode()?,
            None => picture.encode()?,
        };
        Ok::<_, RenderError>((file, rendering, begun.elapsed().saturating_sub(rendering)))
    };
    let drawn = state.engine.cpu.spawn_background(work).await.map_err(ArrayError::from)?;
    let (file, rendering, encoding) = drawn?;
    let stages = [("read", reading), ("reduce", reducing), ("render", rendering), ("encode", encoding)];
    Ok(Drawn { file: file.into(), rest: None, ranges, stages })
}

/// Draws the beginning of a long picture: all of it, if the file is short.
async fn begin(
    mut picture: LongPicture,
    ranges: Vec<(f64, f64)>,
    begun: Instant,
    context: &ReadContext,
) -> Result<Drawn, ElementsError> {
    let mut file = BytesMut::new();
    let mut is_whole = false;
    while file.len() as u64 <= MAX_SMALL_RESPONSE_BYTES && !is_whole {
        match picture.next().await? {
            Some(piece) => file.extend_from_slice(&piece),
            None => is_whole = true,
        }
    }
    let (reducing, drawing) = (context.stats().encode, picture.drawing_time());
    let reading = begun.elapsed().saturating_sub(reducing).saturating_sub(drawing);
    let stages = [("read", reading), ("reduce", reducing), ("render", drawing), ("encode", Duration::ZERO)];
    Ok(Drawn { file: file.freeze(), rest: (!is_whole).then_some(picture), ranges, stages })
}
