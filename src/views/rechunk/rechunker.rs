//! [`Rechunker`]: what every rechunked view of one mount shares.

use std::sync::Arc;

use super::budget::RechunkBudget;
use crate::array::{NodeOpener, ReadLimits, Reader};
use crate::cache::EncodedCache;
use crate::codec::CodecLimits;
use crate::cpu::ComputePool;
use crate::metadata::MetadataLimits;

/// What may be asked of it.
#[derive(Clone, Copy, Debug)]
pub struct RechunkLimits {
    /// What the elements of one chunk may cost.
    pub read: ReadLimits,
    /// What documents may be.
    pub metadata: MetadataLimits,
    /// What codecs may be asked to make.
    pub codec: CodecLimits,
}

impl RechunkLimits {
    /// What codecs may be asked to make of chunks that are answers.
    pub(super) fn codec(&self) -> CodecLimits {
        CodecLimits { chunk_bytes: self.codec.chunk_bytes.min(self.read.response_bytes), ..self.codec }
    }
}

/// Rechunks the hierarchy of one mount by any recipe. Clones share what they remember.
#[derive(Clone, Debug)]
pub struct Rechunker {
    mount: Arc<str>,
    opener: NodeOpener,
    reader: Reader,
    cpu: ComputePool,
    encoded: EncodedCache,
    limits: RechunkLimits,
    room: RechunkBudget,
}

impl Rechunker {
    /// Rechunks what `opener` opens and `reader` reads; what is made is remembered in `encoded`.
    #[must_use]
    pub fn new(
        mount: Arc<str>,
        opener: NodeOpener,
        reader: Reader,
        cpu: ComputePool,
        encoded: EncodedCache,
        limits: RechunkLimits,
        room: RechunkBudget,
    ) -> Self {
        Self { mount, opener, reader, cpu, encoded, limits, room }
    }

    /// What opens the stored nodes.
    pub(super) fn opener(&self) -> &NodeOpener {
        &self.opener
    }

    /// The mount's name.
    pub(super) fn mount(&self) -> &Arc<str> {
        &self.mount
    }

    /// What reads elements.
    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Where chunks are encoded.
    pub(super) fn cpu(&self) -> &ComputePool {
        &self.cpu
    }

    /// What was made.
    pub(super) fn encoded(&self) -> &EncodedCache {
        &self.encoded
    }

    /// The limits.
    pub(super) fn limits(&self) -> &RechunkLimits {
        &self.limits
    }

    /// What chunks in the making take.
    pub(super) fn room(&self) -> &RechunkBudget {
        &self.room
    }
}
