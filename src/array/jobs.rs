//! Decoding jobs: fetched parts of stored values, grouped so that each group is worth a hop to another thread.

use bytes::Bytes;

use crate::chunk::Elements;
use crate::codec::{CodecChain, CodecError};

/// Parts are decoded by one job up to this many bytes.
const JOB_BYTES: u64 = 1 << 20;

/// A part of a fetch: the encoded bytes of one requested range.
pub(super) struct JobPart {
    /// Its position in the list of requested ranges.
    pub(super) position: usize,
    pub(super) encoded: Bytes,
    /// Whether its fetch has other parts too, or a cache accounts for the bytes.
    pub(super) shared: bool,
}

/// Groups parts into jobs of about [`JOB_BYTES`], so that the hop to another thread does not matter. Each part decodes to
/// `decoded_bytes` bytes.
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

/// Decodes one part of a fetch. Elements that are the encoded bytes themselves are copied out of shared ones: otherwise one cached
/// chunk would keep all bytes of the fetch in memory, or those that a cache accounts for.
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
    fn jobs_group_small_chunks_and_separate_large_ones() {
        assert_eq!(sizes(&[10; 5], 100), [5]);
        assert_eq!(sizes(&[10; 5], JOB_BYTES / 2), [2, 2, 1]);
        assert_eq!(sizes(&[10; 3], JOB_BYTES + 1), [1, 1, 1]);
        assert_eq!(sizes(&[10, 2 << 20, 10], 100), [1, 1, 1]);
        assert!(sizes(&[], 100).is_empty());
    }
}
