//! [`LevelFacts`]: what later checks need of the chunks of a level.

use std::collections::HashMap;

use crate::vectors::Coord;

/// What is known of the chunks of a level.
#[derive(Debug, Default)]
pub(super) struct LevelFacts {
    /// Rows and fragments of each chunk that could be read.
    pub(super) chunks: HashMap<Coord, (u64, u64)>,
    /// Whether every chunk was looked at.
    pub(super) is_complete: bool,
}
