//! What the library encodes is what it was given: read back here through the server, and by other implementations.

use std::path::Path;

use serde_json::json;

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

/// With the document that was given, and with the one that the library writes for the same chunks. An `index.json` says
/// which arrays there are, and `elements` beside each one what they hold.
#[test]
fn every_array_that_is_encoded_can_be_had_by_other_readers() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let mut index = Vec::new();
    for array in encoded() {
        let written = ("zarr.json", array.metadata.to_document());
        write(&folder.join(&array.name), &array, &written);
        index.push(json!({ "path": array.name, "zarr_format": 3 }));
        if array.document.0 != written.0 {
            let path = format!("as-written/{}", array.name);
            write(&folder.join(&path), &array, &array.document);
            index.push(json!({ "path": path, "zarr_format": 2 }));
        }
    }
    std::fs::write(folder.join("index.json"), json!(index).to_string()).unwrap();
}

fn write(folder: &Path, array: &Encoded, (name, document): &(&'static str, serde_json::Value)) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join(name), document.to_string()).unwrap();
    std::fs::write(folder.join("elements"), array.packed()).unwrap();
    for (key, chunk) in array.chunks() {
        let path = folder.join(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, chunk).unwrap();
    }
}
