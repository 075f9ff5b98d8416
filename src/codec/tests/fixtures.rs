//! Values that numcodecs wrote, decoded to the bytes it was given. They stand beside a checkout, not in it.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Items, byte_chain};
use crate::metadata::DataType;

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
            assert!(chain.decode_items(value).unwrap() == expected, "{}", encoded.display());
            let again = chain.encode_items(Bytes::copy_from_slice(expected)).unwrap();
            assert!(chain.decode_items(again).unwrap() == expected, "{}", encoded.display());
            checked += 1;
        }
    }
    assert!(checked > 10, "{codec}: {checked}");
}

/// The data type of an `.npy` file.
fn data_type(npy: &[u8]) -> DataType {
    let header = String::from_utf8_lossy(npy.get(..128).unwrap_or(npy)).into_owned();
    let descr = header.split("'descr': '").nth(1).unwrap().split('\'').next().unwrap();
    DataType::from_v2(&json!(descr)).unwrap().0
}

/// Encodes every array of a filter's fixture to the bytes that numcodecs made, and decodes those to what differs from
/// the array by `tolerance` at most.
fn check_filter(codec: &str, variant: &str, tolerance: impl Fn(&Value) -> f64) {
    let folder = folder(codec).join(variant);
    if !folder.exists() {
        println!("absent, not checked: {}", folder.display());
        return;
    }
    let mut checked = 0;
    for codec_folder in sorted(&folder, "codec.") {
        let config: Value =
            serde_json::from_slice(&std::fs::read(codec_folder.join("config.json")).unwrap()).unwrap();
        for encoded in sorted(&codec_folder, "encoded.") {
            let number = encoded.file_name().unwrap().to_str().unwrap().split('.').nth(1).unwrap().to_owned();
            let npy = std::fs::read(folder.join(format!("array.{number}.npy"))).unwrap();
            let (data_type, decoded) = (data_type(&npy), elements(&npy));
            let count = (decoded.len() / data_type.item_bytes()) as u64;
            let list = json!([[format!("numcodecs.{codec}"), config], ["bytes", {"endian": "little"}]]);
            let chain = super::bind(list, data_type.clone(), &[count]).unwrap();
            let value = Bytes::from(std::fs::read(&encoded).unwrap());
            let ours = chain.encode_items(Bytes::copy_from_slice(decoded)).unwrap();
            assert!(ours == value, "{}: {config}", encoded.display());
            let back = chain.decode_items(value).unwrap();
            let tolerance = tolerance(&config);
            if tolerance == 0.0 {
                assert!(back == decoded, "{}: {config}", encoded.display());
            } else {
                assert_eq!(data_type, DataType::Float64);
                for (back, decoded) in back.as_chunks().0.iter().zip(decoded.as_chunks().0) {
                    let difference = f64::from_le_bytes(*back) - f64::from_le_bytes(*decoded);
                    assert!(difference.abs() <= tolerance, "{}: {config}: {difference}", encoded.display());
                }
            }
            checked += 1;
        }
    }
    assert!(checked > 0, "{codec} {variant}");
}

#[test]
fn filters_make_what_numcodecs_made_and_give_back_what_it_was_given() {
    for variant in ["int32", "uint16"] {
        check_filter("delta", variant, |_| 0.0);
    }
    check_filter("astype", "i", |_| 0.0);
    check_filter("packbits", "", |_| 0.0);
}

#[test]
fn filters_that_lose_something_make_what_numcodecs_made_and_come_near_it() {
    check_filter("delta", "float64", |_| 1e-9);
    check_filter("astype", "f", |_| 1e-3);
    check_filter("fixedscaleoffset", "", |config| 0.5001 / config["scale"].as_f64().unwrap() + 1e-9);
    check_filter("quantize", "", |config| {
        // Half a unit of what it is stored as, for numbers up to 1100.
        let stored = if config["astype"] == "<f2" { 0.5 } else { 1e-4 };
        0.5 * 10_f64.powf(-config["digits"].as_f64().unwrap()) + stored
    });
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
