//! [`Ghost`]: which parts of values were missed a short time ago; they are admitted at their second miss.
//!
//! A full cache admits nothing that is read once, so a scan of data larger than the cache evicts nothing. It is a table of
//! fingerprints without chains: a later miss replaces an earlier one at the same place, so the oldest disappear by themselves.

/// Fingerprints of what was missed.
#[derive(Debug)]
pub(super) struct Ghost(Vec<u32>);

impl Ghost {
    /// A table of this many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        let places = usize::try_from(bytes / 4).unwrap_or(usize::MAX).max(1);
        Self(vec![0; places])
    }

    /// Records a miss, and returns whether there was one before.
    pub(super) fn record_miss(&mut self, hash: u64) -> bool {
        let places = self.0.len() as u64;
        // Zero stands for an empty place.
        let (fingerprint, place) = (low_bits(hash) | 1, (hash >> 32) % places);
        let Some(known) = usize::try_from(place).ok().and_then(|place| self.0.get_mut(place)) else {
            return false;
        };
        let was_missed = *known == fingerprint;
        *known = if was_missed { 0 } else { fingerprint };
        was_missed
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is what is needed")]
const fn low_bits(hash: u64) -> u32 {
    hash as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_miss_is_recognized() {
        let mut ghost = Ghost::new(1 << 10);
        let (one, two) = (0x1234_5678_9abc_def1, 0x8765_4321_9abc_def3);
        assert!(!ghost.record_miss(one) && !ghost.record_miss(two));
        assert!(ghost.record_miss(one) && ghost.record_miss(two));
        assert!(!ghost.record_miss(one), "admitted, evicted and missed again: it is the first again");
    }
}
