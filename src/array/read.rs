//! [`Reader`]: reads the elements of a snapshot as a stream of segments.

use std::ops::Range;
use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt};
use tokio::task::JoinSet;

use super::assembly::{Assembled, assemble};
use super::chunk_reader::{ChunkReader, Versions};
use super::chunk_source::ChunkSource;
use super::error::ArrayError;
use super::plan::{Plan, ResponseSegment};
use super::read_context::{ReadContext, ReadObserver};
use super::snapshot::Snapshot;
use crate::chunk::Elements;
use crate::cpu::{ComputePool, ComputePoolError};

/// Segments that are assembled ahead of the one that is being sent.
const SEGMENTS_AHEAD: usize = 1;

/// Reads elements of arrays. Clones share the source and the pool.
#[derive(Clone, Debug)]
pub struct Reader {
    source: Arc<dyn ChunkSource>,
    cpu: ComputePool,
    observer: Option<Arc<dyn ReadObserver>>,
    /// The source of chunks that are needed once.
    uncached: Option<Arc<dyn ChunkSource>>,
}

impl Reader {
    /// A reader that gets its chunks from `source` and copies large segments on `cpu`.
    #[must_use]
    pub fn new(source: Arc<dyn ChunkSource>, cpu: ComputePool) -> Self {
        Self { source, cpu, observer: None, uncached: None }
    }

    /// The same reader with `observer`, which is notified when the reads of a request have ended.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn ReadObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// The same reader for elements that are read once: it does not cache chunks that it needs all elements of.
    #[must_use]
    pub fn without_caching(self) -> Self {
        Self { uncached: self.source.uncached(), ..self }
    }

    /// The source of its chunks.
    #[must_use]
    pub fn source(&self) -> &Arc<dyn ChunkSource> {
        &self.source
    }

    /// A context for the reads of one request from a mount.
    #[must_use]
    pub fn read_context(&self, mount: &Arc<str>) -> Arc<ReadContext> {
        let context = ReadContext::new(self.source.concurrency());
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
        Snapshot::lookup(plan, self.source.as_ref(), context).await
    }

    /// The versions of the chunks that a plan touches. Where the plan fits in one segment, the snapshot has all elements
    /// too: chunks that are not cached are read at once, and the reads return the versions.
    ///
    /// # Errors
    /// [`ArrayError`].
    pub async fn snapshot(&self, plan: &Plan, context: &Arc<ReadContext>) -> Result<Snapshot, ArrayError> {
        let mut segments = plan.segments(0..plan.response_bytes());
        let (Some(segment), None) = (segments.next(), segments.next()) else {
            return self.lookup_versions(plan, context).await;
        };
        let Assembled { elements, chunks } = self.assemble(plan, &segment, Versions::Newest, context).await?;
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

    /// Assembles one segment of a snapshot.
    async fn segment(
        &self,
        snapshot: &Snapshot,
        segment: &ResponseSegment,
        context: &Arc<ReadContext>,
    ) -> Result<Elements, ArrayError> {
        let versions = Versions::Snapshot(snapshot);
        Ok(self.assemble(snapshot.plan(), segment, versions, context).await?.elements)
    }

    /// Assembles one segment from chunks of these versions.
    async fn assemble(
        &self,
        plan: &Plan,
        segment: &ResponseSegment,
        versions: Versions<'_>,
        context: &Arc<ReadContext>,
    ) -> Result<Assembled, ArrayError> {
        let chunks = ChunkReader {
            source: &self.source,
            uncached: self.uncached.as_ref(),
            cpu: &self.cpu,
            array: plan.array(),
            versions,
            context,
        };
        assemble(plan, segment, &chunks).await
    }
}

/// Runs an assembly in a task of its own. It goes on while the consumer does not poll: a client that does not read must not
/// keep a segment half assembled, with its chunks in memory. Dropping the future aborts the task.
fn run_to_completion(
    work: impl Future<Output = Result<Elements, ArrayError>> + Send + 'static,
) -> impl Future<Output = Result<Elements, ArrayError>> + Send {
    let mut tasks = JoinSet::new();
    tasks.spawn(work);
    async move {
        match tasks.join_next().await {
            Some(Ok(done)) => done,
            Some(Err(_)) | None => Err(ComputePoolError::Panicked.into()),
        }
    }
}
