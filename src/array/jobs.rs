//! Parts of stored values that were fetched, and the pieces of work that decode them.

use bytes::Bytes;

use crate::chunk::Elements;
use crate::codec::{CodecChain, CodecError};

/// Chunks are decoded together up to so many bytes.
const JOB_BYTES: u64 = 1 << 20;

/// A part of what was fetched.
pub(super) struct JobPart {
    /// Which of those that are wanted it is.
    pub(super) position: usize,
    pub(super) encoded: Bytes,
    /// Whether it was fetched together with others.
    pub(super) shared: bool,
}

/// The parts, so many together that the way to another thread does not count; `decoded_bytes` is what each is decoded to.
pub(super) fn jobs(parts: impl Iterator<Item = JobPart>, decoded_bytes: u64) -> Vec<Vec<JobPart>> {
    let mut jobs: Vec<Vec<JobPart>> = Vec::new();
    let mut left = 0;
    for part in parts {
        let bytes = decoded_bytes.max(part.encoded.len() as u64);
        match jobs.last_mut() {
            Some(job) if bytes <= left => job.push(part),
            _ => {
                jobs.push(vec![part]);
                left = JOB_BYTES;
            }
        }
        left = left.saturating_sub(bytes);
    }
    jobs
}

/// Decodes one part of what was fetched, which may be shared with others. Elements that are the encoded bytes themselves
/// are copied out of a fetch that holds other parts too: kept on their own, they would keep all of it in memory.
pub(super) fn decode(chain: &CodecChain, encoded: Bytes, shared: bool) -> Result<Elements, CodecError> {
    if !shared {
        return chain.decode(encoded);
    }
    let fetched = encoded.as_ptr_range();
    Ok(chain.decode(encoded)?.detached_from(&fetched))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(encoded: &[usize], decoded_bytes: u64) -> Vec<usize> {
        let parts = encoded.iter().enumerate().map(|(position, &length)| JobPart {
            position,
            encoded: vec![0; length].into(),
            shared: false,
        });
        let jobs = jobs(parts, decoded_bytes);
        let positions: Vec<usize> = jobs.iter().flatten().map(|part| part.position).collect();
        assert_eq!(positions, (0..encoded.len()).collect::<Vec<_>>());
        jobs.iter().map(Vec::len).collect()
    }

    #[test]
    fn small_chunks_are_decoded_together_and_large_ones_apart() {
        assert_eq!(sizes(&[10; 5], 100), [5]);
        assert_eq!(sizes(&[10; 5], JOB_BYTES / 2), [2, 2, 1]);
        assert_eq!(sizes(&[10; 3], JOB_BYTES + 1), [1, 1, 1]);
        assert_eq!(sizes(&[10, 2 << 20, 10], 100), [1, 1, 1]);
        assert!(sizes(&[], 100).is_empty());
    }
}
