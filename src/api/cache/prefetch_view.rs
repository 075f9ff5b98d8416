//! Prefetch of a view: makes the chunks of `/rechunk` or `/pyramid` below a prefix before clients request them.
//!
//! The chunks are read through the view, so they enter the caches that a request would fill, the one on the disk too. Chunks that are
//! built in the background are waited for, one at a time.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{StreamExt, TryStreamExt};
use tokio::time::{sleep, timeout_at};

use super::prefetch::{PrefetchReport, PrefetchRequest};
use crate::admission::{Admission, AdmissionRequest};
use crate::error::{Classify, ErrorClass};
use crate::http::problem::Problem;
use crate::key::StoreKey;
use crate::services::engine::ArrayEngine;
use crate::services::extract::NodeTarget;
use crate::services::mounts::Mounts;
use crate::store::{ByteRange, SharedStore, StoreError};
use crate::views::pyramid::PyramidSpec;
use crate::views::rechunk::RechunkSpec;

/// Chunks that are made concurrently.
const CONCURRENCY: usize = 4;
/// Time between two requests for a chunk that is being built.
const BUILD_INTERVAL: Duration = Duration::from_millis(20);

/// The view of a mount that `view=` names: the first segment of its URLs and the recipe.
///
/// # Errors
/// 400 with the valid forms.
pub(crate) fn view_of(mounts: &Mounts, mount: &str, view: &str) -> Result<SharedStore, Problem> {
    let mut segments: Vec<&str> = view.split('/').collect();
    let is_data_type = |segment: &mut &str| RechunkSpec::is_data_type(segment);
    let data_type = segments.pop_if(is_data_type);
    match *segments {
        ["rechunk", chunks, codec] => {
            let spec = RechunkSpec::parse(chunks, codec, data_type).map_err(Problem::from)?;
            let rechunker = mounts.rechunker(mount).ok_or_else(not_found)?;
            Ok(Arc::new(rechunker.store(spec)))
        }
        ["pyramid", method, chunks, codec] => {
            let spec = PyramidSpec::parse(method, chunks, codec, data_type).map_err(Problem::from)?;
            let pyramids = mounts.pyramids(mount).ok_or_else(not_found)?;
            Ok(Arc::new(pyramids.store(spec)))
        }
        _ => Err(Problem::from_class(ErrorClass::InvalidRequest).detail(
            "`view` is `rechunk/{chunks}/{codec}` or `pyramid/{method}/{chunks}/{codec}`, as in the URLs of the view",
        )),
    }
}

fn not_found() -> Problem {
    Problem::from_class(ErrorClass::NotFound)
}

/// Makes all values of a view below a prefix.
///
/// # Errors
/// 503 if the server is overloaded.
pub(crate) async fn prefetch_view(
    admission: &Admission,
    engine: &Arc<ArrayEngine>,
    target: &NodeTarget,
    view: &SharedStore,
    entrant: AdmissionRequest,
    wanted: &PrefetchRequest,
) -> Result<PrefetchReport, Problem> {
    let _permit = admission.acquire(entrant, engine.read.segment_size).await?;
    // One read is enough: what is prefetched is requested later.
    let _admitted = engine.caches.admit_all(&target.mount.cache_name, target.path.prefix());
    let mut report = PrefetchReport { complete: true, ..PrefetchReport::default() };
    let keys = view.list_prefix(target.path.prefix(), None).map(|entry| {
        let view = Arc::clone(view);
        async move { load(&view, &entry?.key).await }
    });
    let mut loads = keys.buffer_unordered(CONCURRENCY);
    let run = async {
        while let Some(loaded) = loads.next().await {
            match loaded {
                Ok(Loaded::Document) => report.nodes += 1,
                Ok(Loaded::Chunk(bytes)) => {
                    report.chunks += 1;
                    report.decoded_bytes = report.decoded_bytes.saturating_add(bytes);
                }
                Err(_) => report.failed += 1,
            }
            if report.decoded_bytes >= wanted.bytes {
                return false;
            }
        }
        true
    };
    let is_whole = timeout_at(wanted.until, run).await.unwrap_or(false);
    drop(loads);
    report.complete = is_whole && report.failed == 0;
    Ok(report)
}

/// What was read.
enum Loaded {
    /// A metadata document.
    Document,
    /// A chunk of this many bytes, as the view encodes it.
    Chunk(u64),
}

/// Reads a value of a view to its end.
async fn load(view: &SharedStore, key: &StoreKey) -> Result<Loaded, StoreError> {
    let value = loop {
        match view.get(key, ByteRange::Whole, None).await {
            Err(error) if matches!(error.class(), ErrorClass::BeingBuilt | ErrorClass::Overloaded) => {
                sleep(BUILD_INTERVAL).await;
            }
            found => break found?,
        }
    };
    let Some(value) = value else { return Ok(Loaded::Chunk(0)) };
    let bytes = value.len();
    let mut parts = value.into_exact_stream();
    while parts.try_next().await?.is_some() {}
    let is_document = matches!(key.name(), "zarr.json" | ".zarray" | ".zgroup" | ".zattrs" | ".zmetadata");
    Ok(if is_document { Loaded::Document } else { Loaded::Chunk(bytes) })
}
