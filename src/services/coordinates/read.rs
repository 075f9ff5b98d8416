//! [`ReadCoordinate`]: the labels of a dimension in memory, cached by the versions of what they were read from.

use std::sync::Arc;

use axum::http::request::Parts;
use futures::TryStreamExt;
use sha2::{Digest, Sha256};

use crate::admission::AdmissionRequest;
use crate::admission::text_memory::TextMemory;
use crate::array::{Array, ArrayError, ChunkVersions, OpenNode, Plan, ReadLimits, Snapshot};
use crate::chunk::{Elements, Subset};
use crate::http::problem::Problem;
use crate::labels::{DimensionLabels, LabelError};
use crate::services::state::AppState;
use crate::store::Version;
use crate::units::hexadecimal::digest_tag;

/// The most labels of a coordinate.
const MAX_LABELS: u64 = 4 << 20;
/// The most bytes of texts of a coordinate.
const MAX_TEXT_BYTES: u64 = 32 << 20;
/// Bytes of memory that a label takes while the coordinate is read, beside its element: a number and the time that it is, or a text of
/// its own.
const LABEL_BYTES: u64 = 48;
/// Maximum number of attempts for a coordinate whose chunks change while it is read.
const TRIES: usize = 3;

/// The labels of a dimension, and what they were read from.
#[derive(Debug)]
pub(crate) struct ReadCoordinate {
    pub(crate) coordinate: Arc<DimensionLabels>,
    /// The key of the labels in the cache.
    pub(super) key: String,
    /// The versions of the documents and chunks.
    pub(crate) versions: Vec<Option<Version>>,
    /// The chunks, if all of them exist.
    pub(super) chunks: Option<ChunkVersions>,
}

impl ReadCoordinate {
    /// The labels in an array of one dimension. Once they are cached, only versions are requested.
    ///
    /// # Errors
    /// [`LabelError`] if the array has too many elements or no labels; 503 without memory to read it; failures of reading.
    pub(crate) async fn of_array(
        state: &AppState,
        head: &Parts,
        dimension: &str,
        node: &OpenNode,
        array: &Arc<Array>,
    ) -> Result<Self, Problem> {
        let length = array.metadata().shape.iter().product();
        if length > MAX_LABELS {
            let dimension = dimension.to_owned();
            return Err(LabelError::TooLong { dimension, length, limit: MAX_LABELS }.into());
        }
        // In one segment: the limit of texts is for all of them.
        let limits = ReadLimits { segment_size: u64::MAX, ..state.engine.read };
        let whole = Plan::new(array, Subset::full(&array.metadata().shape), &limits)?;
        let whole = whole.with_heap_limit(MAX_TEXT_BYTES);
        let context = state.engine.reader.read_context(array.mount());
        let mut memory: Option<TextMemory<'_>> = None;
        let (mut plan, mut tries) = (whole.clone(), 1);
        loop {
            let snapshot = state.engine.reader.lookup_versions(&plan, &context).await?;
            let versions: Vec<Option<Version>> =
                node.located.versions().chain(snapshot.versions()).map(Option::<&Version>::cloned).collect();
            let chunks = snapshot.chunk_versions();
            let key = key(dimension, array, &versions);
            if let Some(coordinate) = state.responses.coordinates.get(&key) {
                return Ok(Self { coordinate: Arc::clone(&coordinate), key, versions, chunks });
            }
            // Released before the request asks for more: what stays in memory is the cache's.
            let mut held = match memory.take() {
                Some(held) => held,
                None => acquire(state, head, &whole).await?,
            };
            // With little memory, the texts have to be short.
            if held.limit() < plan.heap_limit() {
                plan = whole.clone().with_heap_limit(held.limit());
                memory = Some(held);
                continue;
            }
            match read(state, dimension, array, snapshot).await {
                Err(error) if error.is_changed() && tries < TRIES => tries += 1,
                Err(error) if held.can_extend(error.exceeded_limit()) => {
                    held.extend().await?;
                    plan = whole.clone();
                }
                Err(error) => return Err(error.into_problem()),
                Ok(coordinate) => {
                    let coordinate = Arc::new(coordinate);
                    let bytes = coordinate.memory_bytes();
                    if state.responses.coordinates.fits(bytes) {
                        state.responses.coordinates.insert(&key, Arc::clone(&coordinate), bytes);
                    }
                    return Ok(Self { coordinate, key, versions, chunks });
                }
            }
            memory = Some(held);
        }
    }
}

/// Waits for memory to read all labels of an array, for few texts where that for the most is not free.
async fn acquire<'a>(state: &'a AppState, head: &Parts, whole: &Plan) -> Result<TextMemory<'a>, Problem> {
    let (admission, entrant) = (&state.traffic.admission, AdmissionRequest::to_elements(head));
    // The request may hold memory already: it would wait for itself.
    let largest = admission.most_bytes(entrant) / 2;
    let bytes = |limit| memory_bytes(whole, limit).min(largest);
    TextMemory::acquire(admission, entrant, whole.heap_limit(), bytes).await
}

/// The memory in bytes that it takes to read all labels of an array, with up to `limit` bytes of texts.
fn memory_bytes(whole: &Plan, limit: u64) -> u64 {
    let (metadata, bytes) = (whole.array().metadata(), whole.response_bytes());
    let labels = metadata.shape.iter().product::<u64>().saturating_mul(LABEL_BYTES);
    let texts = if metadata.data_type.is_variable() { limit.saturating_mul(2) } else { 0 };
    [labels, texts, bytes].into_iter().fold(bytes, u64::saturating_add)
}

/// Why a coordinate was not read.
enum Unread {
    Refused(Problem),
    Failed(ArrayError),
}

impl Unread {
    fn is_changed(&self) -> bool {
        matches!(self, Self::Failed(error) if error.is_changed())
    }

    /// The limit that the texts exceed.
    fn exceeded_limit(&self) -> Option<u64> {
        match self {
            Self::Refused(_) => None,
            Self::Failed(error) => error.exceeded_limit(),
        }
    }

    fn into_problem(self) -> Problem {
        match self {
            Self::Refused(problem) => problem,
            Self::Failed(error) => error.into(),
        }
    }
}

/// Reads the labels of a snapshot of all elements.
async fn read(
    state: &AppState,
    dimension: &str,
    array: &Arc<Array>,
    snapshot: Snapshot,
) -> Result<DimensionLabels, Unread> {
    let context = state.engine.reader.read_context(array.mount());
    let bytes = snapshot.plan().response_bytes();
    let held = memory_bytes(snapshot.plan(), snapshot.plan().heap_limit());
    let parts = state.engine.reader.elements(snapshot, 0..bytes, &context);
    let parts: Vec<Elements> = parts.try_collect().await.map_err(Unread::Failed)?;
    let (dimension, array) = (dimension.to_owned(), Arc::clone(array));
    let work = move || DimensionLabels::new(&dimension, array.metadata(), &parts);
    let coordinate = state.engine.cpu.run_document(held, work).await;
    let coordinate = coordinate.map_err(|error| Unread::Failed(error.into()))?;
    coordinate.map_err(|error| Unread::Refused(error.into()))
}

/// What the labels follow from. The parts contain no zero byte: tags are visible ASCII, and paths have none.
fn key(dimension: &str, array: &Array, versions: &[Option<Version>]) -> String {
    let mut digest = Sha256::new();
    let mut add = |part: &str| {
        digest.update(part.as_bytes());
        digest.update([0]);
    };
    add(dimension);
    add(array.mount());
    add(array.path().as_str());
    for version in versions {
        add(version.as_ref().map_or("", Version::tag));
    }
    digest_tag(&digest.finalize())
}
