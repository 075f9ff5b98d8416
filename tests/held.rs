//! What answers and uploads hold while their clients do nothing, beside what their permits say: by every route there is.
//!
//! Some of each are begun, of the largest that there is for the route, and none is taken or sent to its end. What is then in
//! memory must be in their permits, but for a little for each. A test binary of its own, with one test, which runs in several
//! processes: the allocator counts for all threads of one, and nothing else may run there.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "held/references.rs"]
mod references;

use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use serde_json::{Value, json};
use zarrd::array::{DirectSource, FetchOptions, ReadLimits, Reader};
use zarrd::cache::{BoundedNodeCache, Caches, EncodedCache};
use zarrd::codec::CodecLimits;
use zarrd::cpu::{ComputePool, ComputePoolOptions};
use zarrd::http::{HttpOptions, Peer};
use zarrd::metadata::MetadataLimits;
use zarrd::services::{AppState, ArrayEngine, Mount};
use zarrd::store::{SharedStore, StoreOptions, open};
use zarrd::views::pyramid::PyramidOptions;
use zarrd::web::Endpoint;
use zarrd::write::{AppendWriter, ArrayWriter, WriteOptions};

const MIB: u64 = 1 << 20;
/// Requests of a kind that are in flight together.
const TOGETHER: u64 = 3;
/// What a request may take beside what it is charged: futures, headers, and the last bytes, which a connection holds anyway.
const LITTLE_BYTES: u64 = 256 << 10;
/// Bytes of an upload that come before its client stops.
const LONG: u64 = 16 * MIB;
/// Bytes of the elements of an array.
const ELEMENTS: u64 = 16 * MIB;
const LONG_NAME: usize = 200;
const NAMES: usize = 6_000;
/// Vertices of a chunk.
const VERTICES: u32 = 150_000;
/// Stored chunks of an array: a table of them is more than a stream is taken to hold.
const SHARDS: usize = 6_000;

/// A request: what it is, its method, its route in the API document, its URL, a header, and what is sent.
type Row =
    (&'static str, &'static str, &'static str, &'static str, Option<(&'static str, &'static str)>, Sent);

/// The body of a request.
#[derive(Clone, Copy)]
enum Sent {
    Nothing,
    Json(&'static str),
    /// The number of bytes declared; the last of them never arrives.
    Stalled(u64),
    /// The same, without a word about its length.
    StalledChunked(u64),
}

use Sent::{Json, Nothing, Stalled, StalledChunked};

const NEW: Option<(&str, &str)> = Some(("if-none-match", "*"));
const ZARRVECTORS: &str = "/v1/vectors/{mount}/{path}/levels/{level}";

/// Every route, with the largest of each kind of answer that it has.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("a document", "GET", "/store/{mount}/{key}", "/store/m/doc/zarr.json", None, Nothing),
    ("a value", "GET", "/store/{mount}/{key}", "/store/m/value", None, Nothing),
    ("a range", "GET", "/store/{mount}/{key}", "/store/m/value", Some(("range", "bytes=100-9999999")), Nothing),
    ("a stored zip entry", "GET", "/store/{mount}/{key}", "/store/z/stored", None, Nothing),
    ("a deflated zip entry", "GET", "/store/{mount}/{key}", "/store/z/deflated", None, Nothing),
    ("a range of one", "GET", "/store/{mount}/{key}", "/store/z/deflated", Some(("range", "bytes=9999999-19999999")), Nothing),
    ("bytes of a document of references", "GET", "/store/{mount}/{key}", "/store/r/inline", None, Nothing),
    ("a file that a reference leads to", "GET", "/store/{mount}/{key}", "/store/r/whole", None, Nothing),
    ("a range that a reference leads to", "GET", "/store/{mount}/{key}", "/store/r/part", None, Nothing),
    ("a page of the keys of references", "GET", "/store/{mount}/", "/store/r/?recursive&format=json", None, Nothing),
    ("a value in memory", "GET", "/store/{mount}/{key}", "/store/w/value", None, Nothing),
    ("a page of a listing", "GET", "/store/{mount}/{key}", "/store/m/many/?format=json", None, Nothing),
    ("a page of all keys", "GET", "/store/{mount}/", "/store/m/?recursive&format=json", None, Nothing),
    ("one key by WebDAV", "PROPFIND", "/store/{mount}/{key}", "/store/m/value", Some(("depth", "0")), Nothing),
    ("a mount", "GET", "/store/{mount}", "/store/m", None, Nothing),
    ("an upload to a directory", "PUT", "/store/{mount}/{key}", "/store/l/new", None, Stalled(LONG)),
    ("a conditional upload", "PUT", "/store/{mount}/{key}", "/store/s/new", NEW, Stalled(LONG)),
    ("one of unknown length", "PUT", "/store/{mount}/{key}", "/store/s/new", NEW, StalledChunked(LONG)),
    ("an upload in parts", "PUT", "/store/{mount}/{key}", "/store/s/new", None, Stalled(4 * MIB)),
    ("an upload to memory", "PUT", "/store/{mount}/{key}", "/store/w/new", None, StalledChunked(LONG)),
    ("a part of a value", "PATCH", "/store/{mount}/{key}", "/store/l/value", Some(("content-range", "bytes 0-16777215/*")), Stalled(LONG)),
    ("an erased value", "DELETE", "/store/{mount}/{key}", "/store/l/none", None, Nothing),
    ("an erased mount", "DELETE", "/store/{mount}/", "/store/e/", None, Nothing),
    ("a copy", "COPY", "/store/{mount}/{key}", "/store/l/value", Some(("destination", "/store/l/copy")), Nothing),
    ("a plain document", "GET", "/plain/{mount}/{key}", "/plain/m/doc/zarr.json", None, Nothing),
    ("a plain value", "GET", "/plain/{mount}/{key}", "/plain/m/value", None, Nothing),
    ("a plain listing", "GET", "/plain/{mount}/", "/plain/k/?recursive&format=json", None, Nothing),
    ("a plain mount", "GET", "/plain/{mount}", "/plain/m", None, Nothing),
    ("a document without shards", "GET", "/unshard/{mount}/{key}", "/unshard/m/doc/zarr.json", None, Nothing),
    ("a listing without shards", "GET", "/unshard/{mount}/", "/unshard/k/?recursive&format=json", None, Nothing),
    ("a mount without shards", "GET", "/unshard/{mount}", "/unshard/m", None, Nothing),
    ("a chunk that is encoded again", "GET", "/rechunk/{mount}/{chunks}/{codec}/{key}", "/rechunk/m/1024,1024/raw/arr/c/0/0", None, Nothing),
    ("a rechunked listing", "GET", "/rechunk/{mount}/{chunks}/{codec}/", "/rechunk/m/auto/raw/?format=json", None, Nothing),
    ("a rechunked mount", "GET", "/rechunk/{mount}/{chunks}/{codec}", "/rechunk/m/auto/raw", None, Nothing),
    ("a chunk of a level", "GET", "/pyramid/{mount}/{method}/{chunks}/{codec}/{key}", "/pyramid/m/mean/1024,1024/raw/arr/1/c/0/0", None, Nothing),
    ("an image of an array", "GET", "/pyramid/{mount}/{method}/{chunks}/{codec}/{key}", "/pyramid/m/auto/auto/raw/arr/zarr.json", None, Nothing),
    ("a listing of images", "GET", "/pyramid/{mount}/{method}/{chunks}/{codec}/", "/pyramid/m/auto/auto/raw/?format=json", None, Nothing),
    ("a mount as pyramids", "GET", "/pyramid/{mount}/{method}/{chunks}/{codec}", "/pyramid/m/auto/auto/raw", None, Nothing),
    ("buckets", "GET", "/s3/", "/s3/", None, Nothing),
    ("a page of a bucket", "GET", "/s3/{mount}", "/s3/m?list-type=2&prefix=many/", None, Nothing),
    ("an object", "GET", "/s3/{mount}/{key}", "/s3/m/value", None, Nothing),
    ("an object that is written", "PUT", "/s3/{mount}/{key}", "/s3/l/new", None, Stalled(LONG)),
    ("one under a condition", "PUT", "/s3/{mount}/{key}", "/s3/s/new", NEW, Stalled(LONG)),
    ("one of unknown length", "PUT", "/s3/{mount}/{key}", "/s3/s/new", NEW, StalledChunked(LONG)),
    ("a new upload in parts", "POST", "/s3/{mount}/{key}", "/s3/l/new?uploads", None, Nothing),
    ("an erased object", "DELETE", "/s3/{mount}/{key}", "/s3/l/none", None, Nothing),
    ("a bucket that is there", "PUT", "/s3/{mount}", "/s3/l", None, Nothing),
    ("objects to erase", "POST", "/s3/{mount}", "/s3/l?delete", None, Stalled(MIB)),
    ("objects to erase of unknown length", "POST", "/s3/{mount}", "/s3/l?delete", None, StalledChunked(MIB)),
    ("uploads", "GET", "/s3/{mount}", "/s3/l?uploads", None, Nothing),
    ("elements", "GET", "/v1/data/{mount}/{path}", "/v1/data/m/arr", None, Nothing),
    ("elements for numpy", "GET", "/v1/data/{mount}/{path}", "/v1/data/m/arr?format=npy", None, Nothing),
    ("elements in JSON", "GET", "/v1/data/{mount}/{path}", "/v1/data/m/arr?format=json&slice=:64", None, Nothing),
    ("elements in CSV", "GET", "/v1/data/{mount}/{path}", "/v1/data/m/arr?format=csv&slice=:64", None, Nothing),
    ("elements for Arrow", "GET", "/v1/data/{mount}/{path}", "/v1/data/m/arr?format=arrow&slice=:64", None, Nothing),
    ("downsampled elements", "GET", "/v1/data/{mount}/{path}", "/v1/data/m/arr?downsample=2,1", None, Nothing),
    ("elements that fit", "GET", "/v1/data/{mount}/{path}", "/v1/data/m/arr?fit=1000,1000&method=max&format=npy", None, Nothing),
    ("means over a dimension", "GET", "/v1/data/{mount}/{path}", "/v1/data/m/rows?reduce.1=mean", None, Nothing),
    ("deviations for JSON", "GET", "/v1/data/{mount}/{path}", "/v1/data/m/rows?reduce.1=std&format=json", None, Nothing),
    ("decoded elements by label", "GET", "/v1/data/{mount}/{path}", "/v1/data/m/labelled?sel.row=0..&decode=cf", None, Nothing),
    ("a table", "GET", "/v1/data/{mount}/{path}", "/v1/data/m/arr?coords=1&slice=:1024", None, Nothing),
    ("a table in JSON", "GET", "/v1/data/{mount}/{path}", "/v1/data/m/rows?coords=1&format=json", None, Nothing),
    ("a table for Arrow", "GET", "/v1/data/{mount}/{path}", "/v1/data/m/labelled?coords=1&format=arrow", None, Nothing),
    ("a table in Parquet", "GET", "/v1/data/{mount}/{path}", "/v1/data/m/floats?format=parquet&slice=:1024", None, Nothing),
    ("a table of a list", "POST", "/v1/data/{mount}/{path}", "/v1/data/m/labelled", None, Json(r#"{"isel":{"row":["::-1",0]},"coords":1}"#)),
    ("a NetCDF file", "GET", "/v1/data/{mount}/{path}", "/v1/data/m/arr?format=nc", None, Nothing),
    ("a GeoTIFF file", "GET", "/v1/data/{mount}/{path}", "/v1/data/m/plane?format=tiff&slice=:2048", None, Nothing),
    ("values by DAP", "GET", "/dap/{mount}/{path}", "/dap/m/arr.dods", None, Nothing),
    ("values by DAP as text", "GET", "/dap/{mount}/{path}", "/dap/m/arr.ascii?arr[0:1:15]%5B0:1:4095]", None, Nothing),
    ("attributes by DAP", "GET", "/dap/{mount}/{path}", "/dap/m/doc.das", None, Nothing),
    ("values by DAP4", "GET", "/dap/{mount}/{path}", "/dap/m/arr.dap", None, Nothing),
    ("metadata by DAP4", "GET", "/dap/{mount}/{path}", "/dap/m/doc.dmr", None, Nothing),
    ("values by DAP4 of the root", "GET", "/dap/{mount}", "/dap/a.dap?dap4.checksum=false", None, Nothing),
    ("values by DAP of the root", "GET", "/dap/{mount}", "/dap/a.dods?a%5B0:1:1023]%5B0:1:4095]", None, Nothing),
    ("elements of the root", "GET", "/v1/data/{mount}", "/v1/data/a", None, Nothing),
    ("elements of a list", "POST", "/v1/data/{mount}/{path}", "/v1/data/m/labelled", None, Json(r#"{"isel":{"row":["::-1",0]}}"#)),
    ("elements at points", "POST", "/v1/data/{mount}/{path}", "/v1/data/m/labelled", None, Json(r#"{"points":{"row":[0,9,3,3]},"format":"npy"}"#)),
    ("a long selection", "POST", "/v1/data/{mount}/{path}", "/v1/data/m/labelled", None, Stalled(LONG)),
    ("elements of the root for a body", "POST", "/v1/data/{mount}", "/v1/data/a", None, Json("{}")),
    ("statistics of elements", "GET", "/v1/stats/{mount}/{path}", "/v1/stats/m/arr?percentiles=2,98&histogram=65536&slice=:64", None, Nothing),
    ("statistics over a dimension of all rows", "GET", "/v1/stats/{mount}/{path}", "/v1/stats/m/rows?over=1&histogram=64", None, Nothing),
    ("statistics over a dimension", "GET", "/v1/stats/{mount}/{path}", "/v1/stats/m/rows?over=1&percentiles=2,98&histogram=64&slice=:1024", None, Nothing),
    ("statistics of the root's elements", "GET", "/v1/stats/{mount}", "/v1/stats/a", None, Nothing),
    ("a picture", "GET", "/v1/image/{mount}/{path}", "/v1/image/m/arr?size=2048", None, Nothing),
    ("a picture of all pixels", "GET", "/v1/image/{mount}/{path}", "/v1/image/m/arr?size=max", None, Nothing),
    ("a picture of bytes", "GET", "/v1/image/{mount}/{path}", "/v1/image/m/bytes?size=max&range=0,255", None, Nothing),
    ("a picture of the root", "GET", "/v1/image/{mount}", "/v1/image/a", None, Nothing),
    ("a tile", "GET", "/tiles/{mount}/{tms}/{z}/{x}/{y}/{path}", "/tiles/m/native/4/0/0/arr?tile=512", None, Nothing),
    ("a tile of the root", "GET", "/tiles/{mount}/{tms}/{z}/{x}/{y}", "/tiles/a/native/0/0/0", None, Nothing),
    ("tiles", "GET", "/v1/tilejson/{mount}/{path}", "/v1/tilejson/m/arr", None, Nothing),
    ("tiles of the root", "GET", "/v1/tilejson/{mount}", "/v1/tilejson/a", None, Nothing),
    ("a legend", "GET", "/v1/legend/{mount}/{path}", "/v1/legend/m/arr?width=1024&height=1024", None, Nothing),
    ("a legend of the root", "GET", "/v1/legend/{mount}", "/v1/legend/a?format=json", None, Nothing),
    ("a legend of a colormap", "GET", "/v1/legend", "/v1/legend?width=1024&height=1024", None, Nothing),
    ("a chunk", "GET", "/v1/chunk/{mount}/{path}", "/v1/chunk/m/arr/c/0/0", None, Nothing),
    ("a batch", "POST", "/v1/batch/{mount}", "/v1/batch/m", None, Json(r#"{"items":[{"path":"arr"},{"path":"rows","format":"npy"},{"path":"labelled","coords":1},{"path":"rows"},{"path":"arr"}]}"#)),
    ("a long batch", "POST", "/v1/batch/{mount}", "/v1/batch/m", None, Stalled(LONG)),
    ("many values", "POST", "/v1/partial/{mount}", "/v1/partial/m", None, Json(r#"{"get":[{"key":"value"},{"key":"value"}]}"#)),
    ("a long question", "POST", "/v1/partial/{mount}", "/v1/partial/l", None, Stalled(LONG)),
    ("many erased", "POST", "/v1/erase/{mount}", "/v1/erase/l", None, Json(r#"{"keys":["none"]}"#)),
    ("a node of the root", "GET", "/v1/nodes/{mount}", "/v1/nodes/m", None, Nothing),
    ("a page", "GET", "/view/{mount}/{path}", "/view/m/doc", None, Nothing),
    ("a page of the root", "GET", "/view/{mount}", "/view/m/", None, Nothing),
    ("mounts", "GET", "/v1/mounts", "/v1/mounts", None, Nothing),
    ("versions", "GET", "/v1/versions/{mount}", "/v1/versions/i", None, Nothing),
    ("the service", "GET", "/", "/", None, Nothing),
    ("liveness", "GET", "/healthz", "/healthz", None, Nothing),
    ("readiness", "GET", "/readyz", "/readyz", None, Nothing),
    ("metrics", "GET", "/metrics", "/metrics", None, Nothing),
    ("the API document", "GET", "/openapi.json", "/openapi.json", None, Nothing),
    ("a purge", "DELETE", "/v1/cache/{mount}", "/v1/cache/m", None, Nothing),
    ("a purge of a prefix", "DELETE", "/v1/cache/{mount}/{prefix}", "/v1/cache/m/arr", None, Nothing),
    ("a warm mount", "POST", "/v1/cache/{mount}", "/v1/cache/a", None, Nothing),
    ("a warm node", "POST", "/v1/cache/{mount}/{prefix}", "/v1/cache/m/arr", None, Nothing),
    ("vectors at the root", "GET", "/v1/vectors/{mount}", "/v1/vectors/c", None, Nothing),
    ("vectors", "GET", "/v1/vectors/{mount}/{path}", "/v1/vectors/v/points_cloud.zarrvectors", None, Nothing),
    ("a question about vectors", "POST", "/v1/vectors/{mount}/{path}", "/v1/vectors/v/points_cloud.zarrvectors/vertices", None, Json("{}")),
    ("a level", "GET", ZARRVECTORS, "/v1/vectors/v/points_cloud.zarrvectors/levels/0", None, Nothing),
    ("amplification", "GET", "/v1/vectors/{mount}/{path}/levels/{level}/amplification", "/v1/vectors/v/points_cloud.zarrvectors/levels/0/amplification", None, Nothing),
    ("chunks of vectors", "GET", "/v1/vectors/{mount}/{path}/levels/{level}/chunks", "/v1/vectors/v/points_cloud.zarrvectors/levels/0/chunks", None, Nothing),
    ("a chunk of vectors", "GET", "/v1/vectors/{mount}/{path}/levels/{level}/chunks/{chunk}", "/v1/vectors/v/points_cloud.zarrvectors/levels/0/chunks/0.0.0", None, Nothing),
    ("links", "GET", "/v1/vectors/{mount}/{path}/levels/{level}/links", "/v1/vectors/v/streamlines.zarrvectors/levels/0/links", None, Nothing),
    ("objects", "GET", "/v1/vectors/{mount}/{path}/levels/{level}/objects", "/v1/vectors/v/streamlines.zarrvectors/levels/0/objects", None, Nothing),
    ("an object of vectors", "GET", "/v1/vectors/{mount}/{path}/levels/{level}/objects/{id}", "/v1/vectors/v/streamlines.zarrvectors/levels/0/objects/0", None, Nothing),
    ("its edges", "GET", "/v1/vectors/{mount}/{path}/levels/{level}/objects/{id}/edges", "/v1/vectors/v/streamlines.zarrvectors/levels/0/objects/0/edges", None, Nothing),
    ("its vertices", "GET", "/v1/vectors/{mount}/{path}/levels/{level}/objects/{id}/vertices", "/v1/vectors/v/streamlines.zarrvectors/levels/0/objects/0/vertices", None, Nothing),
    ("statistics", "GET", "/v1/vectors/{mount}/{path}/levels/{level}/stats", "/v1/vectors/v/points_cloud.zarrvectors/levels/0/stats", None, Nothing),
    ("vertices", "GET", "/v1/vectors/{mount}/{path}/levels/{level}/vertices", "/v1/vectors/v/points_cloud.zarrvectors/levels/0/vertices", None, Nothing),
    ("vertices that are not counted", "GET", "/v1/vectors/{mount}/{path}/levels/{level}/vertices", "/v1/vectors/m/cloud/levels/0/vertices", None, Nothing),
    ("vertices that are not counted, as bytes", "GET", "/v1/vectors/{mount}/{path}/levels/{level}/vertices", "/v1/vectors/m/cloud/levels/0/vertices?format=bin", None, Nothing),
    ("validation", "GET", "/v1/vectors/{mount}/{path}/validate", "/v1/vectors/v/points_cloud.zarrvectors/validate", None, Nothing),
    ("a listing in HTML", "GET", "/store/{mount}/{key}", "/store/m/many/", None, Nothing),
    ("a plain listing in HTML", "GET", "/plain/{mount}/{key}", "/plain/m/many/", None, Nothing),
    ("keys directly under a prefix by WebDAV", "PROPFIND", "/store/{mount}/{key}", "/store/m/many/", Some(("depth", "1")), Nothing),
    ("all keys in HTML", "GET", "/store/{mount}/", "/store/m/?recursive", None, Nothing),
    ("all keys by WebDAV", "PROPFIND", "/store/{mount}/{key}", "/store/m/many/", Some(("depth", "infinity")), Nothing),
    ("consolidated metadata", "GET", "/store/{mount}/{key}", "/store/m/groups/zarr.json?consolidated", None, Nothing),
    ("consolidated metadata of what is rechunked", "GET", "/rechunk/{mount}/{chunks}/{codec}/{key}", "/rechunk/m/auto/raw/groups/zarr.json", None, Nothing),
    ("consolidated metadata of images", "GET", "/pyramid/{mount}/{method}/{chunks}/{codec}/{key}", "/pyramid/m/auto/auto/raw/groups/zarr.json", None, Nothing),
    ("all keys of images", "GET", "/pyramid/{mount}/{method}/{chunks}/{codec}/", "/pyramid/k/auto/1/raw/?recursive", None, Nothing),
    ("all keys of declared arrays", "GET", "/plain/{mount}/", "/plain/k/?recursive", None, Nothing),
    ("all inner chunks", "GET", "/unshard/{mount}/", "/unshard/k/?recursive", None, Nothing),
    ("all inner chunks below a prefix", "GET", "/unshard/{mount}/{key}", "/unshard/k/shards/?recursive", None, Nothing),
    ("all rechunked keys", "GET", "/rechunk/{mount}/{chunks}/{codec}/", "/rechunk/k/1/raw/?recursive", None, Nothing),
    ("a node", "GET", "/v1/nodes/{mount}/{path}", "/v1/nodes/m/doc", None, Nothing),
    ("a dataset", "GET", "/v1/nodes/{mount}/{path}", "/v1/nodes/m/doc?dataset", None, Nothing),
    ("elements to write", "PUT", "/v1/data/{mount}/{path}", "/v1/data/l/arr?format=bytes", None, Stalled(ELEMENTS)),
    ("elements to write in JSON", "PUT", "/v1/data/{mount}/{path}", "/v1/data/l/arr?format=json", None, StalledChunked(8 * MIB)),
    ("elements to write to the root", "PUT", "/v1/data/{mount}", "/v1/data/l?format=bytes", None, Stalled(ELEMENTS)),
    ("elements to append", "POST", "/v1/data/{mount}/{path}", "/v1/data/l/arr?append=0&format=bytes", None, Stalled(ELEMENTS)),
    ("elements to append to the root", "POST", "/v1/data/{mount}", "/v1/data/l?append=0&format=bytes", None, Stalled(ELEMENTS)),
    ("a chunk to write", "PUT", "/v1/chunk/{mount}/{path}", "/v1/chunk/l/arr/c/0/0?format=bytes", None, Stalled(ELEMENTS / 4)),
    ("a node to create", "PUT", "/v1/nodes/{mount}/{path}", "/v1/nodes/l/new", None, Stalled(MIB)),
    ("a root to create", "PUT", "/v1/nodes/{mount}", "/v1/nodes/l", None, Stalled(MIB)),
    ("a change of a node", "PATCH", "/v1/nodes/{mount}/{path}", "/v1/nodes/l/arr", None, Stalled(MIB)),
    ("a change of the root", "PATCH", "/v1/nodes/{mount}", "/v1/nodes/l", None, Stalled(MIB)),
];

/// Stores the largest of everything below a directory.
fn fill(root: &Path) {
    let write = |path: &str, bytes: &[u8]| {
        let file = root.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, bytes).unwrap();
    };
    let group = |length: usize| {
        let document =
            json!({ "zarr_format": 3, "node_type": "group", "attributes": { "text": "x".repeat(length) } });
        document.to_string().into_bytes()
    };
    write("m/zarr.json", &group(0));
    write("m/doc/zarr.json", &group(2_000_000));
    write("m/value", &vec![7; 32 << 20]);
    write("l/value", &vec![7; 16 << 20]);
    write("e/value", b"one");
    for name in 0..NAMES {
        write(&format!("m/many/{name:0>LONG_NAME$}"), b"");
    }
    let inline = json!({ "kind": "inline", "must_understand": false, "metadata": {} });
    let groups = json!({ "zarr_format": 3, "node_type": "group", "consolidated_metadata": inline });
    write("m/groups/zarr.json", groups.to_string().as_bytes());
    for name in 0..8 {
        write(&format!("m/groups/{name}/zarr.json"), &group(1 << 18));
    }
    // Shards of one inner chunk, which is one byte. Another array is declared, so that every view has to read them.
    let bytes = json!([{ "name": "bytes" }]);
    let index = json!([{ "name": "bytes", "configuration": { "endian": "little" } }]);
    let sharding = json!({ "chunk_shape": [1], "codecs": bytes, "index_codecs": index });
    let shards = json!({
        "zarr_format": 3, "node_type": "array", "shape": [SHARDS], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [1] } },
        "chunk_key_encoding": { "name": "default" },
        "codecs": [{ "name": "sharding_indexed", "configuration": sharding }],
        "attributes": { "dependent-arrays": { "one": { "data_type": "uint8", "fill_value": 0 } } },
    });
    write("k/shards/zarr.json", shards.to_string().as_bytes());
    let shard = [[7].as_slice(), &0_u64.to_le_bytes(), &1_u64.to_le_bytes()].concat();
    std::fs::create_dir_all(root.join("k/shards/c")).unwrap();
    for number in 0..SHARDS {
        std::fs::write(root.join(format!("k/shards/c/{number}")), &shard).unwrap();
    }
    let document_of = |shape: [usize; 2], data_type: &str, chunk: [usize; 2]| {
        json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": 1,
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunk } },
            "chunk_key_encoding": { "name": "default" },
            "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
        })
    };
    let document = |data_type: &str, edge: usize| document_of([4096; 2], data_type, [edge; 2]);
    let array = document("float32", 2048);
    write("m/arr/zarr.json", array.to_string().as_bytes());
    // Many rows with few elements each, because a reduction takes long in a build that is not optimised.
    write("m/rows/zarr.json", document_of([4096, 64], "float32", [4096, 64]).to_string().as_bytes());
    write("m/rows/c/0/0", &vec![7; 4096 * 64 * 4]);
    // The same with labels, and packed.
    let mut labelled = document_of([4096, 64], "float32", [4096, 64]);
    labelled["dimension_names"] = json!(["row", "column"]);
    labelled["attributes"] = json!({ "scale_factor": 0.5 });
    write("m/labelled/zarr.json", labelled.to_string().as_bytes());
    write("m/labelled/c/0/0", &vec![7; 4096 * 64 * 4]);
    labelled["shape"] = json!([4096]);
    labelled["chunk_grid"]["configuration"]["chunk_shape"] = json!([4096]);
    labelled["data_type"] = json!("float64");
    labelled["dimension_names"] = json!(["row"]);
    write("m/row/zarr.json", labelled.to_string().as_bytes());
    let rows: Vec<u8> = (0..4096).flat_map(|row| f64::from(row).to_le_bytes()).collect();
    write("m/row/c/0", &rows);
    // The same with a place on a map.
    let mut plane = document("float32", 2048);
    plane["dimension_names"] = json!(["y", "x"]);
    write("m/plane/zarr.json", plane.to_string().as_bytes());
    for name in ["y", "x"] {
        labelled["dimension_names"] = json!([name]);
        write(&format!("m/{name}/zarr.json"), labelled.to_string().as_bytes());
        write(&format!("m/{name}/c/0"), &rows);
    }
    // Of bytes that cannot be compressed, and of few stored chunks.
    let bytes = document("uint8", 128);
    write("m/bytes/zarr.json", bytes.to_string().as_bytes());
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    let chunk: Vec<u8> = (0..128 * 128).map(|_| next()).collect();
    for at in 0..1024 {
        write(&format!("m/bytes/c/{}/{}", at / 32, at % 32), &chunk);
    }
    write("m/floats/zarr.json", document("float32", 128).to_string().as_bytes());
    let chunk: Vec<u8> = chunk.iter().flat_map(|&number| f32::from(number).to_le_bytes()).collect();
    for at in 0..1024 {
        write(&format!("m/floats/c/{}/{}", at / 32, at % 32), &chunk);
    }
    // A chunk of fill values alone would be none.
    write("m/arr/c/0/0", &vec![7; 2048 * 2048 * 4]);
    write("a/zarr.json", array.to_string().as_bytes());
    for folder in ["l", "l/arr"] {
        write(&format!("{folder}/zarr.json"), document("uint8", 2048).to_string().as_bytes());
    }
    fill_vectors(root);
    fill_containers(root);
}

/// Stores a level with one chunk of many vertices, which declares none.
fn fill_vectors(root: &Path) {
    let write = |path: &str, bytes: &[u8]| {
        let file = root.join("m/cloud").join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, bytes).unwrap();
    };
    let group = |attributes: Value| {
        json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes }).to_string().into_bytes()
    };
    let format = json!({
        "zv_version": "0.9.2", "chunk_shape": [100, 100], "bounds": [[0, 0], [99, 99]], "geometry_types": ["point_cloud"],
    });
    let scales = json!([{ "axes": [{ "name": "x" }, { "name": "y" }], "datasets": [{ "path": "0" }] }]);
    write("zarr.json", &group(json!({ "zarr_vectors": format, "multiscales": scales })));
    write("0/zarr.json", &group(json!({ "zarr_vectors_level": { "level": 0, "vertex_count": 0 } })));
    let vertices = json!({
        "zarr_format": 3, "node_type": "array", "shape": [1, 1], "data_type": "variable_length_bytes", "fill_value": "",
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [1, 1] } },
        "chunk_key_encoding": { "name": "default" }, "codecs": [{ "name": "vlen-bytes" }],
        "attributes": { "nonempty_chunks": ["0.0"], "dtype": "float32", "encoding": "raw" },
    });
    write("0/vertices/zarr.json", vertices.to_string().as_bytes());
    let points: Vec<u8> = (0..VERTICES)
        .flat_map(|number| [f32::from_bits(0x4200_0000 + number), f32::from_bits(0x4240_0000 + number)])
        .flat_map(f32::to_le_bytes)
        .collect();
    let length = u32::try_from(points.len()).unwrap().to_le_bytes();
    write("0/vertices/c/0/0", &[1_u32.to_le_bytes().as_slice(), &length, &points].concat());
}

/// Stores a document of references and a zip file.
fn fill_containers(root: &Path) {
    let value = root.join("m/value").display().to_string();
    let mut refs = json!({ "inline": "x".repeat(4 << 20), "whole": [value], "part": [value, 100, 31 << 20] });
    for name in 0..NAMES {
        refs[format!("many/{name:0>LONG_NAME$}")] = json!("x");
    }
    std::fs::write(root.join("refs.json"), refs.to_string()).unwrap();
    let entries = [("stored", 0, 32 << 20), ("deflated", 8, 20 << 20)];
    std::fs::write(root.join("files.zip"), zip(&entries)).unwrap();
}

/// A zip file with entries of zeros: their names, how they are kept, and how long they are.
fn zip(entries: &[(&str, u16, usize)]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, method, size) in entries {
        let zeros = vec![0; *size];
        let mut crc = flate2::Crc::new();
        crc.update(&zeros);
        let data = if *method == 0 {
            zeros
        } else {
            let mut stream = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut stream, &zeros).unwrap();
            stream.finish().unwrap()
        };
        let [packed, size] = [data.len(), *size].map(|length| u32::try_from(length).unwrap());
        let mut fields = vec![0; 2];
        fields.extend(method.to_le_bytes());
        fields.extend([0; 4]);
        fields.extend([crc.sum(), packed, size].map(u32::to_le_bytes).concat());
        fields.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        fields.extend([0; 2]);
        let offset = u32::try_from(file.len()).unwrap();
        file.extend([b"PK\x03\x04\x14\0".as_slice(), fields.as_slice(), name.as_bytes(), &data].concat());
        directory.extend([b"PK\x01\x02\x14\0\x14\0".as_slice(), fields.as_slice(), &[0; 10]].concat());
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let count = u16::try_from(entries.len()).unwrap().to_le_bytes();
    let places = [directory.len(), file.len()].map(|length| u32::try_from(length).unwrap().to_le_bytes());
    [file, directory, b"PK\x05\x06\0\0\0\0".to_vec(), [count, count].concat(), places.concat(), vec![0; 2]]
        .concat()
}

/// What is served to the public and to the administrator.
struct Server {
    state: AppState,
    site: Endpoint,
    admin: Endpoint,
}

/// A server of every kind of store, without caches.
async fn served(root: &Path, read: ReadLimits) -> Server {
    let cpu = ComputePool::new(ComputePoolOptions { threads: 2 }).unwrap();
    let bucket = json!({ "endpoint": "http://127.0.0.1:1", "allow_http": true });
    let bucket: StoreOptions = serde_json::from_value(bucket).unwrap();
    let open = |url: &str, options: &StoreOptions, writable: bool| -> SharedStore {
        open(url, &StoreOptions { writable, ..options.clone() }, &cpu).unwrap()
    };
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/vectors/real");
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/icechunk/history-2");
    let (plain, references) = (StoreOptions::default(), references::options(root));
    let mount = |name: &str, url: &str, writable: bool| {
        let options = match url.split_once(':') {
            Some(("s3", _)) => &bucket,
            Some(("kerchunk+file", _)) => &references,
            _ => &plain,
        };
        let store = open(url, options, writable);
        Mount { writable, allow_prefix_delete: writable, ..Mount::read_only(name, store) }
    };
    let folder = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let mounts = [
        mount("m", &folder("m"), false),
        mount("a", &folder("a"), false),
        mount("k", &folder("k"), false),
        mount("l", &folder("l"), true),
        mount("e", &folder("e"), true),
        mount("z", &folder("files.zip"), false),
        mount("w", "memory://", true),
        mount("s", "s3://bucket/prefix", true),
        mount("r", &format!("kerchunk+file://{}", folder("refs.json")), false),
        mount("i", &format!("icechunk+file://{repository}"), false),
        mount("v", vectors, false),
        mount("c", &format!("{vectors}/points_cloud.zarrvectors"), false),
    ];
    let source = Arc::new(DirectSource::new(cpu.clone(), FetchOptions::default()));
    let writer = ArrayWriter::new(cpu.clone(), WriteOptions::default(), zarrd::config::unix_seconds);
    let arrays = ArrayEngine {
        reader: Reader::new(source, cpu.clone()),
        appends: AppendWriter::new(writer.clone(), cpu.clone()),
        writer,
        cpu,
        memo: Arc::new(BoundedNodeCache::new(0)),
        answers_bytes: 0,
        encoded: EncodedCache::new(0),
        caches: Caches::default(),
        read,
        pyramid: PyramidOptions::default(),
        metadata: MetadataLimits::default(),
        codec: CodecLimits::default(),
    };
    let options = HttpOptions { public_metrics: true, ..HttpOptions::default() };
    let state = AppState::new(mounts, arrays, options).unwrap();
    let site = Endpoint::whole(state.clone());
    let value = Request::put("/store/w/value").body(Body::from(vec![7; 16 << 20])).unwrap();
    assert_eq!(site.handle(value, Peer::LOOPBACK).await.status(), 201);
    let admin = Endpoint::admin(&state);
    Server { state, site, admin }
}

/// A request in flight whose client does nothing: its answer, of which the first bytes were taken, or its upload.
struct InFlight {
    _answer: Option<(BodyDataStream, Option<Bytes>)>,
    upload: Option<tokio::task::JoinHandle<()>>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(task) = &self.upload {
            task.abort();
        }
    }
}

/// Begins a request. Stalled parts count themselves.
async fn begin(server: &Server, row: &Row, stalled: &Arc<AtomicUsize>) -> InFlight {
    let (name, method, _, url, header, sent) = row;
    let site = if url.starts_with("/v1/cache/") { &server.admin } else { &server.site };
    let mut request = Request::builder().method(*method).uri(*url);
    if let Some((name, value)) = header {
        request = request.header(*name, *value);
    }
    let body = match sent {
        Nothing => Body::empty(),
        Json(text) => Body::from(*text),
        Stalled(bytes) | StalledChunked(bytes) => {
            if matches!(sent, Stalled(_)) {
                request = request.header("content-length", bytes.to_string());
            }
            let last = (bytes >> 16) - 1;
            let pieces = (0..=last).map(move |piece| {
                // The last has a byte less.
                Ok::<_, axum::Error>(Bytes::from(vec![7; (64 << 10) - usize::from(piece == last)]))
            });
            let stalled = Arc::clone(stalled);
            let end = futures::stream::once(async move {
                stalled.fetch_add(1, Ordering::SeqCst);
                std::future::pending().await
            });
            Body::from_stream(futures::stream::iter(pieces).chain(end))
        }
    };
    let request = request.body(body).unwrap();
    if matches!(sent, Stalled(_) | StalledChunked(_)) {
        let (site, name) = (site.clone(), *name);
        let upload = tokio::spawn(async move {
            let answer = site.handle(request, Peer::LOOPBACK).await;
            eprintln!("{name}: {}", answer.status());
        });
        return InFlight { _answer: None, upload: Some(upload) };
    }
    let answer = site.handle(request, Peer::LOOPBACK).await;
    let status = answer.status();
    assert!(status.is_success() || status.is_redirection(), "{name}: {status}");
    let mut body = answer.into_body().into_data_stream();
    let first = body.next().await.transpose().unwrap();
    InFlight { _answer: Some((body, first)), upload: None }
}

/// The bytes held for some of these requests, and the bytes charged by their permits.
async fn measure(server: &Server, row: &Row) -> (u64, u64) {
    let state = &server.state;
    let stalled = Arc::new(AtomicUsize::new(0));
    let is_upload = matches!(row.5, Stalled(_) | StalledChunked(_));
    if !is_upload {
        // Allocations of the first request of a kind happen once.
        drop(begin(server, row, &stalled).await);
    }
    settled(|| state.traffic.load().in_flight_bytes == 0).await;
    let before = counting::live();
    let in_flight = join_all((0..TOGETHER).map(|_| begin(server, row, &stalled))).await;
    if is_upload {
        let all = usize::try_from(TOGETHER).unwrap();
        assert!(
            settled(|| stalled.load(Ordering::SeqCst) == all).await,
            "{}: not all of it was taken",
            row.0
        );
    }
    let held = || counting::live().saturating_sub(before);
    // Work on other threads may still free memory.
    settled(|| held() <= state.traffic.load().in_flight_bytes + TOGETHER * LITTLE_BYTES).await;
    let measured = (held(), state.traffic.load().in_flight_bytes);
    drop(in_flight);
    assert!(settled(|| state.traffic.load().in_flight_bytes == 0).await, "{}: a permit is left over", row.0);
    measured
}

/// Waits for something to come about, for some seconds. Whether it did.
async fn settled(is_so: impl Fn() -> bool) -> bool {
    for _ in 0..200 {
        if is_so() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    is_so()
}

/// Says to a process which of the parts it measures.
const PART: &str = "ZARRD_HELD_PART";
/// Parts of the rows, before the part that is no row.
const PARTS: usize = 3;

#[test]
fn what_is_held_for_a_client_that_does_nothing_is_charged_on_every_route() {
    if let Some(part) = std::env::var_os(PART) {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(measure_part(part.to_str().unwrap().parse().unwrap()));
        return;
    }
    every_route_has_a_row();
    let program = std::env::current_exe().unwrap();
    let measure =
        |part: usize| Command::new(&program).arg("--nocapture").env(PART, part.to_string()).spawn().unwrap();
    let parts: Vec<Child> = (0..=PARTS).map(measure).collect();
    let failed: Vec<bool> = parts.into_iter().map(|mut part| !part.wait().unwrap().success()).collect();
    assert!(!failed.contains(&true), "the parts that failed: {failed:?}");
}

fn every_route_has_a_row() {
    let api: Value = serde_json::from_str(&zarrd::web::openapi()).unwrap();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for method in ["get", "put", "post", "patch", "delete"] {
            let is_known = |row: &&Row| row.2 == path.as_str() && row.1.eq_ignore_ascii_case(method);
            let known = ROWS.iter().find(is_known);
            // A node is erased once, and neither the request nor the response has a body.
            let is_once = method == "delete" && path.starts_with("/v1/nodes/");
            let is_missing = methods.get(method).is_some() && known.is_none() && !is_once;
            assert!(!is_missing, "no row for {method} {path}");
        }
    }
}

#[expect(clippy::print_stdout, reason = "the output of a test")]
async fn measure_part(part: usize) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    fill(folder.path());
    if part == PARTS {
        println!("{}", references::a_million_references_take_no_more_than_their_budget(folder.path()).await);
        pictures_of_many_pixels_take_two_bands_and_a_byte_for_each_pixel(folder.path()).await;
        return;
    }
    let server = served(folder.path(), ReadLimits::default()).await;
    let mut over = Vec::new();
    for row in ROWS.iter().skip(part).step_by(PARTS) {
        let (held, charged) = measure(&server, row).await;
        let line = format!("{}: {} KiB held, {} KiB charged", row.0, held >> 10, charged >> 10);
        println!("{line}");
        if held > charged + TOGETHER * LITTLE_BYTES {
            over.push(line);
        }
    }
    assert!(over.is_empty(), "more is held than is charged: {over:#?}");
}

/// Asserts what pictures of 16 megapixels have in memory while they are read, drawn, written and sent: two bands of elements and
/// 16 MiB, and no more than is charged.
async fn pictures_of_many_pixels_take_two_bands_and_a_byte_for_each_pixel(root: &Path) {
    // Of eight bands, two are read when six wait as pixels: what these lack of 16 MiB has the mask of the pixels, and what is being
    // written. Of more and smaller bands it would depend on the time how much of that is there at once.
    const BAND: u64 = 8 * MIB;
    // Chunks that are being fetched have a budget of their own.
    let fetched = FetchOptions::default().max_concurrency as u64 * 128 * 128 * 4;
    let server = served(root, ReadLimits { segment_size: BAND, ..ReadLimits::default() }).await;
    for url in ["/v1/image/m/bytes?size=max&range=0,255", "/v1/image/m/floats?size=max&range=0,255"] {
        // Allocations of the first request of a kind happen once.
        sent(&server, &format!("{url}&box=0,0,1024,1536")).await;
        settled(|| server.state.traffic.load().in_flight_bytes == 0).await;
        let before = counting::begin_peak();
        let (state, charged) = (server.state.clone(), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&charged);
        let sampling = tokio::spawn(async move {
            loop {
                let bytes = usize::try_from(state.traffic.load().in_flight_bytes).unwrap();
                seen.fetch_max(bytes, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        let sent = sent(&server, url).await;
        sampling.abort();
        let (peak, charged) = (counting::peak() - before, charged.load(Ordering::SeqCst) as u64);
        let sizes = format!("{url}: {peak} bytes at the peak, {charged} charged, {sent} sent");
        assert!(peak <= 2 * BAND + 16 * MIB + fetched, "{sizes}");
        assert!(peak <= charged + fetched + LITTLE_BYTES, "{sizes}");
    }
}

/// The bytes of a picture whose length is not known before, taken as they come.
async fn sent(server: &Server, url: &str) -> u64 {
    let request = Request::get(url).body(Body::empty()).unwrap();
    let answer = server.site.handle(request, Peer::LOOPBACK).await;
    assert!(answer.status() == 200 && !answer.headers().contains_key("content-length"), "{url}");
    let mut body = answer.into_body().into_data_stream();
    let mut sent = 0;
    while let Some(piece) = body.next().await.transpose().unwrap() {
        sent += piece.len() as u64;
    }
    sent
}

/// The system's allocator, with a count of bytes that are not freed.
#[expect(unsafe_code, reason = "an allocator cannot be written otherwise; it passes on what it is given")]
mod counting {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[global_allocator]
    static ALLOCATOR: Counting = Counting { live: AtomicU64::new(0), peak: AtomicU64::new(0) };

    struct Counting {
        live: AtomicU64,
        /// The most that were allocated at a time.
        peak: AtomicU64,
    }

    impl Counting {
        fn add(&self, bytes: usize) {
            let live = self.live.fetch_add(bytes as u64, Relaxed) + bytes as u64;
            self.peak.fetch_max(live, Relaxed);
        }
    }

    /// Begins to count the most bytes that are allocated at a time. Returns what is allocated now.
    pub(super) fn begin_peak() -> u64 {
        ALLOCATOR.peak.store(live(), Relaxed);
        live()
    }

    /// The most bytes that were allocated at a time since then.
    pub(super) fn peak() -> u64 {
        ALLOCATOR.peak.load(Relaxed)
    }

    /// Bytes that are allocated now.
    pub(super) fn live() -> u64 {
        ALLOCATOR.live.load(Relaxed)
    }

    // SAFETY: every call is passed on to the system's allocator as it came.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            self.add(layout.size());
            // SAFETY: the caller keeps what `alloc` asks for.
            unsafe { System.alloc(layout) }
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            self.add(layout.size());
            // SAFETY: the caller keeps what `alloc_zeroed` asks for.
            unsafe { System.alloc_zeroed(layout) }
        }

        unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            self.add(size);
            self.live.fetch_sub(layout.size() as u64, Relaxed);
            // SAFETY: the caller keeps what `realloc` asks for.
            unsafe { System.realloc(pointer, layout, size) }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            self.live.fetch_sub(layout.size() as u64, Relaxed);
            // SAFETY: the caller keeps what `dealloc` asks for.
            unsafe { System.dealloc(pointer, layout) }
        }
    }
}
