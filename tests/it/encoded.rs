//! What the library encodes is what it was given: read back here through the server, and by other implementations.

use std::path::Path;

use serde_json::Value;

use crate::support::encoded::{Encoded, encoded};
use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

/// The folder that the arrays are written to for readers outside of this process, if they ask for them.
const FOLDER: &str = "ZARRD_ENCODED";

#[tokio::test]
async fn every_array_that_is_encoded_reads_as_it_was() {
    let store = memory();
    let arrays = encoded();
    for array in &arrays {
        let path = &array.name;
        put(&store, &format!("{path}/{}", array.document.0), array.document.1.to_string()).await;
        for (key, chunk) in array.chunks() {
            put(&store, &format!("{path}/{key}"), chunk).await;
        }
    }
    let server = Server::of(store);
    for array in &arrays {
        let read = server.elements(&format!("m/{}", array.name), "").await;
        assert!(read == array.packed(), "{}: other elements", array.name);
    }
}

/// Each below `v3` with the document that the library writes; if it was thought up in v2, below `v2` with that one. The
/// file `elements` beside it is what it holds.
#[test]
fn every_array_that_is_encoded_can_be_had_by_other_readers() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    for array in encoded() {
        write(&folder.join("v3").join(&array.name), &array, "zarr.json", &array.metadata.to_document());
        if let (".zarray", document) = &array.document {
            write(&folder.join("v2").join(&array.name), &array, ".zarray", document);
        }
    }
}

fn write(folder: &Path, array: &Encoded, name: &str, document: &Value) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join(name), document.to_string()).unwrap();
    std::fs::write(folder.join("elements"), array.packed()).unwrap();
    for (key, chunk) in array.chunks() {
        let path = folder.join(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, chunk).unwrap();
    }
}
