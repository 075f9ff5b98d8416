//! [`Reader`]: reads the elements of a snapshot as a stream of segments.

use std::ops::Range;
use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt};
use tokio::task::JoinSet;
use tracing::Instrument;

use super::assembly::Assembled;
use super::bound_array::Array;
use super::chunk_reader::Versions;
use super::chunk_source::ChunkSource;
use super::error::ArrayError;
use super::gathered;
use super::plan::Plan;
use super::read_context::{ReadContext, ReadObserver};
use super::reduced;
use super::reduced_axes;
use super::segment_reader::SegmentReader;
use super::segments::ResponseSegment;
use super::snapshot::{self, Snapshot};
use crate::chunk::{Elements, Subset};
use crate::cpu::{ComputePool, ComputePoolError};
use crate::store::Version;

/// Segments that are assembled ahead of the one that is being sent.
const SEGMENTS_AHEAD: usize = 1;

/// Reads elements of arrays. Clones share the source and the pool.
#[derive(Clone, Debug)]
pub struct Reader {
    segments: SegmentReader,
    observer: Option<Arc<dyn ReadObserver>>,
}

impl Reader {
    /// A reader that gets its chunks from `source` and copies large segments on `cpu`.
    #[must_use]
    pub fn new(source: Arc<dyn ChunkSource>, cpu: ComputePool) -> Self {
        Self { segments: SegmentReader { source, cpu, uncached: None }, observer: None }
    }

    /// The same reader with `observer`, which is notified when the reads of a request have ended.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn ReadObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// The same reader for elements that are read once: it does not cache chunks that it needs all elements of.
    #[must_use]
    pub fn without_caching(self) -> Self {
        Self { segments: self.segments.without_caching(), ..self }
    }

    /// The source of its chunks.
    #[must_use]
    pub fn source(&self) -> &Arc<dyn ChunkSource> {
        &self.segments.source
    }

    /// A context for the reads of one request from a mount.
    #[must_use]
    pub fn read_context(&self, mount: &Arc<str>) -> Arc<ReadContext> {
        let context = ReadContext::new(self.segments.source.concurrency());
        Arc::new(match &self.observer {
            Some(observer) => context.with_observer(Arc::clone(observer), mount),
            None => context,
        })
    }

    /// The versions of the chunks that a plan touches. Reads none of the chunks.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn lookup_versions(&self, plan: &Plan, context: &ReadContext) -> Result<Snapshot, ArrayError> {
        Snapshot::lookup(plan, self.segments.source.as_ref(), context).await
    }

    /// The versions of the stored chunks that a box of elements touches, in C order; `None` where there is no such chunk.
    /// Reads none of the chunks, and holds few versions at a time.
    #[must_use]
    pub fn versions(
        &self,
        array: &Arc<Array>,
        subset: &Subset,
        context: &Arc<ReadContext>,
    ) -> BoxStream<'static, Result<Option<Version>, ArrayError>> {
        snapshot::versions(array, subset, &self.segments.source, context)
    }

    /// The versions of the chunks that a plan touches. Where the plan fits in one segment, the snapshot has all elements
    /// too: chunks that are not cached are read at once, and the reads return the versions.
    ///
    /// # Errors
    /// [`ArrayError`].
    pub async fn snapshot(&self, plan: &Plan, context: &Arc<ReadContext>) -> Result<Snapshot, ArrayError> {
        if plan.is_gathered() {
            return self.lookup_versions(plan, context).await;
        }
        let mut segments = plan.segments(0..plan.response_bytes());
        let (Some(segment), None) = (segments.next(), segments.next()) else {
            return self.lookup_versions(plan, context).await;
        };
        if !reduced::is_read_whole(plan, &segment) {
            return self.lookup_versions(plan, context).await;
        }
        let Assembled { elements, chunks } =
            self.segments.assemble(plan, &segment, Versions::Newest, context).await?;
        let elements = reduced::apply(&self.segments, plan, &segment, elements, context).await?;
        Ok(Snapshot::with_elements(plan.clone(), chunks, elements))
    }

    /// The elements whose items are these bytes of the response, in C order and canonical form. The stream assembles one
    /// segment ahead of its consumer, so memory is bounded by two segments and their chunks.
    ///
    /// # Errors
    /// The stream ends with the first [`ArrayError`]; it never ends short.
    #[must_use]
    pub fn elements(
        &self,
        mut snapshot: Snapshot,
        bytes: Range<u64>,
        context: &Arc<ReadContext>,
    ) -> BoxStream<'static, Result<Elements, ArrayError>> {
        if let Some(elements) = snapshot.take_elements() {
            let offset = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(elements.items().len());
            let part = elements.slice(offset(bytes.start)..offset(bytes.end));
            return stream::once(std::future::ready(Ok(part))).boxed();
        }
        let (reader, context) = (self.clone(), Arc::clone(context));
        if let Some(gather) = snapshot.plan().gather().map(Arc::clone) {
            let whole = run_to_completion(async move {
                let elements = gathered::read(&reader.segments, &snapshot, &gather, &context).await?;
                let offset = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(elements.items().len());
                Ok(elements.slice(offset(bytes.start)..offset(bytes.end)))
            });
            return stream::once(whole).boxed();
        }
        let segments = snapshot.plan().segments(bytes.clone());
        stream::iter(segments)
            .map(move |segment| {
                let (reader, snapshot, bytes) = (reader.clone(), snapshot.clone(), bytes.clone());
                let context = Arc::clone(&context);
                run_to_completion(async move {
                    let elements = reader.segment(&snapshot, &segment, &context).await?;
                    let offset = |at: u64| usize::try_from(at - segment.bytes.start).unwrap_or(usize::MAX);
                    let start = bytes.start.max(segment.bytes.start);
                    let end = bytes.end.min(segment.bytes.end);
                    Ok(elements.slice(offset(start)..offset(end)))
                })
            })
            .buffered(1 + SEGMENTS_AHEAD)
            .boxed()
    }

    /// Reads one segment of a snapshot, and reduces it where the plan says so.
    async fn segment(
        &self,
        snapshot: &Snapshot,
        segment: &ResponseSegment,
        context: &Arc<ReadContext>,
    ) -> Result<Elements, ArrayError> {
        if let Some(over) = snapshot.plan().axis_reduction() {
            return reduced_axes::segment(&self.segments, snapshot, segment, over, context).await;
        }
        match snapshot.plan().reduction() {
            None => self.segments.stored(snapshot, segment, context).await,
            Some(reduction) => reduced::segment(&self.segments, snapshot, segment, reduction, context).await,
        }
    }
}

/// Runs an assembly in a task of its own. It goes on while the consumer does not poll: a client that does not read must not
/// keep a segment half assembled, with its chunks in memory. Dropping the future aborts the task, whose log lines are the request's.
fn run_to_completion(
    work: impl Future<Output = Result<Elements, ArrayError>> + Send + 'static,
) -> impl Future<Output = Result<Elements, ArrayError>> + Send {
    let mut tasks = JoinSet::new();
    tasks.spawn(work.in_current_span());
    async move {
        match tasks.join_next().await {
            Some(Ok(done)) => done,
            Some(Err(_)) | None => Err(ComputePoolError::Panicked.into()),
        }
    }
}
