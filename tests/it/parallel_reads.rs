//! Which threads read the inner chunks of a shard: those that decode them, where the store is near and the chunks are long.

use std::sync::Arc;

use axum::http::StatusCode;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::counting::Counting;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, no_caches};

const URL: &str = "/v1/data/m/a";

/// A server of one shard of four inner chunks, each of `chunk` times `uint16`, the second of which is missing; its elements, and what
/// counts reads.
async fn served(chunk: usize, open: fn(SharedStore) -> Arc<Counting>) -> (Server, Vec<u8>, Arc<Counting>) {
    let store = memory();
    let shards = Shards::of(&[chunk], &[Codec::Bytes { big: false }, Codec::Zstd]).codec();
    let array = Array::of(&[4 * chunk]).codecs([shards]).random(1, &[vec![(chunk, chunk)]]);
    let model = array.store(&store, "a").await;
    let counting = open(store);
    let mut server = Server::build(Mount::read_only("m", counting.clone()));
    server.cache = no_caches();
    // No fetch has two chunks.
    server.fetch.max_coalesce_size = 1;
    (server.finish(), model.elements, counting)
}

/// Of the inner chunks that were read, how many were read by threads of the pool, and how many by others.
fn read_by(counting: &Counting) -> (usize, usize) {
    // The first read is that of the index.
    let threads = counting.threads().split_off(1);
    let on_pool = threads.iter().filter(|name| name.starts_with("cpu-")).count();
    (on_pool, threads.len() - on_pool)
}

#[tokio::test]
async fn threads_that_decode_read_long_chunks_of_a_near_store_and_no_other_chunks() {
    const LONG: usize = 128 << 10;
    for (chunk, open, expected) in [
        (LONG, Counting::new as fn(_) -> _, (3, 0)),
        (LONG, Counting::remote, (0, 3)),
        (1 << 10, Counting::new, (0, 3)),
    ] {
        let (server, elements, counting) = served(chunk, open).await;
        let answer = server.get(URL).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert!(answer.body == elements, "the elements are those of the model");
        assert_eq!(read_by(&counting), expected, "{chunk} elements");
    }
}

#[tokio::test]
async fn a_read_that_fails_on_the_pool_is_a_problem_and_the_next_one_succeeds() {
    let (server, elements, counting) = served(128 << 10, Counting::new).await;
    counting.fail(true);
    let answer = server.get(URL).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (StatusCode::BAD_GATEWAY, "application/problem+json")
    );
    counting.fail(false);
    assert!(server.get(URL).await.body == elements);
}
