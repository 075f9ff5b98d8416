//! [`Pyramids`]: what all pyramids of one mount share.

use super::builder::PyramidBuilder;
use super::options::PyramidOptions;
use crate::views::rechunk::Rechunker;

/// The pyramids of one mount, by any spec. Clones share their caches.
#[derive(Clone, Debug)]
pub struct Pyramids {
    pub(super) rechunker: Rechunker,
    pub(super) options: PyramidOptions,
    pub(super) builder: PyramidBuilder,
}

impl Pyramids {
    /// The pyramids of the arrays that `rechunker` encodes. `builder` may be that of other mounts too.
    #[must_use]
    pub fn new(rechunker: Rechunker, options: PyramidOptions, builder: PyramidBuilder) -> Self {
        Self { rechunker, options, builder }
    }
}
