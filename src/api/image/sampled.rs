//! [`Sample`]: the samples that ranges come from, and the ranges of planes.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};

use super::picture_tag::PictureTag;
use super::range::{RangeSource, usable};
use super::sample;
use super::scene::{Scene, ScenePlane};
use crate::api::data::error::ElementsError;
use crate::array::{ArrayError, Plan, ReadContext, Snapshot};
use crate::render::raster::{Decoding, Plane, extremes, quantiles};
use crate::services::state::AppState;

/// Versions of sampled chunks that are requested at a time.
const CONCURRENCY: usize = 16;

/// The sample of one plane: its chunks at their versions, and the key of its range in the cache.
pub(super) struct Sample {
    plans: Vec<Plan>,
    key: String,
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
pub(super) fn known_ranges(
    state: &AppState,
    scene: &Scene,
    samples: &[Option<Sample>],
) -> Option<Vec<(f64, f64)>> {
    let known = |(plane, sample): (&ScenePlane, &Option<Sample>)| match (&plane.range, sample) {
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

/// The range of a plane that is in memory.
pub(super) async fn range_of_plane(
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
