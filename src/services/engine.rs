//! [`ArrayEngine`]: the readers, caches and limits for arrays that all mounts share.

use std::sync::Arc;

use crate::array::{NodeCache, ReadLimits, Reader};
use crate::cache::{Caches, EncodedCache};
use crate::codec::CodecLimits;
use crate::cpu::ComputePool;
use crate::metadata::MetadataLimits;
use crate::views::pyramid::PyramidOptions;
#[cfg(test)]
use crate::write::WriteOptions;
use crate::write::{AppendWriter, ArrayWriter};

/// The shared services that read and decode arrays.
#[derive(Clone, Debug)]
pub struct ArrayEngine {
    /// The reader of elements.
    pub reader: Reader,
    /// The writer of elements.
    pub writer: ArrayWriter,
    /// The writer of what is added to the ends of arrays.
    pub appends: AppendWriter,
    /// The pool that renders elements.
    pub cpu: ComputePool,
    /// The cache of opened nodes.
    pub memo: Arc<dyn NodeCache>,
    /// Size in bytes of the caches of responses.
    pub answers_bytes: u64,
    /// The cache of chunks that the server encoded again.
    pub encoded: EncodedCache,
    /// All caches of the engine and of the stores.
    pub caches: Caches,
    /// Limits on the cost of one request.
    pub read: ReadLimits,
    /// What the levels of pyramids may cost.
    pub pyramid: PyramidOptions,
    /// Limits on metadata documents.
    pub metadata: MetadataLimits,
    /// Limits on the output of codecs.
    pub codec: CodecLimits,
}

#[cfg(test)]
impl ArrayEngine {
    /// An engine without caches, with the default limits.
    pub(crate) fn uncached() -> Self {
        let cpu = ComputePool::new(crate::cpu::ComputePoolOptions::default()).unwrap();
        let writer = ArrayWriter::new(cpu.clone(), WriteOptions::default(), || 0);
        let source =
            Arc::new(crate::array::DirectSource::new(cpu.clone(), crate::array::FetchOptions::default()));
        Self {
            reader: Reader::new(source, cpu.clone()),
            writer: writer.clone(),
            appends: AppendWriter::new(writer, cpu.clone()),
            cpu,
            memo: Arc::new(crate::cache::BoundedNodeCache::new(0)),
            answers_bytes: 0,
            encoded: EncodedCache::new(0),
            caches: Caches::default(),
            read: ReadLimits::default(),
            pyramid: PyramidOptions::default(),
            metadata: MetadataLimits::default(),
            codec: CodecLimits::default(),
        }
    }
}
