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
use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};
use http_body::Body as HttpBody;

use super::bands::draw_in_bands;
use super::headers::{ImageHeaders, put_stages};
use super::picture_tag::PictureTag;
use super::range::{RangeSource, usable};
use super::reduced::read_reduced;
use super::sample;
use super::scene::{Refused, Scene};
use crate::admission::AdmissionRequest;
use crate::api::data::categorical::{and_above, are_known};
use crate::api::data::error::ElementsError;
use crate::api::data::too_large::Broken;
use crate::array::{Array, ArrayError, Dependencies, Plan, ReadContext, Snapshot, Suggestions};
use crate::chunk::Subset;
use crate::error::ErrorClass;
use crate::http::body::NoBody;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::download;
use crate::http::problem::Problem;
use crate::http::timing::put_trace;
use crate::http::validators::put_validators;
use crate::render::RenderError;
use crate::render::raster::{Decoding, Picture, Plane, extremes, quantiles};
use crate::services::extract::NodeTarget;
use crate::services::response_cache::{CachedResponse, MAX_CACHED_RESPONSE_BYTES};
use crate::services::state::AppState;
use crate::store::{ValueInfo, Version};

/// Maximum number of attempts for a picture whose chunks change while it is drawn.
const TRIES: usize = 3;
/// Versions of sampled chunks that are requested at a time.
const CONCURRENCY: usize = 16;

/// The sample of one plane: its chunks at their versions, and the key of its range in the cache.
pub(super) struct Sample {
    plans: Vec<Plan>,
    key: String,
}

/// A picture that was drawn.
struct Drawn {
    file: Vec<u8>,
    ranges: Vec<(f64, f64)>,
    stages: [(&'static str, Duration); 4],
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
    check_file(state, entrant, scene.file_bytes())?;
    let mut permit =
        state.traffic.admission.acquire(entrant, scene.memory_bytes(state.engine.read.segment_size)).await?;
    let mut tries = 1;
    let (mut answer, again) = loop {
        match attempt(state, head, &scene).await {
            Err(ElementsError::Array(error)) if error.is_changed() && tries < TRIES => tries += 1,
            answered => {
                break answered.map_err(|error| {
                    problem(state, &scene.subject.array, &scene.layout.plane(None), error)
                })?;
            }
        }
    };
    let length = HttpBody::size_hint(answer.body()).upper().unwrap_or_default();
    put_common(&mut answer, target, extra);
    // From here on only the file is in memory.
    permit.resize(length)?;
    if let Some((made_of, version, body)) =
        again.filter(|_| scene.subject.nodes.len() == 1 && !scene.depends_on_neighbours)
        && let Some(node) = scene.subject.nodes.first()
        && node.dependent.is_none()
        && let Some(above) = scene.subject.above.as_deref().filter(|above| are_known(above))
        && state.responses.elements.fits(made_of.bytes() + body.len() as u64)
    {
        let path = scene.subject.array.path().clone();
        let made_of = Dependencies::new(target.opener.clone(), path, node, made_of);
        let made_of = and_above(made_of, above);
        CachedResponse::store(&state.responses.elements, head, made_of, version, answer.headers(), body)
            .await;
    }
    Ok(permit.hold(answer))
}

/// Refuses a picture whose file could be longer than what a request can hold, before anything is drawn.
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
) -> Result<(Response, Again), ElementsError> {
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
    let (mut answer, ranges, body) = match Conditions::from_headers(&head.headers).for_read(&version, None) {
        Verdict::Failed => {
            return Ok((Problem::from_class(ErrorClass::PreconditionFailed).into_response(), None));
        }
        Verdict::NotModified => (StatusCode::NOT_MODIFIED.into_response(), known, None),
        Verdict::Proceed if head.method == Method::HEAD => (png(Body::new(NoBody)), known, None),
        Verdict::Proceed => {
            let chunks = match &snapshots[..] {
                [only] if samples.iter().all(Option::is_none) => only.chunk_versions(),
                _ => None,
            };
            let drawn = draw(state, scene, snapshots, &samples, &context).await?;
            let body = Bytes::from(drawn.file);
            let mut answer = png(Body::from(body.clone()));
            answer.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
            put_trace(answer.headers_mut(), &context);
            put_stages(answer.headers_mut(), context.stats().plan, &drawn.stages);
            (answer, Some(drawn.ranges), chunks.map(|chunks| (chunks, body)))
        }
    };
    let again = body
        .filter(|(_, body)| body.len() <= MAX_CACHED_RESPONSE_BYTES)
        .map(|(chunks, body)| (chunks, version.clone(), body));
    put_validators(answer.headers_mut(), &ValueInfo { size: 0, version, modified: None });
    ImageHeaders { scene, ranges: ranges.as_deref() }.put(answer.headers_mut());
    Ok((answer, again))
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

/// The samples of the planes whose range comes from one. Their versions become part of the tag.
pub(super) async fn samples(
    state: &AppState,
    scene: &Scene,
    context: &Arc<ReadContext>,
    tag: &mut PictureTag,
) -> Result<Vec<Option<Sample>>, ElementsError> {
    let mut samples = Vec::with_capacity(scene.planes.len());
    for plane in &scene.planes {
        if plane.range != RangeSource::Sample {
            samples.push(None);
            continue;
        }
        let array = &scene.subject.sampled;
        let channel = scene.layout.channels.zip(plane.channel.or(Some(0)));
        let plans = sample::plans(array, channel, &state.engine.read)?;
        let snapshots: Vec<Snapshot> = stream::iter(plans.clone())
            .map(|plan| {
                let (reader, context) = (state.engine.reader.clone(), Arc::clone(context));
                async move { reader.lookup_versions(&plan, &context).await }
            })
            .buffered(CONCURRENCY)
            .try_collect()
            .await?;
        let mut own = PictureTag::default();
        own.add_text(
            format!("{} {} {:?} {:?}", array.mount(), array.path(), scene.decoding, channel).as_bytes(),
        );
        own.add_text(format!("{:?}", scene.conversion).as_bytes());
        // The documents say the fill value of chunks that are absent.
        for version in scene.subject.nodes.iter().flat_map(|node| node.located.versions()) {
            own.add(version);
        }
        for version in snapshots.iter().flat_map(Snapshot::versions) {
            own.add(version);
            tag.add(version);
        }
        samples.push(Some(Sample { plans, key: own.finish().tag().to_owned() }));
    }
    Ok(samples)
}

/// The ranges of all planes, if they are known without reading elements.
fn known_ranges(state: &AppState, scene: &Scene, samples: &[Option<Sample>]) -> Option<Vec<(f64, f64)>> {
    let known = |(plane, sample): (&super::scene::ScenePlane, &Option<Sample>)| match (&plane.range, sample) {
        (RangeSource::Known(low, high, _), _) => Some((*low, *high)),
        (RangeSource::Sample, Some(sample)) => {
            state.responses.ranges.get(&sample.key).map(|range| usable(range.0, range.1, scene.scale))
        }
        _ => None,
    };
    scene.planes.iter().zip(samples).map(known).collect()
}

/// The ranges of planes that do not depend on the elements of the picture.
///
/// # Errors
/// Those of reading the sample.
pub(crate) async fn ranges(state: &AppState, scene: &Scene) -> Result<Vec<(f64, f64)>, ElementsError> {
    let context = state.engine.reader.read_context(scene.subject.array.mount());
    let samples = samples(state, scene, &context, &mut PictureTag::default()).await?;
    let mut ranges = Vec::with_capacity(samples.len());
    for (plane, sample) in scene.planes.iter().zip(&samples) {
        let (low, high) = match (&plane.range, sample) {
            (RangeSource::Known(low, high, _), _) => (*low, *high),
            (_, Some(sample)) => sampled_range(state, scene, sample, &context).await?,
            _ => (0.0, 1.0),
        };
        ranges.push(usable(low, high, scene.scale));
    }
    Ok(ranges)
}

/// Reads and draws the planes.
async fn draw(
    state: &AppState,
    scene: &Arc<Scene>,
    snapshots: Vec<Snapshot>,
    samples: &[Option<Sample>],
    context: &Arc<ReadContext>,
) -> Result<Drawn, ElementsError> {
    let mut snapshots = snapshots;
    if scene.is_drawn_in_bands()
        && let (Some(plane), Some(snapshot)) = (scene.planes.first(), snapshots.pop())
    {
        let begun = Instant::now();
        let (low, high) = match (&plane.range, samples.first()) {
            (RangeSource::Known(low, high, _), _) => (*low, *high),
            (_, Some(Some(sample))) => sampled_range(state, scene, sample, context).await?,
            _ => (0.0, 1.0),
        };
        let ranges = vec![usable(low, high, scene.scale)];
        let style = scene.style(&ranges).ok_or(RenderError::ElementCount)?;
        let (picture, rendering) = draw_in_bands(state, scene, snapshot, style, context).await?;
        let reducing = context.stats().encode;
        let reading = begun.elapsed().saturating_sub(reducing).saturating_sub(rendering);
        let (file, encoding) = encoded(state, scene, picture).await?;
        let stages = [("read", reading), ("reduce", reducing), ("render", rendering), ("encode", encoding)];
        return Ok(Drawn { file, ranges, stages });
    }
    let begun = Instant::now();
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
    let reducing = context.stats().encode;
    let reading = begun.elapsed().saturating_sub(reducing);
    let begun = Instant::now();
    let style = scene.style(&ranges);
    let picture = state.engine.cpu.spawn_background(move || style?.draw(&planes));
    let picture = picture.await.map_err(ArrayError::from)?.ok_or(RenderError::ElementCount)?;
    let rendering = begun.elapsed();
    let (file, encoding) = encoded(state, scene, picture).await?;
    let stages = [("read", reading), ("reduce", reducing), ("render", rendering), ("encode", encoding)];
    Ok(Drawn { file, ranges, stages })
}

/// The file of a picture, and how long it took to write.
async fn encoded(
    state: &AppState,
    scene: &Scene,
    picture: Picture,
) -> Result<(Vec<u8>, Duration), ElementsError> {
    let (begun, square) = (Instant::now(), scene.square);
    let work = move || match square {
        Some(side) => picture.on_square(side).encode(),
        None => picture.encode(),
    };
    let file = state.engine.cpu.spawn_background(work).await.map_err(ArrayError::from)??;
    Ok((file, begun.elapsed()))
}

/// The range of a plane that is in memory.
async fn range_of_plane(
    state: &AppState,
    source: RangeSource,
    (plane, decoding): (Plane, Decoding),
) -> Result<(f64, f64), ElementsError> {
    let bytes = plane.width().saturating_mul(plane.height()) as u64;
    let range = state.engine.cpu.run_or_inline(bytes, move || {
        let mut numbers = plane.numbers(&decoding);
        match source {
            RangeSource::Percentiles(low, high) => quantiles(&mut numbers, low / 100.0, high / 100.0),
            _ => extremes(&numbers),
        }
    });
    Ok(range.await.map_err(ArrayError::from)?.unwrap_or((0.0, 1.0)))
}

/// The percentiles 1 to 99 of a sample, from the cache or read now; its extremes, if these are equal.
pub(super) async fn sampled_range(
    state: &AppState,
    scene: &Scene,
    sample: &Sample,
    context: &Arc<ReadContext>,
) -> Result<(f64, f64), ElementsError> {
    if let Some(range) = state.responses.ranges.get(&sample.key) {
        return Ok(*range);
    }
    let conversion = scene.conversion.as_ref();
    let mut numbers = sample::numbers(state, &sample.plans, conversion, &scene.decoding, context).await?;
    let range = state.engine.cpu.run_or_inline(numbers.len() as u64 * 8, move || {
        let inner = quantiles(&mut numbers, 0.01, 0.99).filter(|(low, high)| low < high);
        inner.or_else(|| extremes(&numbers)).unwrap_or((0.0, 1.0))
    });
    let range = range.await.map_err(ArrayError::from)?;
    state.responses.ranges.insert(&sample.key, range, 128);
    Ok(range)
}
