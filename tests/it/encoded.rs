//! Arrays that the library encodes round-trip: through the server here, and by zarr-python, which reads the same files.

use std::path::Path;

use serde_json::Value;
use zarrd::store::StoreOptions;

use crate::support::catalogue::encoded;
use crate::support::encoded::Encoded;
use crate::support::server::{Server, cpu};

/// The folder that the arrays are written to, for other programs to read.
const FOLDER: &str = "ZARRD_ENCODED";

/// Each stands below `v3` with the document that the library writes; if it was thought up in v2, below `v2` with that
/// one. The file `elements` beside it is what it holds.
#[tokio::test]
async fn every_encoded_array_round_trips() {
    let own = tempfile::tempdir().unwrap();
    let wanted = std::env::var_os(FOLDER);
    let folder = wanted.as_ref().map_or(own.path(), Path::new);
    let arrays = encoded();
    for array in arrays {
        write(&folder.join("v3").join(&array.name), array, "zarr.json", &array.metadata.to_document());
        if let (".zarray", document) = &array.document {
            write(&folder.join("v2").join(&array.name), array, ".zarray", document);
        }
    }
    let store = zarrd::store::open(folder.to_str().unwrap(), &StoreOptions::default(), &cpu()).unwrap();
    let server = Server::of(store);
    for array in arrays {
        for version in if array.document.0 == ".zarray" { &["v2", "v3"][..] } else { &["v3"] } {
            let read = server.elements(&format!("m/{version}/{}", array.name), "").await;
            assert!(read == array.packed(), "{version} {}: other elements", array.name);
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
