//! [`Codes`]: counts of problem documents by their stable code.
//!
//! Codes come from the program, never from a client, so their number is fixed; the table is bounded all the same.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Size of the table, larger than the number of codes.
const MOST: usize = 128;

/// Counts by code. A code takes the first free entry when it first occurs.
#[derive(Debug)]
pub(crate) struct Codes(Box<[(OnceLock<&'static str>, AtomicU64)]>);

impl Default for Codes {
    fn default() -> Self {
        Self((0..MOST).map(|_| (OnceLock::new(), AtomicU64::new(0))).collect())
    }
}

impl Codes {
    /// Counts a problem.
    pub(crate) fn add(&self, code: &'static str) {
        if let Some((_, count)) = self.0.iter().find(|(known, _)| *known.get_or_init(|| code) == code) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// The counts so far.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map_while(|(code, count)| Some((*code.get()?, count.load(Relaxed))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_a_count_of_its_own() {
        let codes = Codes::default();
        for code in ["a", "b", "a", "a"] {
            codes.add(code);
        }
        assert_eq!(codes.counted().collect::<Vec<_>>(), [("a", 3), ("b", 1)]);
    }
}
