//! [`ArrayEngine`]: what reads and decodes arrays, for all mounts.

use std::sync::Arc;

use crate::array::{NodeCache, ReadLimits, Reader};
use crate::cache::{Caches, EncodedCache};
use crate::codec::CodecLimits;
use crate::cpu::ComputePool;
use crate::metadata::MetadataLimits;

/// What decodes arrays, for all mounts.
#[derive(Clone, Debug)]
pub struct ArrayEngine {
    /// Reads elements.
    pub reader: Reader,
    /// Where elements are rendered.
    pub cpu: ComputePool,
    /// Remembers opened nodes.
    pub memo: Arc<dyn NodeCache>,
    /// Bytes of small answers that are kept as they went out.
    pub answers_bytes: u64,
    /// Remembers chunks that were encoded anew.
    pub encoded: EncodedCache,
    /// All that is remembered by these, and by the stores.
    pub caches: Caches,
    /// What one request may cost.
    pub read: ReadLimits,
    /// What documents may be.
    pub metadata: MetadataLimits,
    /// What codecs may be asked to make.
    pub codec: CodecLimits,
}

#[cfg(test)]
impl ArrayEngine {
    /// Without caches, and with the default limits.
    pub(crate) fn uncached() -> Self {
        let cpu = ComputePool::new(crate::cpu::ComputePoolOptions::default()).unwrap();
        let source =
            Arc::new(crate::array::DirectSource::new(cpu.clone(), crate::array::FetchOptions::default()));
        Self {
            reader: Reader::new(source, cpu.clone()),
            cpu,
            memo: Arc::new(crate::cache::BoundedNodeCache::new(0)),
            answers_bytes: 0,
            encoded: EncodedCache::new(0),
            caches: Caches::default(),
            read: ReadLimits::default(),
            metadata: MetadataLimits::default(),
            codec: CodecLimits::default(),
        }
    }
}
