//! [`Chains`]: the codecs of an array, bound to the shapes of its chunks (Zarr core 3.1, "Codecs"; the extension
//! "rectilinear").
//!
//! The chunks of a regular grid have one shape and one chain. For other grids, a chain is bound by the first request for a
//! chunk of its shape, and a bounded number is cached, because a grid may have as many shapes as chunks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::codec::{CodecChain, CodecError, CodecLimits};
use crate::metadata::ArrayMetadata;

/// Chains that are cached beside that of the first chunk. When there are more, all are dropped.
const MAX_CACHED: usize = 64;

/// The chains of one array.
#[derive(Debug)]
pub(super) struct Chains {
    limits: CodecLimits,
    first_shape: Vec<u64>,
    first: Arc<CodecChain>,
    others: Mutex<HashMap<Vec<u64>, Arc<CodecChain>>>,
}

impl Chains {
    /// Binds the codecs to the shape of the array's first chunk.
    pub(super) fn bind(
        metadata: &ArrayMetadata,
        first_shape: Vec<u64>,
        limits: &CodecLimits,
    ) -> Result<Self, CodecError> {
        let first = bind(metadata, &first_shape, limits)?;
        Ok(Self { limits: *limits, first_shape, first, others: Mutex::default() })
    }

    /// The chain of the first chunk.
    pub(super) fn first(&self) -> &Arc<CodecChain> {
        &self.first
    }

    /// The chain of chunks of this shape, if it is cached.
    pub(super) fn get(&self, shape: &[u64]) -> Option<Arc<CodecChain>> {
        if shape == self.first_shape {
            return Some(Arc::clone(&self.first));
        }
        self.others().get(shape).cloned()
    }

    /// The chain of chunks of this shape. `metadata` must be that of the same array.
    pub(super) fn get_or_bind(
        &self,
        metadata: &ArrayMetadata,
        shape: &[u64],
    ) -> Result<Arc<CodecChain>, CodecError> {
        if let Some(chain) = self.get(shape) {
            return Ok(chain);
        }
        let chain = bind(metadata, shape, &self.limits)?;
        let mut others = self.others();
        if others.len() >= MAX_CACHED {
            others.clear();
        }
        others.insert(shape.to_vec(), Arc::clone(&chain));
        Ok(chain)
    }

    /// No code panics while it holds the lock; even then the map would be consistent.
    fn others(&self) -> MutexGuard<'_, HashMap<Vec<u64>, Arc<CodecChain>>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bind(
    metadata: &ArrayMetadata,
    shape: &[u64],
    limits: &CodecLimits,
) -> Result<Arc<CodecChain>, CodecError> {
    let (data_type, fill_value) = (&metadata.data_type, &metadata.fill_value);
    CodecChain::bind(&metadata.codecs, data_type, shape, fill_value, limits).map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{MetadataLimits, v3};

    fn array() -> ArrayMetadata {
        let document = r#"{"zarr_format":3,"node_type":"array","shape":[600],"data_type":"uint8","fill_value":0,
            "chunk_grid":{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[4,[2,300]]]}},
            "chunk_key_encoding":"default","codecs":[{"name":"sharding_indexed","configuration":{
            "chunk_shape":[2],"codecs":["bytes"],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}]}"#;
        match v3::parse(document.as_bytes(), &MetadataLimits::default()) {
            Ok(v3::V3Node::Array(array)) => array,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_shape_that_the_codecs_reject_is_an_error_for_that_shape_only() {
        let array = array();
        let chains = Chains::bind(&array, vec![4], &CodecLimits::default()).unwrap();
        assert!(chains.get_or_bind(&array, &[3]).is_err());
        assert_eq!(chains.get_or_bind(&array, &[4]).unwrap().decoded_bytes(), 4);
        assert_eq!(chains.get_or_bind(&array, &[6]).unwrap().decoded_bytes(), 6);
        assert!(Chains::bind(&array, vec![3], &CodecLimits::default()).is_err());
    }

    #[test]
    fn a_bounded_number_of_chains_is_cached_by_shape() {
        let array = array();
        let chains = Chains::bind(&array, vec![4], &CodecLimits::default()).unwrap();
        let once = chains.get_or_bind(&array, &[6]).unwrap();
        assert!(Arc::ptr_eq(&once, &chains.get_or_bind(&array, &[6]).unwrap()));
        assert!(Arc::ptr_eq(chains.first(), &chains.get_or_bind(&array, &[4]).unwrap()));
        for edge in 1..=300 {
            assert_eq!(chains.get_or_bind(&array, &[2 * edge]).unwrap().decoded_bytes(), 2 * edge);
            assert!(chains.others.lock().unwrap().len() <= MAX_CACHED);
        }
    }
}
