//! [`LevelFacts`]: what the checks of objects and links need to know about the chunks of a level.

use std::collections::HashMap;

use crate::vectors::Coord;

/// What is known about the chunks of a level.
#[derive(Debug, Default)]
pub(super) struct LevelFacts {
    /// The number of rows and of fragments of each chunk that was read.
    pub(super) chunks: HashMap<Coord, (u64, u64)>,
    /// Whether every chunk was read before the deadline.
    pub(super) is_complete: bool,
}
