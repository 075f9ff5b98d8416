//! What `zarrs` writes is read here, and what is encoded here is read by `zarrs`: an implementation in the same language
//! by others, which knows types that zarr-python does not have.

use std::sync::Arc;

use serde_json::Value;
use zarrs::array::{Array, ArrayBytes, ArrayMetadata};
use zarrs::storage::store::MemoryStore;
use zarrs::storage::{ReadableStorageTraits, StoreKey, WritableStorageTraits, ListableStorageTraits};

use crate::support::encoded::{Encoded, encoded};
use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

/// The array for `zarrs`, over a store of its own; why not, if it does not know it.
fn array(encoded: &Encoded, store: &Arc<MemoryStore>) -> Result<Array<MemoryStore>, String> {
    let metadata: ArrayMetadata =
        serde_json::from_str(&encoded.document.1.to_string()).map_err(|error| error.to_string())?;
    Array::new_with_metadata(Arc::clone(store), "/a", metadata).map_err(|error| error.to_string())
}

fn packed(bytes: &ArrayBytes) -> Vec<u8> {
    match bytes {
        ArrayBytes::Fixed(bytes) => bytes.to_vec(),
        ArrayBytes::Variable(variable) => variable
            .offsets()
            .windows(2)
            .flat_map(|ends| {
                let element = &variable.bytes()[ends[0]..ends[1]];
                [&u32::try_from(element.len()).unwrap().to_le_bytes(), element].concat()
            })
            .collect(),
        ArrayBytes::Optional(_) => panic!("nothing here is optional"),
    }
}

#[test]
fn zarrs_probe() {
    for encoded in encoded() {
        let store = Arc::new(MemoryStore::new());
        match array(&encoded, &store) {
            Err(error) => println!("UNKNOWN {} {error}", encoded.name),
            Ok(array) => {
                for (key, chunk) in encoded.chunks() {
                    store.set(&StoreKey::new(format!("a/{key}")).unwrap(), chunk.into()).unwrap();
                }
                match array.retrieve_array_subset::<ArrayBytes>(&array.subset_all()) {
                    Err(error) => println!("READ {} {error}", encoded.name),
                    Ok(read) if packed(&read) != encoded.packed() => println!("DIFFERS {}", encoded.name),
                    Ok(_) => {}
                }
            }
        }
    }
}
