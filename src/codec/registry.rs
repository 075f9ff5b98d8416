//! The table of all codecs, and lookup by name.
//!
//! The table is closed: a codec of another name is unsupported. Each stage's folder lists its codecs.

use super::factory::Codec;
use super::{array_to_array, array_to_bytes, bytes_to_bytes};
use crate::metadata::{CodecStage, V2Codec};

/// All codecs, in the order of the stages of a chain.
pub(super) fn all() -> impl Iterator<Item = &'static Codec> {
    [array_to_array::CODECS, array_to_bytes::CODECS, bytes_to_bytes::CODECS].into_iter().flatten()
}

/// The codec with this name in v3 documents.
pub(super) fn by_name(name: &str) -> Option<&'static Codec> {
    all().find(|codec| codec.names.contains(&name))
}

/// The codec with this `id` in v2 documents: what the parsers of v1 and v2 documents need to know of it.
#[must_use]
pub fn v2_codec(id: &str) -> Option<(CodecStage, &'static V2Codec)> {
    all().find_map(|codec| {
        let v2 = codec.v2.iter().find(|v2| v2.id == id)?;
        Some((codec.factory.stage(), v2))
    })
}
