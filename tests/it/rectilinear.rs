//! Rectilinear chunk grids: their description in nodes, the chunks that are read, and invalid grids.

use axum::http::StatusCode;
use serde_json::{Value, json};
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::counting::Counting;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, Edges, memory};
use crate::support::server::{Answer, Server, put};

const LITTLE: Codec = Codec::Bytes { big: false };

/// A grid of these edges along each dimension, as they stand in a document.
fn grid(chunk_shapes: &Value) -> Value {
    json!({ "name": "rectilinear", "configuration": { "kind": "inline", "chunk_shapes": chunk_shapes } })
}

/// A server with an array of this shape and grid as `m/a`, and no chunks.
async fn serve(shape: &Value, chunk_shapes: &Value) -> (Server, SharedStore) {
    let store = memory();
    let rank = shape.as_array().unwrap().len();
    let members = json!({ "shape": shape, "chunk_grid": grid(chunk_shapes), "fill_value": 0 });
    let document = Array::of(&vec![1; rank]).members(members).document().1;
    put(&store, "a/zarr.json", document.to_string()).await;
    (Server::of(store.clone()), store)
}

async fn chunks(server: &Server) -> Value {
    let answer = server.get("/v1/nodes/m/a").await;
    assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.body);
    answer.json()["chunks"].clone()
}

#[tokio::test]
async fn a_node_lists_its_chunk_edges_along_each_dimension() {
    let (server, _) = serve(&json!([10, 12, 6]), &json!([4, [5, 7, 2, 2], [[2, 5]]])).await;
    let expected = json!({
        "chunk_shape": null, "grid_shape": [3, 2, 3], "sharded": false, "decoded_chunk_shape": null,
        "chunk_edges": [4, [5, 7, [2, 2]], [[2, 5]]],
    });
    assert_eq!(chunks(&server).await, expected);

    let (server, _) = serve(&json!([10, 12]), &json!([4, [[6, 2]]])).await;
    let expected = json!({
        "chunk_shape": [4, 6], "grid_shape": [3, 2], "sharded": false, "decoded_chunk_shape": [4, 6],
        "chunk_edges": [4, [[6, 2]]],
    });
    assert_eq!(chunks(&server).await, expected);
}

#[tokio::test]
async fn rectilinear_shards_have_inner_chunks_of_one_shape() {
    let store = memory();
    let codecs = [Codec::Transpose(vec![1, 0]), Shards::of(&[3, 2], &[LITTLE, Codec::Zstd]).codec()];
    let edges = [Edges::Each(vec![2, 4, 6]), Edges::Each(vec![6, 3])];
    Array::of(&[10, 9]).edges(&edges).codecs(codecs).store(&store, "a").await;
    let expected = json!({
        "chunk_shape": null, "grid_shape": [3, 2], "sharded": true, "decoded_chunk_shape": [2, 3],
        "chunk_edges": [[2, 4, 6], [6, 3]],
    });
    assert_eq!(chunks(&Server::of(store)).await, expected);
}

#[tokio::test]
async fn chunks_are_trimmed_to_the_array_and_none_beyond_it_is_requested() {
    let store = memory();
    let edges = [Edges::Each(vec![3, 1, 4, 9, 9])];
    Array::of(&[6]).edges(&edges).store(&store, "a").await;
    put(&store, "a/c/3", "what is never read").await;
    let counting = Counting::new(store);
    let server = Server::of(counting.clone());
    assert_eq!(server.elements("m/a", "").await.as_ref(), [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0]);
    assert_eq!(server.elements("m/a", "-1").await.as_ref(), [6, 0]);
    let last = server.get("/v1/chunk/m/a/c/2").await;
    assert_eq!((last.header("array-shape"), last.body.as_ref()), ("[2]", &[5, 0, 6, 0][..]));
    server.get("/v1/chunk/m/a/c/3").await.refuses(404, "not-found", "a chunk beyond the array");
    server.get("/v1/chunk/m/a/c/5").await.refuses(404, "not-found", "a chunk beyond the grid");
    // The three chunks with elements, once each.
    assert_eq!(counting.bytes(), 6 + 2 + 8);
}

#[tokio::test]
async fn a_chunk_shape_that_the_codecs_refuse_fails_that_chunk_alone() {
    let store = memory();
    let codecs = [Shards::of(&[2], &[LITTLE]).codec()];
    let array = Array::of(&[10]).edges(&[Edges::Each(vec![4, 2, 4])]).codecs(codecs);
    array.store(&store, "a").await;
    // The same array with another second chunk, which inner chunks do not divide.
    let mut document = array.document().1;
    document["chunk_grid"] = grid(&json!([[4, 3, 4]]));
    put(&store, "a/zarr.json", document.to_string()).await;
    let server = Server::of(store);
    assert_eq!(server.elements("m/a", "3").await.as_ref(), [4, 0]);
    assert_eq!(server.elements("m/a", "9").await.as_ref(), [9, 0]);
    let refused = server.get("/v1/data/m/a?slice=4").await;
    refused.refuses(500, "invalid-metadata", "a chunk of 3 in inner chunks of 2");
    assert_eq!(server.get("/v1/nodes/m/a").await.status, StatusCode::OK);

    document["chunk_grid"] = grid(&json!([[3, 4, 4]]));
    let store = memory();
    put(&store, "a/zarr.json", document.to_string()).await;
    let server = Server::of(store);
    server.get("/v1/data/m/a?slice=9").await.refuses(500, "invalid-metadata", "a first chunk of 3");
    let answer = server.get("/v1/nodes/m/a").await.json();
    assert!(answer["unreadable"].as_str().unwrap().contains("divide"), "{answer}");
}

#[tokio::test]
async fn the_cost_of_a_selection_is_exact_for_rectilinear_grids() {
    let store = memory();
    let edges = [Edges::Each(vec![1, 1, 1, 1, 10, 3, 3, 10])];
    Array::of(&[30]).edges(&edges).store(&store, "a").await;
    // Every fourth element lies in the chunks of 1, 10, 3 and 10 elements that begin at 0, 4, 14 and 20.
    for (chunks, decoded_bytes, status) in [(4, 48, 200), (3, 48, 413), (4, 47, 413)] {
        let mut server = Server::build(Mount::read_only("m", store.clone()));
        (server.read.max_chunks, server.read.max_decoded_size) = (chunks, decoded_bytes);
        let answer = server.finish().get("/v1/data/m/a?slice=::4").await;
        assert_eq!(answer.status.as_u16(), status, "{chunks} {decoded_bytes}: {:?}", answer.body);
    }
}

fn assert_too_large(answer: &Answer, what: &str) {
    answer.refuses(413, "too-large", what);
}

#[tokio::test]
async fn a_run_of_two_to_the_62_chunks_is_served_without_expansion() {
    let vast = 1_u64 << 62;
    let (server, store) = serve(&json!([vast]), &json!([[3, [1, vast]]])).await;
    put(&store, format!("a/c/{}", vast - 3).as_str(), vec![7, 0]).await;
    assert_eq!(chunks(&server).await["grid_shape"], json!([vast - 2]));
    assert_eq!(server.elements("m/a", "-1").await.as_ref(), [7, 0]);
    assert_eq!(server.elements("m/a", "2:6").await.as_ref(), [0; 8]);
    let refused = server.get("/v1/data/m/a").await;
    assert_too_large(&refused, "2^62 chunks");
    let suggested = refused.json()["suggested_slices"].as_array().unwrap().clone();
    assert!(!suggested.is_empty());
    for slice in suggested {
        server.elements("m/a", slice.as_str().unwrap()).await;
    }
}

#[tokio::test]
async fn chunks_too_large_to_decode_are_refused_and_their_neighbours_read() {
    let wide = 10_000_000;
    let (server, _) = serve(&json!([wide + 2, wide + 2]), &json!([[2, wide], [2, wide]])).await;
    assert_eq!(server.elements("m/a", ":2,:2").await.as_ref(), [0; 8]);
    assert_eq!(server.elements("m/a", "1,5:8").await.as_ref(), [0; 6]);
    assert_too_large(&server.get("/v1/data/m/a?slice=5,5").await, "a chunk of 10^14 elements");
}

#[tokio::test]
async fn edges_whose_sum_overflows_do_not_wrap_around() {
    let most = i64::MAX;
    let (server, _) = serve(&json!([most]), &json!([[[4, 2], [most, most], [most, most]]])).await;
    assert_eq!(server.elements("m/a", "6:8").await.as_ref(), [0; 4]);
    assert_too_large(&server.get("/v1/data/m/a?slice=8").await, "a chunk of 2^63 elements");
    // 2^32 edges of 2^32 would be 0.
    let short = json!([[[1_u64 << 31, 1_u64 << 31]]]);
    let (server, _) = serve(&json!([most]), &short).await;
    server.get("/v1/data/m/a?slice=0").await.refuses(500, "invalid-metadata", "edges that end too soon");
}

#[tokio::test]
async fn a_large_number_of_runs_is_planned_and_read_in_small_parts() {
    let edges: Vec<u64> = (0..200_000).map(|place| 1 + place % 3).collect();
    let length: u64 = edges.iter().sum();
    let (server, _) = serve(&json!([length, length]), &json!([edges, edges])).await;
    assert_eq!(server.elements("m/a", "-1,-2:").await.as_ref(), [0; 4]);
    for slice in ["", "::2,::2", "::3,::-3"] {
        assert_too_large(&server.get(&format!("/v1/data/m/a?slice={slice}")).await, slice);
    }
}

#[tokio::test]
async fn a_grid_of_an_unknown_kind_is_unsupported_by_name() {
    let store = memory();
    let kind = json!({ "name": "rectilinear", "configuration": { "kind": "chunked", "chunk_shapes": "c" } });
    let document = Array::of(&[4]).members(json!({ "chunk_grid": kind })).document().1;
    put(&store, "a/zarr.json", document.to_string()).await;
    let answer = Server::of(store).get("/v1/data/m/a").await;
    assert!(answer.refuses(501, "unsupported", "an unknown kind").contains("chunked"));
}
