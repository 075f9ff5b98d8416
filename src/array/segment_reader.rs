//! [`SegmentReader`]: assembles the stored elements of single segments.

use std::sync::Arc;

use super::assembly::{Assembled, assemble};
use super::chunk_reader::{ChunkReader, Versions};
use super::chunk_source::ChunkSource;
use super::error::ArrayError;
use super::plan::Plan;
use super::read_context::ReadContext;
use super::segments::ResponseSegment;
use super::snapshot::Snapshot;
use crate::chunk::Elements;
use crate::cpu::ComputePool;

/// Assembles segments from chunks. Clones share the source and the pool.
#[derive(Clone, Debug)]
pub(super) struct SegmentReader {
    pub(super) source: Arc<dyn ChunkSource>,
    pub(super) cpu: ComputePool,
    /// The source of chunks that are needed once.
    pub(super) uncached: Option<Arc<dyn ChunkSource>>,
}

impl SegmentReader {
    /// The same reader, which does not cache chunks that it needs all elements of.
    pub(super) fn without_caching(self) -> Self {
        Self { uncached: self.source.uncached(), ..self }
    }

    /// Assembles the stored elements of one segment of a snapshot.
    pub(super) async fn stored(
        &self,
        snapshot: &Snapshot,
        segment: &ResponseSegment,
        context: &Arc<ReadContext>,
    ) -> Result<Elements, ArrayError> {
        let versions = Versions::Snapshot(snapshot);
        Ok(self.assemble(snapshot.plan(), segment, versions, context).await?.elements)
    }

    /// Assembles the stored elements of one segment from chunks of these versions.
    pub(super) async fn assemble(
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
