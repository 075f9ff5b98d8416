//! [`DeclaredArrays`]: the arrays that an array declares and that are served from paths of their own.

use std::sync::{Arc, OnceLock};

use super::bound_array::Array;
use crate::chunk::{ChunkCoords, ChunkKeyEncoding};
use crate::hierarchy::DeclaredArray;
use crate::key::NodePath;
use crate::metadata::ArrayMetadata;
use crate::store::Version;

/// An array that another array declares, and that is served from a path of its own.
#[derive(Debug)]
pub struct Declared {
    /// Its path.
    pub path: NodePath,
    /// Its document for readers that do not know the convention, if it is short enough to cache.
    pub rebased: Option<Arc<str>>,
    metadata: Arc<ArrayMetadata>,
    keys: ChunkKeyEncoding,
    array: OnceLock<Option<Arc<Array>>>,
}

/// The arrays that one array declares, by their paths.
#[derive(Debug, Default)]
pub struct DeclaredArrays {
    /// The version of the document that declares them; `None` if it declares none.
    pub version: Option<Version>,
    /// The arrays.
    pub arrays: Vec<Declared>,
}

impl Declared {
    /// Prepares a declared array for serving; `None` if it is withheld.
    pub(super) fn new(declared: DeclaredArray) -> Option<Self> {
        let DeclaredArray { path, array: metadata, is_hidden, rebased } = declared;
        let keys = ChunkKeyEncoding::new(metadata.chunk_key_encoding.clone());
        let rebased = rebased.map(Arc::from);
        (!is_hidden).then(|| Self { path, rebased, metadata, keys, array: OnceLock::new() })
    }

    /// The coordinates of its chunk with this key below the primary's prefix; `None` if it is not the key of a chunk.
    #[must_use]
    pub fn chunk_coords(&self, below: &str) -> Option<ChunkCoords> {
        self.keys.decode(below, self.metadata.shape.len())
    }

    /// The array without its attributes, as `bind` returns it for its metadata. `bind` is called once.
    pub fn array(&self, bind: impl FnOnce(&Arc<ArrayMetadata>) -> Option<Arc<Array>>) -> Option<&Arc<Array>> {
        self.array.get_or_init(|| bind(&self.metadata)).as_ref()
    }
}
