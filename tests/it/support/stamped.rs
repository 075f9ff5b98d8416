//! Values that describe themselves: key, number and length, and after that bytes that follow from these. A reader can
//! decide from the bytes alone whether it got one value, all of it and nothing else.

use bytes::Bytes;

/// Pseudo-random numbers, the same in every run.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn of(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.roll() >> 16) % end
    }

    /// A length up to `most`: as many short ones as long ones.
    pub fn length(&mut self, most: usize) -> usize {
        let bits = u64::from(usize::BITS - most.leading_zeros());
        let scale = 1_u64 << self.below(bits);
        let length = usize::try_from(1 + self.below(scale * 2)).unwrap();
        length.min(most)
    }
}

/// The value of a number; values shorter than their description are its beginning.
pub fn value(key: &str, number: u64, bytes: usize) -> Bytes {
    let mut value = format!("{key} {number} {bytes}\n").into_bytes();
    let seed = value.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut dice = Dice::of(seed);
    // One block is repeated with its own offset each time, so that long values are quick to build.
    let block: Vec<u8> = (0..512).flat_map(|_| dice.roll().to_le_bytes()).collect();
    while value.len() < bytes {
        value.extend_from_slice(&value.len().to_le_bytes());
        value.extend_from_slice(&block);
    }
    value.truncate(bytes);
    value.into()
}

/// The number of a value that is long enough to contain it; fails unless the value is complete.
pub fn number_of(key: &str, bytes: &[u8]) -> u64 {
    let end = bytes.iter().position(|byte| *byte == b'\n').expect("a torn value: it does not say what it is");
    let stamp = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut stamp = stamp.rsplitn(3, ' ');
    let length: usize = stamp.next().unwrap().parse().unwrap();
    let number = stamp.next().unwrap().parse().unwrap();
    assert_eq!(stamp.next(), Some(key), "the value of another key");
    assert!(bytes == value(key, number, length), "a torn value: {number} of {key}, {} bytes", bytes.len());
    number
}

/// A number from the environment, for long runs by hand.
pub fn by_hand(name: &str, otherwise: u64) -> u64 {
    std::env::var_os(name).map_or(otherwise, |text| text.to_str().unwrap().parse().unwrap())
}
