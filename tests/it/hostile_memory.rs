//! Decompression bombs: declared sizes are not allocated, and the server's peak memory stays where it was, whatever it is
//! made to read. A short JSON text of many values neither.
#![cfg(target_os = "linux")]

use std::path::Path;

use futures::future::join_all;
use serde_json::json;

use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::Array;
use crate::support::process::{Running, peak, zarrd};

const LITTLE: Codec = Codec::Bytes { big: false };
/// How much the peak may grow.
const MOST_BYTES: u64 = 64 << 20;
/// The decoded length of each bomb.
const BOMB_BYTES: usize = 256 << 20;
/// Requests for one bomb at a time.
const AT_ONCE: usize = 4;

fn write(root: &Path, path: &str, bytes: &[u8]) {
    let file = root.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, bytes).unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::GzBuilder::new().write(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

/// 256 MiB of zeros in gzip members of 1 MiB, a thousandth as long.
fn gzip_bomb() -> Vec<u8> {
    let member = vec![0; 1 << 20];
    gzip(&member).repeat(BOMB_BYTES / member.len())
}

/// 256 MiB of zeros in one zstd frame.
fn zstd_bomb() -> Vec<u8> {
    zstd::stream::encode_all(std::io::Read::take(std::io::repeat(0), BOMB_BYTES as u64), 1).unwrap()
}

/// 1 MiB of zeros as compressed by Python's bz2 and lzma.
const BZ2_OF_1_MIB: &str =
    "425a683931415926535938571ce50008084000c0040008200030cc0529a60806c4201e2ee48a70a12070ae39ca";
const XZ_OF_1_MIB: &str = "fd377a585a000004e6d6b4460200210116000000742fe5a3efffff00d95d00006ffdffffa3b7ff473e481572396151b89228e6a38607f9eee41e82d32fc53a3c014bb17ec98a8a4d2fa30dd97fa6e38c231153e05918c5758ae277f8b6947f0c6ac0de744964e2e95c53b204d8f7440cab5f0d6d46e9e5c37688b79657acb64de1691d6ffb4b88106c42cb883f5c008fd04eaf262894711f3d8f24e1709ea7235fec28cb85d195988a7e2a91f22775f719c006984d98fdd8afd5900fc42553f8f591363105a5b0ee6fc1704d470cd19111aaad601dbaceb127185c5986e9665258bee976ac59e4e55b0508f9c7daadfcfb522af7e495250000000000c2f6ba3ea2706b600001f5018080400079977f47b1c467fb020000000004595a";

/// 256 MiB of zeros in streams of 1 MiB.
fn streams_of(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| u8::try_from(char::from(byte).to_digit(16).unwrap()).unwrap();
    let one: Vec<u8> = hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
    one.repeat(BOMB_BYTES >> 20)
}

/// 256 MiB of zeros in one zlib stream.
fn zlib_bomb() -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0), BOMB_BYTES as u64), &mut encoder).unwrap();
    encoder.finish().unwrap()
}

/// A shard of 4 inner chunks, each of them these bytes.
fn shard_of(bomb: &[u8]) -> Vec<u8> {
    let length = bomb.len() as u64;
    let index: Vec<u8> = [0, length].repeat(4).iter().flat_map(|entry| entry.to_le_bytes()).collect();
    [bomb, &index, &crc32c::crc32c(&index).to_le_bytes()].concat()
}

#[tokio::test]
async fn decompression_bombs_do_not_grow_the_servers_memory() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (gzip_bomb, zstd_bomb) = (gzip_bomb(), zstd_bomb());
    let twice = gzip(&gzip_bomb);
    let inner_gzip = [Shards::of(&[1 << 20], &[LITTLE, Codec::Gzip]).codec()];
    let inner_zstd = [Shards::of(&[1 << 20], &[LITTLE, Codec::Zstd]).codec()];
    let plain = Array::of(&[1 << 22]).chunks(&[1 << 20]);
    let sharded = Array::of(&[1 << 22]);
    // Chunks just below the limit, of which next to nothing is there.
    let large = Array::of(&[200 << 20]);
    let of = |codec: &str| {
        let bytes = json!({ "name": "bytes", "configuration": { "endian": "little" } });
        plain.clone().members(json!({ "codecs": [bytes, { "name": codec, "configuration": {} }] }))
    };
    let bombs = [
        ("gzip", plain.clone().codecs([LITTLE, Codec::Gzip]), gzip_bomb.clone()),
        ("zstd", plain.clone().codecs([LITTLE, Codec::Zstd]), zstd_bomb.clone()),
        ("gzip-in-gzip", plain.clone().codecs([LITTLE, Codec::Gzip, Codec::Gzip]), twice.clone()),
        ("zstd-in-gzip", plain.clone().codecs([LITTLE, Codec::Zstd, Codec::Gzip]), gzip(&zstd_bomb)),
        ("sharded-gzip", sharded.clone().codecs(inner_gzip), shard_of(&gzip_bomb)),
        ("sharded-zstd", sharded.clone().codecs(inner_zstd), shard_of(&zstd_bomb)),
        ("large-gzip", large.clone().codecs([LITTLE, Codec::Gzip]), twice),
        ("large-zstd", large.codecs([LITTLE, Codec::Zstd]), zstd::bulk::compress(&[0], 1).unwrap()),
        // A frame with a content size of 2^46 and one with a window of 2^41 bytes.
        (
            "claim",
            plain.clone().codecs([LITTLE, Codec::Zstd]),
            b"\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\x40\0\0\x01\0\0".to_vec(),
        ),
        ("zlib", of("zlib"), zlib_bomb()),
        ("bz2", of("numcodecs.bz2"), streams_of(BZ2_OF_1_MIB)),
        ("xz", of("numcodecs.lzma"), streams_of(XZ_OF_1_MIB)),
        // A header of 2 GiB over nothing, and of 4 GiB less one over a literal.
        ("blosc", of("blosc"), b"\x02\x01\x21\x04\xef\xff\xff\x7f\0\0\x01\0\x14\0\0\0\x14\0\0\0".to_vec()),
        ("lz4", of("numcodecs.lz4"), b"\xff\xff\xff\xff\x10\0".to_vec()),
        ("window", plain.clone().codecs([LITTLE, Codec::Zstd]), b"\x28\xb5\x2f\xfd\0\xf8\x01\0\0".to_vec()),
    ];
    for (name, array, bomb) in &bombs {
        write(root, &format!("{name}/zarr.json"), array.document().1.to_string().as_bytes());
        write(root, &format!("{name}/c/0"), bomb);
    }
    let huge = json!({ "name": "regular", "configuration": { "chunk_shape": [1_u64 << 46] } });
    let huge = Array::of(&[4]).members(json!({ "shape": [1_u64 << 46], "chunk_grid": huge }));
    write(root, "huge/zarr.json", huge.document().1.to_string().as_bytes());
    let good = Array::of(&[1 << 20]).codecs([LITTLE, Codec::Zstd]);
    write(root, "good/zarr.json", good.document().1.to_string().as_bytes());
    write(root, "good/c/0", &good.chunk(&good.model(), &[0]));

    let mut command = zarrd(&["serve", &format!("bombs={}", root.display())]);
    // Without a cache of decoded chunks, whose growth would hide other growth.
    command.env("ZARRD__CACHE__DECODED_SIZE", "0");
    let server = Running::of(command);
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    let ask = |path: &str| {
        let url = format!("http://{}/v1/data/bombs/{path}", server.address);
        let answer = client.get(url).send();
        async move {
            let answer = answer.await.unwrap();
            (answer.status().as_u16(), answer.bytes().await.unwrap())
        }
    };
    for (status, body) in join_all((0..AT_ONCE).map(|_| ask("good"))).await {
        assert_eq!((status, body.len()), (200, 2 << 20));
    }
    let base = peak(&server);
    for (name, ..) in &bombs {
        // The second slice has an element of every inner chunk. The large ones have one chunk.
        let slices = if name.starts_with("large") { &["0"][..] } else { &["0", "::262144"] };
        for slice in slices {
            let path = format!("{name}?slice={slice}");
            for (status, body) in join_all((0..AT_ONCE).map(|_| ask(&path))).await {
                assert_eq!(status, 500, "{path}: {body:?}");
                let problem = String::from_utf8_lossy(&body);
                assert!(problem.contains("\"corrupt-data\""), "{path}: {problem}");
            }
            let grown = peak(&server).saturating_sub(base);
            assert!(grown < MOST_BYTES, "{path}: {} MiB more", grown >> 20);
        }
    }
    assert_eq!(ask("huge?slice=0").await.0, 413);
    assert_eq!(ask("good").await.0, 200);
    let grown = peak(&server).saturating_sub(base);
    println!("{} MiB at first, {} MiB more at most", base >> 20, grown >> 20);
    assert!(grown < MOST_BYTES, "{} MiB more", grown >> 20);
}

#[tokio::test]
async fn a_short_text_of_many_values_is_refused_before_it_is_parsed() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "v/zarr.json", br#"{"zarr_format":3,"node_type":"group","attributes":{}}"#);
    let mut command = zarrd(&["serve", "--writable", &format!("m={}", folder.path().display())]);
    command.env("ZARRD__HTTP__INFLIGHT_SIZE", "64MiB");
    let server = Running::of(command);
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    let send = async |method: &str, path: &str, body: String| {
        let url = format!("http://{}/v1/{path}", server.address);
        let request = client.request(method.parse().unwrap(), url).body(body);
        request.header("content-type", "application/json").send().await.unwrap().status().as_u16()
    };
    let nested = |list: &str| format!(r#"{{"node_type":"group","attributes":{{"a":{list}}}}}"#);
    assert_eq!(send("PUT", "nodes/m/small", nested("[0,[0]]")).await, 201);
    let base = peak(&server);
    for list in ["0,", "{},", "[0],"].map(|item| format!("[{}0]", item.repeat(1 << 20))) {
        assert_eq!(send("PUT", "nodes/m/new", nested(&list)).await, 413);
        assert_eq!(send("PATCH", "nodes/m/small", format!(r#"{{"attributes":{{"a":{list}}}}}"#)).await, 413);
        assert_eq!(send("POST", "vectors/m/v/vertices", format!(r#"{{"boxes":{list}}}"#)).await, 413);
    }
    let lists: Vec<String> =
        (0..32).map(|place| format!(r#""{place}":[{}0]"#, "0,".repeat(1 << 16))).collect();
    assert_eq!(send("POST", "data/m/v", format!(r#"{{"isel":{{{}}}}}"#, lists.join(","))).await, 413);
    let grown = peak(&server).saturating_sub(base);
    assert!(grown < MOST_BYTES, "{} MiB more", grown >> 20);
}

#[tokio::test]
async fn a_long_text_that_fills_many_elements_is_refused_before_it_is_repeated() {
    const ELEMENTS: u64 = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let group = json!({ "zarr_format": 3, "node_type": "group" });
    write(folder.path(), "g/zarr.json", group.to_string().as_bytes());
    let array = |shape: &[u64], names: &[&str], fill: String| {
        json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "string", "fill_value": fill,
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": shape } },
            "chunk_key_encoding": { "name": "default" }, "codecs": [{ "name": "vlen-utf8" }],
            "dimension_names": names,
        })
    };
    let long = "x".repeat(32 << 10);
    for (name, shape, names, fill) in [
        ("place", &[ELEMENTS][..], &["place"][..], &*long),
        ("at_places", &[ELEMENTS, 1], &["place", "z"], ""),
        // The name is in each line of the text of DAP.
        ("lines", &[ELEMENTS, 2], &["y", "x"], &long),
    ] {
        let document = array(shape, names, fill.to_owned());
        write(folder.path(), &format!("g/{name}/zarr.json"), document.to_string().as_bytes());
    }
    let server = Running::of(zarrd(&["serve", &format!("m={}", folder.path().display())]));
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    let ask = async |path: &str| {
        let url = format!("http://{}/{path}", server.address);
        client.get(url).send().await.unwrap().status().as_u16()
    };
    assert_eq!(ask("v1/data/m/g/place?slice=7&format=json").await, 200);
    // Those between them are not sent.
    assert_eq!(ask("v1/data/m/g/place?isel.place=0,1000000&format=json").await, 200);
    let base = peak(&server);
    for path in [
        "v1/data/m/g/place?format=json",
        "v1/data/m/g/place?format=csv",
        "v1/data/m/g/place?format=bytes",
        "v1/data/m/g/place?format=arrow",
        "v1/data/m/g/place?format=nc",
        "v1/data/m/g/place?isel.place=0,3,0:1000000&format=json",
        "v1/data/m/g/at_places?coords=1&format=csv",
        "v1/data/m/g/at_places?coords=1&format=parquet",
        "v1/data/m/g/at_places?sel.place=x&format=json",
        "dap/m/g/place.dods",
        "dap/m/g/place.ascii",
        "dap/m/g/place.dap",
        "dap/m/g/lines.ascii",
    ] {
        let status = ask(path).await;
        assert_eq!(status, 413, "{path}");
        let grown = peak(&server).saturating_sub(base);
        // Texts of up to 64 MiB are put together before they are refused, in memory that doubles.
        assert!(grown < 3 * MOST_BYTES, "{path}: {} MiB more", grown >> 20);
    }
    assert_eq!(ask("v1/data/m/g/place?slice=7&format=json").await, 200);
}
