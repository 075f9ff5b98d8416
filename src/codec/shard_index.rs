//! [`ShardIndex`]: where each inner chunk is stored in its shard (Zarr codecs, "sharding-indexed", "Binary shard format").

use std::ops::Range;

/// Offset and length of an inner chunk that is absent.
pub(super) const ABSENT: u64 = u64::MAX;

/// Where the index is stored in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexLocation {
    /// Before the inner chunks.
    Start,
    /// After the inner chunks.
    End,
}

/// The decoded index of a shard. Every range lies inside the shard and outside the index; ranges may overlap each other.
#[derive(Debug)]
pub struct ShardIndex {
    /// Offset and length of each inner chunk, in C order.
    entries: Vec<(u64, u64)>,
}

impl ShardIndex {
    /// An index of checked entries: the sum of offset and length is at most the shard's length, or both are [`ABSENT`].
    pub(super) fn new(entries: Vec<(u64, u64)>) -> Self {
        Self { entries }
    }

    /// The byte range of an inner chunk, given by its C-order number in the shard; `None` if it is absent, so that all its
    /// elements are the fill value.
    #[must_use]
    pub fn get(&self, inner_chunk: usize) -> Option<Range<u64>> {
        let &(offset, length) = self.entries.get(inner_chunk)?;
        // No sum overflows: it was compared with the shard's length.
        (offset != ABSENT).then(|| offset..offset.saturating_add(length))
    }

    /// The number of inner chunks, present and absent.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the shard has no inner chunks at all, which takes a dimension of length 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
