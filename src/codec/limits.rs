//! [`CodecLimits`]: what a chain of codecs may be asked to produce.

/// Allowance of a reader beyond the codecs' own bound on an encoded chunk, where there is only a bound.
pub(super) const FETCH_SLACK_BYTES: u64 = 64 << 10;

/// Limits on a chain's chunks and on its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodecLimits {
    /// Largest decoded chunk in bytes. Of nested chunks the outermost counts; a whole shard counts only if it must be
    /// decoded whole.
    pub chunk_bytes: u64,
    /// Most inner chunks in a shard.
    pub shard_chunks: u64,
    /// Deepest nesting of shards in shards.
    pub sharding_depth: usize,
    /// Most codecs in one chain: that of an array, of inner chunks, of an index. Codecs inside `conditional` count too.
    pub codecs: usize,
}

impl CodecLimits {
    /// Most bytes between two codecs, from any encoder.
    pub(super) fn between_bytes(&self) -> u64 {
        self.chunk_bytes.saturating_mul(2).saturating_add(FETCH_SLACK_BYTES)
    }
}

impl Default for CodecLimits {
    fn default() -> Self {
        Self { chunk_bytes: 512 << 20, shard_chunks: 1 << 24, sharding_depth: 3, codecs: 16 }
    }
}
