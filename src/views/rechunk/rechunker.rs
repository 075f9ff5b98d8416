//! [`Rechunker`]: the services and limits that all rechunked views of one mount share.

use std::sync::Arc;

use super::budget::RechunkBudget;
use super::validations::Validations;
use crate::array::{NodeOpener, ReadLimits, Reader};
use crate::cache::EncodedCache;
use crate::codec::CodecLimits;
use crate::cpu::ComputePool;
use crate::metadata::MetadataLimits;

/// The limits of rechunked views.
#[derive(Clone, Copy, Debug)]
pub struct RechunkLimits {
    /// The cost of reading the elements of one chunk.
    pub read: ReadLimits,
    /// The size of documents.
    pub metadata: MetadataLimits,
    /// The output of codecs.
    pub codec: CodecLimits,
}

impl RechunkLimits {
    /// The limits of codecs for chunks that are responses.
    pub(in crate::views) fn codec(&self) -> CodecLimits {
        CodecLimits { chunk_bytes: self.codec.chunk_bytes.min(self.read.max_response_size), ..self.codec }
    }
}

/// Rechunks the hierarchy of one mount by any recipe. Clones share their caches.
#[derive(Clone, Debug)]
pub struct Rechunker {
    mount: Arc<str>,
    opener: NodeOpener,
    reader: Reader,
    cpu: ComputePool,
    encoded: EncodedCache,
    limits: RechunkLimits,
    budget: RechunkBudget,
}

impl Rechunker {
    /// Rechunks the arrays that `opener` opens and `reader` reads. Encoded chunks are cached in `encoded`.
    #[must_use]
    pub fn new(
        mount: Arc<str>,
        opener: NodeOpener,
        reader: Reader,
        cpu: ComputePool,
        encoded: EncodedCache,
        limits: RechunkLimits,
        budget: RechunkBudget,
    ) -> Self {
        Self { mount, opener, reader, cpu, encoded, limits, budget }
    }

    /// The opener of the stored nodes.
    pub(in crate::views) fn opener(&self) -> &NodeOpener {
        &self.opener
    }

    /// The mount's name.
    pub(in crate::views) fn mount(&self) -> &Arc<str> {
        &self.mount
    }

    /// The reader of elements.
    pub(in crate::views) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The pool that encodes chunks.
    pub(in crate::views) fn cpu(&self) -> &ComputePool {
        &self.cpu
    }

    /// The cache of encoded chunks.
    pub(in crate::views) fn encoded(&self) -> &EncodedCache {
        &self.encoded
    }

    /// When encoded chunks were found current.
    pub(in crate::views) fn validations(&self) -> &Validations {
        self.budget.validations()
    }

    /// The limits.
    pub(in crate::views) fn limits(&self) -> &RechunkLimits {
        &self.limits
    }

    /// The budget of chunks in progress.
    pub(in crate::views) fn budget(&self) -> &RechunkBudget {
        &self.budget
    }
}
