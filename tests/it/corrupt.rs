//! Corrupt stored chunks are an error, whatever corrupts them: never fill values, never other elements, never
//! a crash of the server.

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use zarrd::store::SharedStore;

use crate::support::data_types::data_type;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, Format, memory};
use crate::support::server::{Server, put};

const LITTLE: Codec = Codec::Bytes { big: false };
const BLOSC: Codec = Codec::Blosc { cname: "lz4", shuffle: "shuffle" };

/// Two chunks of 64 elements each.
fn array(codecs: &[Codec]) -> Array {
    Array::of(&[128]).chunks(&[64]).codecs(codecs)
}

/// Asks for both chunks where the first has been replaced: an error that says which value is broken and why, while
/// the other is read as ever.
async fn assert_corrupt(array: &Array, chunk: &[u8], what: &str) {
    let store = memory();
    let model = array.store(&store, "a").await;
    put(&store, &format!("a/{}", array.chunk_key(&[0])), chunk.to_vec()).await;
    let server = Server::of(store);
    for url in ["/v1/data/m/a", "/v1/data/m/a?slice=5", "/v1/data/m/a?f=json", "/v1/chunk/m/a/c/0"] {
        let answer = server.get(url).await;
        let detail = answer.refuses(500, "corrupt-data", what);
        assert!(detail.contains("`a/"), "{what}: {detail}");
        assert_eq!(server.get(url).await.status, answer.status, "{what}: an error stays one");
    }
    assert_eq!(server.elements("m/a", "64:").await, model.elements[128..], "{what}");
}

#[tokio::test]
async fn a_corrupt_chunk_of_any_codec_is_an_error_that_names_the_chunk() {
    /// A frame with a content size of 2^46, and nothing in it.
    const ZSTD_OF_64_TIB: &[u8] = b"\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\x40\0\0\x01\0\0";
    /// The same behind a window of 2^41 bytes.
    const ZSTD_WINDOW_OF_2_TIB: &[u8] = b"\x28\xb5\x2f\xfd\0\xf8\x01\0\0";
    let cut = |bytes: &[u8], length: usize| bytes[..bytes.len() - length].to_vec();
    let flip = |bytes: &[u8], place: usize| {
        let mut bytes = bytes.to_vec();
        bytes[place] ^= 1;
        bytes
    };
    let more = |bytes: &[u8]| [bytes, b"junk"].concat();
    for codecs in [
        vec![LITTLE],
        vec![LITTLE, Codec::Crc32c],
        vec![LITTLE, Codec::Gzip],
        vec![LITTLE, Codec::Zstd],
        vec![LITTLE, BLOSC],
        vec![LITTLE, Codec::Gzip, Codec::Crc32c],
        vec![LITTLE, Codec::Zstd, Codec::Gzip],
        vec![Shards::of(&[16], &[LITTLE, Codec::Gzip]).codec()],
        vec![Shards::of(&[16], &[LITTLE, Codec::Crc32c]).at_start().codec()],
    ] {
        let array = array(&codecs);
        let good = array.chunk(&array.model(), &[0]);
        let what = |how: &str| format!("{codecs:?} {how}");
        assert_corrupt(&array, &[], &what("empty")).await;
        assert_corrupt(&array, b"?", &what("of one byte")).await;
        assert_corrupt(&array, &good[..good.len() / 2], &what("cut in half")).await;
        if !matches!(codecs[..], [Codec::Bytes { .. }]) {
            assert_corrupt(&array, &vec![0xff; good.len()], &what("of ones")).await;
        }
        // A shard's index at the start allows anything behind the inner chunks.
        if !matches!(&codecs[0], Codec::Shards(shards) if shards.at_start) {
            assert_corrupt(&array, &cut(&good, 1), &what("a byte short")).await;
            assert_corrupt(&array, &more(&good), &what("with something behind it")).await;
        }
    }
    for (codecs, chunk) in [
        (vec![LITTLE, Codec::Zstd], ZSTD_OF_64_TIB),
        (vec![LITTLE, Codec::Zstd], ZSTD_WINDOW_OF_2_TIB),
        // Frames of other than 128 bytes.
        (vec![LITTLE, Codec::Zstd], &zstd::bulk::compress(&[1; 127], 1).unwrap()),
        (vec![LITTLE, Codec::Zstd], &zstd::bulk::compress(&[1; 129], 1).unwrap()),
        (vec![LITTLE, Codec::Zstd], &zstd::bulk::compress(&[], 1).unwrap()),
        (vec![LITTLE, Codec::Gzip], b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0"),
        // Headers of blosc that lie: the length, the compressed length, no block, a size of elements of nothing.
        (vec![LITTLE, BLOSC], b"\x02\x01\x21\x02\xff\xff\xff\x7f\x80\0\0\0\x14\0\0\0junk"),
        (vec![LITTLE, BLOSC], b"\x02\x01\x21\x02\x80\0\0\0\x80\0\0\0\xff\xff\xff\x7fjunk"),
        (vec![LITTLE, BLOSC], b"\x02\x01\x21\x02\x80\0\0\0\0\0\0\0\x14\0\0\0junk"),
        (vec![LITTLE, BLOSC], b"\x02\x01\x21\0\x80\0\0\0\x80\0\0\0\x14\0\0\0junk"),
        (vec![LITTLE, BLOSC], b"\x02\x01\x21\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
    ] {
        assert_corrupt(&array(&codecs), chunk, &format!("{codecs:?} {chunk:x?}")).await;
    }
    let zlib = Format::V2 { compressor: Some(Codec::Zlib), fortran: false, big: true, separator: '.' };
    let v2 = array(&[]).format(zlib);
    let good = v2.chunk(&v2.model(), &[0]);
    assert_corrupt(&v2, &flip(&good, good.len() - 1), "zlib with another checksum").await;
    assert_corrupt(&v2, &cut(&good, 5), "zlib cut off").await;
}

#[tokio::test]
async fn every_flipped_bit_of_a_checksummed_chunk_is_detected() {
    let checked = array(&[LITTLE, Codec::Crc32c]);
    let good = checked.chunk(&checked.model(), &[0]);
    let (store, key) = (memory(), "a/c/0");
    checked.store(&store, "a").await;
    let server = Server::of(store.clone());
    for place in 0..good.len() {
        let mut chunk = good.clone();
        chunk[place] ^= 1 << (place % 8);
        put(&store, key, chunk).await;
        server.get("/v1/data/m/a?slice=0").await.refuses(500, "corrupt-data", "a flipped bit");
    }
}

/// The array of `uint8` [4] in inner chunks of 2, of which the first is stored.
fn small_shard(at_start: bool) -> Array {
    let shards = Shards::of(&[2], &[LITTLE]);
    let shards = if at_start { shards.at_start() } else { shards };
    Array::of(&[4]).data_type(data_type("uint8")).codecs([shards.codec()])
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

async fn with_shard(at_start: bool, shard: &[u8]) -> Server {
    let store: SharedStore = memory();
    let array = small_shard(at_start);
    put(&store, "a/zarr.json", array.document().1.to_string()).await;
    put(&store, "a/c/0", shard.to_vec()).await;
    Server::of(store)
}

#[tokio::test]
async fn shards_with_an_index_at_either_end_read_as_specified() {
    for (at_start, hex) in [
        (false, "0102 0000000000000000 0200000000000000 ffffffffffffffff ffffffffffffffff bd13bd56"),
        (true, "2400000000000000 0200000000000000 ffffffffffffffff ffffffffffffffff 2609790d 0102"),
    ] {
        let server = with_shard(at_start, &bytes(hex)).await;
        // 7 is the fill value.
        assert_eq!(server.elements("m/a", "").await.as_ref(), [1, 2, 7, 7]);
    }
}

#[tokio::test]
async fn a_shard_index_with_invalid_offsets_is_corrupt() {
    for (what, hex) in [
        ("overflows", "0102 f0ffffffffffffff 2000000000000000 ffffffffffffffff ffffffffffffffff 4cad860c"),
        (
            "is half absent",
            "0102 0000000000000000 0200000000000000 ffffffffffffffff 0500000000000000 ba15d3fa",
        ),
        (
            "has another checksum",
            "0102 0000000000000000 0200000000000000 ffffffffffffffff ffffffffffffffff bd13bd57",
        ),
        ("is cut off", "0000000000000000 0200000000000000 ffffffffffffffff ffffffffffffff"),
    ] {
        let server = with_shard(false, &bytes(hex)).await;
        for slice in ["", "0", "3"] {
            let answer = server.get(&format!("/v1/data/m/a?slice={slice}")).await;
            answer.refuses(500, "corrupt-data", what);
        }
    }
    for (what, entries) in [
        ("ends after the shard", [0, 39, u64::MAX, u64::MAX]),
        ("begins behind the shard", [100, 1, u64::MAX, u64::MAX]),
        ("lies in the index", [2, 2, u64::MAX, u64::MAX]),
        ("reaches into the index", [1, 2, u64::MAX, u64::MAX]),
        ("is as long as can be", [0, u64::MAX - 1, 0, 2]),
        ("is empty", [0, 0, u64::MAX, u64::MAX]),
        ("is too short", [0, 1, u64::MAX, u64::MAX]),
    ] {
        let index: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
        let checksum = crc32c::crc32c(&index).to_le_bytes();
        let server = with_shard(false, &[&[1, 2][..], &index, &checksum].concat()).await;
        server.get("/v1/data/m/a?slice=0").await.refuses(500, "corrupt-data", what);
    }
    // Two inner chunks that are the same bytes are legal.
    let index: Vec<u8> = [0_u64, 2, 0, 2].iter().flat_map(|entry| entry.to_le_bytes()).collect();
    let checksum = crc32c::crc32c(&index).to_le_bytes();
    let server = with_shard(false, &[&[1, 2][..], &index, &checksum].concat()).await;
    assert_eq!(server.elements("m/a", "").await.as_ref(), [1, 2, 1, 2]);
}

#[test]
fn random_damage_never_causes_an_internal_error() {
    let nested = Shards::of(&[16], &[Shards::of(&[8], &[LITTLE, Codec::Gzip]).at_start().codec()]).codec();
    let chains = [
        vec![LITTLE, Codec::Gzip],
        vec![LITTLE, Codec::Zstd],
        vec![LITTLE, BLOSC],
        vec![LITTLE, Codec::Blosc { cname: "zstd", shuffle: "bitshuffle" }],
        vec![LITTLE, Codec::Blosc { cname: "snappy", shuffle: "noshuffle" }],
        vec![LITTLE, Codec::Blosc { cname: "blosclz", shuffle: "shuffle" }],
        vec![LITTLE, Codec::Blosc { cname: "zlib", shuffle: "shuffle" }],
        vec![Shards { index_codecs: vec![LITTLE], ..Shards::of(&[16], &[LITTLE, Codec::Zstd]) }.codec()],
        vec![nested],
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let damage = prop::collection::vec(any::<(Index, u8)>(), 1..4);
    let cases = (any::<Index>(), damage, proptest::option::of(any::<Index>()));
    let mut runner = TestRunner::new(Config { cases: 256, failure_persistence: None, ..Config::default() });
    let run = runner.run(&cases, |(chain, damage, cut)| {
        let array = array(&chains[chain.index(chains.len())]);
        let mut chunk = array.chunk(&array.model(), &[0]);
        for (place, byte) in damage {
            let place = place.index(chunk.len());
            chunk[place] = byte;
        }
        if let Some(cut) = cut {
            chunk.truncate(cut.index(chunk.len()));
        }
        runtime.block_on(async {
            let store = memory();
            array.store(&store, "a").await;
            put(&store, "a/c/0", chunk).await;
            let server = Server::of(store);
            let answer = server.get("/v1/data/m/a?slice=:64").await;
            let code = answer.code_or_ok();
            assert!(code == "ok" && answer.body.len() == 128 || code == "corrupt-data", "{code}");
            assert_eq!(server.elements("m/a", "64:65").await.as_ref(), [65, 0]);
        });
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}
