//! [`Montage`]: the picture of a plate or a well, made of the pictures of its images.
//!
//! All images are drawn with the range of the first, unless their metadata gives each its own, and within a share of the
//! limits of one picture. For a 304 and for HEAD, only their versions are requested.

use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::grid::ImageGrid;
use super::headers::ImageHeaders;
use super::picture_tag::PictureTag;
use super::planned::planned as planned_image;
use super::query::ImageQuery;
use super::range::{RangeSource, usable};
use super::reduced::read_reduced;
use super::respond::{self, png, put_common};
use super::sampled::{sampled_range, samples};
use super::scene::{PictureFrame, Scene};
use super::words::RowOrigin;
use crate::admission::AdmissionRequest;
use crate::api::data::error::ElementsError;
use crate::array::{ArrayError, ReadContext, ReadLimits, Snapshot};
use crate::error::ErrorClass;
use crate::http::body::NoBody;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::problem::Problem;
use crate::http::timing::put_trace;
use crate::http::validators::put_validators;
use crate::render::RenderError;
use crate::render::raster::{Decoding, Picture, Plane, extremes, most_file_bytes, quantiles};
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::store::ValueInfo;

/// Images that are read at a time.
const READS: usize = 4;
/// Images of which versions are requested at a time.
const LOOKUPS: usize = 16;
/// Maximum number of attempts for a picture whose chunks change while it is drawn.
const TRIES: usize = 3;
/// Bytes of memory for each pixel of the whole picture: its colours, those of its parts, and the file.
const BYTES_PER_PIXEL: u64 = 24;
/// Bytes of a pixel in the file: its colour and its opacity.
const PIXEL_BYTES: u64 = 4;

/// The picture of several images, before any element is read.
pub(super) struct Montage {
    rows: u64,
    columns: u64,
    /// The images with their rows and columns; at least one.
    images: Vec<(u64, u64, Arc<Scene>)>,
}

/// The planes of an image, with the numbers that their elements stand for.
type Planes = Vec<(Plane, Decoding)>;

/// Plans the picture of a grid of images.
///
/// # Errors
/// 400, 413 and 422 if one of the images cannot be drawn as the request has it.
pub(super) async fn planned(
    state: &AppState,
    head: &Parts,
    target: &NodeTarget,
    query: &ImageQuery,
    grid: ImageGrid,
) -> Result<Montage, Problem> {
    let count = grid.images.len() as u64;
    let limits = share(&state.engine.read, count);
    let frame = PictureFrame::of(query, state.options.image.max_pixels).part(grid.columns, grid.rows);
    let mut images = Vec::with_capacity(grid.images.len());
    for (row, column, subject) in grid.images {
        let subject = subject.with_labels(state, head, target, query).await?;
        let whole = subject.layout(query)?;
        let (mut scene, _) = planned_image(state, target, query, subject, whole, frame, &limits).await?;
        scene.flips_rows = query.plane.origin == Some(RowOrigin::Lower);
        images.push((row, column, Arc::new(scene)));
    }
    let montage = Montage { rows: grid.rows, columns: grid.columns, images };
    // Each image is within its share, but every place is as wide as the widest and as high as the highest one.
    let (pixels, most) = (montage.pixels(), state.options.image.max_pixels);
    if pixels > most {
        return Err(Problem::from_class(ErrorClass::TooLarge).detail(format!(
            "the picture of all images has {pixels} pixels; the limit is {most} (`image.max_pixels`): request a `size`"
        )));
    }
    Ok(montage)
}

/// The part of the limits of one picture that each of its images may use.
fn share(limits: &ReadLimits, count: u64) -> ReadLimits {
    ReadLimits {
        max_decoded_size: limits.max_decoded_size / count.max(1),
        max_chunks: (limits.max_chunks / count.max(1)).max(1),
        ..*limits
    }
}

/// The response with the picture.
///
/// # Errors
/// 412, 413, 503 and those of reading.
pub(super) async fn respond(
    state: &AppState,
    target: &NodeTarget,
    head: &Parts,
    montage: Montage,
    extra: HeaderMap,
) -> Result<Response, Problem> {
    let entrant = AdmissionRequest::to_elements(head);
    respond::check_file(state, entrant, montage.file_bytes())?;
    let mut permit = state.traffic.admission.acquire(entrant, montage.memory_bytes()).await?;
    let mut tries = 1;
    let (mut answer, length) = loop {
        match montage.attempt(state, head).await {
            Err(ElementsError::Array(error)) if error.is_changed() && tries < TRIES => tries += 1,
            Ok(answered) => break answered,
            Err(error) => {
                let first = montage.first();
                let (array, subset) = (&first.subject.array, first.layout.plane(None));
                return Err(respond::problem(state, array, &subset, error));
            }
        }
    };
    put_common(&mut answer, target, extra);
    // From here on only the file is in memory.
    permit.resize(length)?;
    Ok(permit.hold(answer))
}

impl Montage {
    fn first(&self) -> &Scene {
        // There is one: `planned` refuses a grid without.
        &self.images[0].2
    }

    fn scenes(&self) -> impl Iterator<Item = &Arc<Scene>> {
        self.images.iter().map(|(_, _, scene)| scene)
    }

    /// The memory in bytes that the picture takes: the largest of its images that are read at a time, all planes, and the
    /// pixels with the file.
    fn memory_bytes(&self) -> u64 {
        let largest = self.scenes().map(|scene| scene.memory_bytes()).max().unwrap_or_default();
        let planes = self.scenes().map(|scene| {
            let (width, height) = scene.size();
            let item = scene.decoding.data_type().element_bytes() as u64;
            // Numbers of a range over all images are float64.
            width.saturating_mul(height).saturating_mul((item + 8) * scene.planes.len() as u64)
        });
        let planes = planes.fold(0, u64::saturating_add);
        let read = largest.saturating_mul(READS as u64);
        read.saturating_add(planes).saturating_add(self.pixels().saturating_mul(BYTES_PER_PIXEL))
    }

    /// The pixels of the whole picture.
    fn pixels(&self) -> u64 {
        let (width, height) = self.size();
        width.saturating_mul(height)
    }

    /// The bytes of the file, at most.
    fn file_bytes(&self) -> u64 {
        let (width, height) = self.size();
        most_file_bytes(width, height, PIXEL_BYTES)
    }

    /// Columns and rows of the whole picture.
    fn size(&self) -> (u64, u64) {
        let side = |of: fn((u64, u64)) -> u64| self.scenes().map(|scene| of(scene.size())).max().unwrap_or(0);
        // A pixel apart.
        let whole = |side: u64, count: u64| side.saturating_add(1).saturating_mul(count).saturating_sub(1);
        let (width, height) = (side(|(width, _)| width), side(|(_, height)| height));
        (whole(width, self.columns), whole(height, self.rows))
    }

    /// The response, and the bytes of its body.
    async fn attempt(&self, state: &AppState, head: &Parts) -> Result<(Response, u64), ElementsError> {
        let first = self.first();
        let context = state.engine.reader.read_context(first.subject.array.mount());
        let snapshots: Vec<Vec<Snapshot>> = stream::iter(self.images.clone())
            .map(|(_, _, scene)| lookup(state, scene, Arc::clone(&context)))
            .buffered(LOOKUPS)
            .try_collect()
            .await?;
        let mut tag = PictureTag::default();
        tag.add_text(format!("{} {}", self.rows, self.columns).as_bytes());
        for ((row, column, scene), snapshots) in self.images.iter().zip(&snapshots) {
            tag.add_text(format!("{row} {column}").as_bytes());
            tag.add_scene(scene);
            for version in snapshots.iter().flat_map(Snapshot::versions) {
                tag.add(version);
            }
        }
        let samples = samples(state, first, &context, &mut tag).await?;
        let version = tag.finish();
        let (mut answer, ranges, length) =
            match Conditions::from_headers(&head.headers).for_read(&version, None) {
                Verdict::Failed => {
                    return Ok((Problem::from_class(ErrorClass::PreconditionFailed).into_response(), 0));
                }
                Verdict::NotModified => (StatusCode::NOT_MODIFIED.into_response(), None, 0),
                Verdict::Proceed if head.method == Method::HEAD => (png(Body::new(NoBody)), None, 0),
                Verdict::Proceed => {
                    let planes = self.read(state, snapshots, &context).await?;
                    let mut sampled = Vec::with_capacity(samples.len());
                    for sample in &samples {
                        sampled.push(match sample {
                            Some(sample) => Some(sampled_range(state, first, sample, &context).await?),
                            None => None,
                        });
                    }
                    let (file, ranges) = self.draw(state, planes, sampled).await?;
                    let length = file.len();
                    let mut answer = png(Body::from(file));
                    answer.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
                    put_trace(answer.headers_mut(), &context);
                    (answer, Some(ranges), length as u64)
                }
            };
        put_validators(answer.headers_mut(), &ValueInfo { size: 0, version, modified: None });
        ImageHeaders { scene: first, ranges: ranges.as_deref() }.put(answer.headers_mut());
        Ok((answer, length))
    }

    /// The planes of each image.
    async fn read(
        &self,
        state: &AppState,
        snapshots: Vec<Vec<Snapshot>>,
        context: &Arc<ReadContext>,
    ) -> Result<Vec<Planes>, ArrayError> {
        let images: Vec<(Arc<Scene>, Vec<Snapshot>)> = self.scenes().cloned().zip(snapshots).collect();
        stream::iter(images)
            .map(|(scene, snapshots)| async move {
                let mut planes = Vec::with_capacity(snapshots.len());
                for snapshot in snapshots {
                    planes.push((
                        read_reduced(state, &scene, snapshot, context).await?,
                        scene.decoding.clone(),
                    ));
                }
                Ok(planes)
            })
            .buffered(READS)
            .try_collect()
            .await
    }

    /// The PNG file, and the ranges of the first image.
    async fn draw(
        &self,
        state: &AppState,
        planes: Vec<Planes>,
        sampled: Vec<Option<(f64, f64)>>,
    ) -> Result<(Vec<u8>, Vec<(f64, f64)>), ElementsError> {
        let (rows, columns) = (self.rows, self.columns);
        let images = self.images.clone();
        let work = move || {
            let scene = Arc::clone(&images.first()?.2);
            let shared: Vec<(f64, f64)> = (0..scene.planes.len())
                .map(|at| {
                    shared_range(&scene.planes[at].range, sampled.get(at).copied().flatten(), &planes, at)
                })
                .collect();
            let mut pictures = Vec::with_capacity(images.len());
            for ((row, column, scene), planes) in images.iter().zip(&planes) {
                let range = |(at, plane): (usize, &super::scene::ScenePlane)| match plane.range {
                    RangeSource::Known(low, high, _) => usable(low, high, scene.scale),
                    _ => shared.get(at).map_or((0.0, 1.0), |&(low, high)| usable(low, high, scene.scale)),
                };
                let ranges: Vec<(f64, f64)> = scene.planes.iter().enumerate().map(range).collect();
                let picture = scene.style(&ranges)?.draw(planes)?;
                pictures.push((usize::try_from(*row).ok()?, usize::try_from(*column).ok()?, picture));
            }
            let size = (usize::try_from(rows).ok()?, usize::try_from(columns).ok()?);
            let ranges = shared.iter().map(|&(low, high)| usable(low, high, scene.scale)).collect();
            let file = Picture::grid(&pictures, size.0, size.1)?.encode();
            Some(file.map(|file| (file, ranges)))
        };
        let drawn = state.engine.cpu.spawn_background(work).await.map_err(ArrayError::from)?;
        Ok(drawn.ok_or(RenderError::ElementCount)??)
    }
}

/// The versions of what an image is drawn from.
async fn lookup(
    state: &AppState,
    scene: Arc<Scene>,
    context: Arc<ReadContext>,
) -> Result<Vec<Snapshot>, ArrayError> {
    let mut snapshots = Vec::with_capacity(scene.planes.len());
    for plane in &scene.planes {
        snapshots.push(state.engine.reader.lookup_versions(&plane.plan, &context).await?);
    }
    Ok(snapshots)
}

/// The range of the planes at this place in all images.
fn shared_range(
    source: &RangeSource,
    sampled: Option<(f64, f64)>,
    planes: &[Planes],
    at: usize,
) -> (f64, f64) {
    if let RangeSource::Known(low, high, _) = source {
        return (*low, *high);
    }
    if let Some(range) = sampled {
        return range;
    }
    let of_image = |planes: &Planes| planes.get(at).map(|(plane, decoding)| plane.numbers(decoding));
    let mut numbers: Vec<f64> = planes.iter().filter_map(of_image).flatten().collect();
    let found = match source {
        RangeSource::Percentiles(low, high) => quantiles(&mut numbers, low / 100.0, high / 100.0),
        _ => extremes(&numbers),
    };
    found.unwrap_or((0.0, 1.0))
}
