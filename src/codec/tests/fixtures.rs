//! Values that numcodecs wrote, decoded to the bytes it was given. They stand beside a checkout, not in it.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde_json::{Value, json};

use super::byte_chain;

fn folder(codec: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/public/numcodecs/fixture").join(codec)
}

/// The elements of an `.npy` file, in the order they have in it.
fn elements(npy: &[u8]) -> &[u8] {
    let (start, length) = match npy[6] {
        1 => (10, usize::from(u16::from_le_bytes([npy[8], npy[9]]))),
        _ => (12, u32::from_le_bytes([npy[8], npy[9], npy[10], npy[11]]).try_into().unwrap()),
    };
    &npy[start + length..]
}

fn sorted(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        entries.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix)).collect();
    paths.sort();
    paths
}

/// Decodes every value of the codec's fixture, encodes it again, and decodes that.
fn check(codec: &str) {
    let folder = folder(codec.trim_start_matches("numcodecs."));
    if !folder.exists() {
        println!("absent, not checked: {}", folder.display());
        return;
    }
    let mut checked = 0;
    for codec_folder in sorted(&folder, "codec.") {
        let config = std::fs::read(codec_folder.join("config.json")).unwrap();
        let config: Value = serde_json::from_slice(&config).unwrap();
        for encoded in sorted(&codec_folder, "encoded.") {
            let number = encoded.file_name().unwrap().to_str().unwrap().split('.').nth(1).unwrap().to_owned();
            let npy = std::fs::read(folder.join(format!("array.{number}.npy"))).unwrap();
            let expected = elements(&npy);
            let chain = byte_chain(json!([[codec, config]]), expected.len() as u64);
            let value = Bytes::from(std::fs::read(&encoded).unwrap());
            assert!(value.len() as u64 <= chain.encoded_limit());
            assert!(chain.decode(value).unwrap() == expected, "{}", encoded.display());
            let again = chain.encode(Bytes::copy_from_slice(expected)).unwrap();
            assert!(chain.decode(again).unwrap() == expected, "{}", encoded.display());
            checked += 1;
        }
    }
    assert!(checked > 10, "{codec}: {checked}");
}

#[test]
fn what_numcodecs_blosc_wrote_decodes_to_what_it_was_given() {
    check("blosc");
}

#[test]
fn what_numcodecs_gzip_wrote_decodes_to_what_it_was_given() {
    check("gzip");
}

#[test]
fn what_numcodecs_zlib_wrote_decodes_to_what_it_was_given() {
    check("zlib");
}

#[test]
fn what_numcodecs_zstd_wrote_decodes_to_what_it_was_given() {
    check("zstd");
}

#[test]
fn what_numcodecs_crc32c_wrote_decodes_to_what_it_was_given() {
    check("crc32c");
}

#[test]
fn what_numcodecs_lz4_wrote_decodes_to_what_it_was_given() {
    check("numcodecs.lz4");
}

#[test]
fn what_numcodecs_bz2_wrote_decodes_to_what_it_was_given() {
    check("numcodecs.bz2");
}

#[test]
fn what_numcodecs_lzma_wrote_decodes_to_what_it_was_given() {
    check("numcodecs.lzma");
}

#[test]
fn what_numcodecs_crc32_wrote_decodes_to_what_it_was_given() {
    check("numcodecs.crc32");
}

#[test]
fn what_numcodecs_adler32_wrote_decodes_to_what_it_was_given() {
    check("numcodecs.adler32");
}

#[test]
fn what_numcodecs_shuffle_wrote_decodes_to_what_it_was_given() {
    check("numcodecs.shuffle");
}
