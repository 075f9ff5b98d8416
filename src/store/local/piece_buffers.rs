//! [`PieceBuffer`]: memory for the pieces of streamed values, which is used again.
//!
//! To allocate memory and to zero it took 6 to 8 % of the processor time of sending a value of 4 MiB.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// Buffers of each length that are kept: 5 MiB in all.
const MOST_KEPT: usize = 4;

/// The length of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PieceLength {
    Short,
    Medium,
    Long,
}

impl PieceLength {
    /// The next longer one, or the longest.
    pub(super) const fn longer(self) -> Self {
        match self {
            Self::Short => Self::Medium,
            Self::Medium | Self::Long => Self::Long,
        }
    }

    /// The shortest that has this number of bytes, or the longest.
    pub(super) fn of(bytes: usize) -> Self {
        [Self::Short, Self::Medium].into_iter().find(|length| bytes <= length.bytes()).unwrap_or(Self::Long)
    }

    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::Short => 64 << 10,
            Self::Medium => 256 << 10,
            Self::Long => 960 << 10,
        }
    }

    /// The buffers of this length that are kept. No code panics while it holds the lock.
    fn kept(self) -> MutexGuard<'static, Vec<Vec<u8>>> {
        static SHORT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
        static MEDIUM: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
        static LONG: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
        let kept = match self {
            Self::Short => &SHORT,
            Self::Medium => &MEDIUM,
            Self::Long => &LONG,
        };
        kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer for a piece. It is kept for another one when the last part of its bytes is dropped.
#[derive(Debug)]
pub(super) struct PieceBuffer {
    length: PieceLength,
    /// What earlier pieces left in it, and from the start this one.
    bytes: Vec<u8>,
    /// Bytes of this piece.
    used: usize,
}

impl PieceBuffer {
    /// A buffer for the next piece of this number of bytes, of at most this length.
    pub(super) fn take(left: u64, longest: PieceLength) -> Self {
        let used = usize::try_from(left).unwrap_or(usize::MAX).min(longest.bytes());
        let length = PieceLength::of(used);
        let kept = length.kept().pop();
        Self { length, bytes: kept.unwrap_or_else(|| vec![0; length.bytes()]), used }
    }

    /// Where the caller writes the piece.
    pub(super) fn piece_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.used).unwrap_or_default()
    }

    /// The piece, which the caller has written.
    pub(super) fn into_piece(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for PieceBuffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }
}

impl Drop for PieceBuffer {
    fn drop(&mut self) {
        let mut kept = self.length.kept();
        if kept.len() < MOST_KEPT {
            kept.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_no_longer_than_its_piece_needs() {
        let (short, medium, long) = (64 << 10, 256 << 10, 960 << 10);
        for (left, longest, piece, buffer) in [
            (1, PieceLength::Long, 1, short),
            (short as u64, PieceLength::Long, short, short),
            (short as u64 + 1, PieceLength::Long, short + 1, medium),
            (u64::MAX, PieceLength::Short, short, short),
            (u64::MAX, PieceLength::Short.longer(), medium, medium),
            (u64::MAX, PieceLength::Short.longer().longer().longer(), long, long),
        ] {
            let taken = PieceBuffer::take(left, longest);
            assert_eq!((taken.bytes.len(), taken.into_piece().len()), (buffer, piece), "{left} {longest:?}");
        }
    }

    #[test]
    fn a_buffer_is_not_used_again_while_a_part_of_it_is_held() {
        let mut held = Vec::new();
        for n in 0..20_u8 {
            let mut buffer = PieceBuffer::take(u64::MAX, PieceLength::Long);
            buffer.piece_mut().fill(n);
            held.push((n, buffer.into_piece().slice(1..3)));
            if n % 3 == 0 {
                held.remove(0);
            }
            assert!(held.iter().all(|(n, piece)| piece == &[*n; 2][..]));
        }
        drop(held);
        assert!(PieceLength::Long.kept().len() <= MOST_KEPT);
    }
}
