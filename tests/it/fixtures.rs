//! Arrays that other implementations wrote read as their readers agree.

use std::path::{Path, PathBuf};

use axum::http::StatusCode;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::support::server::{Server, cpu};

/// The codecs that must be read, with `numcodecs.` before them or without.
const CODECS: [&str; 22] = [
    "adler32",
    "astype",
    "bitround",
    "blosc",
    "bytes",
    "bz2",
    "crc32",
    "crc32c",
    "delta",
    "fixedscaleoffset",
    "fletcher32",
    "gzip",
    "jenkins_lookup3",
    "lz4",
    "lzma",
    "packbits",
    "quantize",
    "sharding_indexed",
    "shuffle",
    "transpose",
    "zlib",
    "zstd",
];

/// One array of an `expected.json`.
struct Fixture(Value);

impl Fixture {
    fn path(&self) -> &str {
        self.0["path"].as_str().unwrap()
    }

    fn expect(&self) -> &str {
        self.0["expect"].as_str().unwrap()
    }

    /// Whether everything the array uses is of the core, or a type of fixed size, that must be read: what else there is may be refused as not
    /// supported, never read wrongly.
    fn is_core(&self) -> bool {
        let data_type = self.0["dtype"].as_str().unwrap_or_default();
        let codecs: Vec<&str> =
            self.0["codecs"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let core_codec = |name: &str| {
            let name = name.strip_suffix("@end").or(name.strip_suffix("@start")).unwrap_or(name);
            CODECS.contains(&name.strip_prefix("numcodecs.").unwrap_or(name))
        };
        let names = codecs.iter().flat_map(|codec| codec.split(['(', ')', ',']));
        let mut names = names
            .map(|name| name.split(':').next().unwrap())
            .filter(|name| !name.is_empty() && !name.starts_with('@'));
        if self.0["zarr_format"] == 2 {
            let number = data_type.trim_start_matches(['<', '>', '|']);
            return number.starts_with(['b', 'i', 'u', 'f', 'c', 'V', 'S', 'U', 'M', 'm'])
                && names.all(core_codec);
        }
        let known = [
            "bool",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "float16",
            "float32",
            "float64",
            "complex64",
            "complex128",
        ];
        let raw = data_type.strip_prefix('r').is_some_and(|bits| bits.parse::<u32>().is_ok());
        let configured = [
            "numpy.datetime64",
            "numpy.timedelta64",
            "fixed_length_utf32",
            "null_terminated_bytes",
            "raw_bytes",
        ];
        let configured =
            self.0["dtype"]["name"].as_str().is_some_and(|data_type| configured.contains(&data_type));
        (raw || configured || known.contains(&data_type)) && names.all(core_codec)
    }

    /// The selections with their hashes: the whole array first.
    fn selections(&self) -> Vec<(String, String)> {
        let mut selections: Vec<_> =
            self.0["sha256"].as_str().map(|hash| (String::new(), hash.to_owned())).into_iter().collect();
        for slice in self.0["slices"].as_array().into_iter().flatten() {
            let dims: Vec<String> = slice["sel"]
                .as_array()
                .unwrap()
                .iter()
                .map(|dim| {
                    let numbers: Vec<String> = dim.as_array().unwrap().iter().map(Value::to_string).collect();
                    numbers.join(":")
                })
                .collect();
            selections.push((dims.join(","), slice["sha256"].as_str().unwrap().to_owned()));
        }
        selections
    }
}

fn hash(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// Little-endian float16 with every NaN the canonical one.
fn with_plain_nans(elements: &[u8]) -> Vec<u8> {
    let number = |pair: &[u8]| u16::from_le_bytes([pair[0], pair[1]]);
    let plain = |bits: u16| if bits & 0x7fff > 0x7c00 { 0x7e00 } else { bits };
    elements.chunks(2).flat_map(|pair| plain(number(pair)).to_le_bytes()).collect()
}

fn encode(path: &str) -> String {
    path.split('/')
        .map(|name| {
            percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
        })
        .collect::<Vec<_>>()
        .join("/")
}

/// Reads every array below `root` through the server; returns how many were read right and how many refused.
async fn check(root: &Path) -> (usize, usize) {
    let options = zarrd::store::StoreOptions::default();
    let store = zarrd::store::open(root.to_str().unwrap(), &options, &cpu()).unwrap();
    let server = Server::of(store);
    let expected: Vec<Value> =
        serde_json::from_slice(&std::fs::read(root.join("expected.json")).unwrap()).unwrap();
    let (mut right, mut refused, mut wrong) = (0, 0, Vec::new());
    for fixture in expected.into_iter().map(Fixture) {
        let url = format!("/v1/data/m/{}", encode(fixture.path()));
        match fixture.expect() {
            "reject" => {
                let answer = server.get(&url).await;
                if answer.status.is_success() {
                    wrong.push(format!("{}: read, though every reader rejects it", fixture.path()));
                }
                refused += 1;
            }
            "value" => {
                let mut supported = true;
                for (slice, sha256) in fixture.selections() {
                    let answer = server.get(&format!("{url}?slice={slice}")).await;
                    if answer.status == StatusCode::NOT_IMPLEMENTED && !fixture.is_core() {
                        supported = false;
                    } else if answer.status != StatusCode::OK {
                        wrong.push(format!(
                            "{} [{slice}]: {} {:?}",
                            fixture.path(),
                            answer.status,
                            answer.body
                        ));
                    } else {
                        // zarr-python loses what a float16 NaN carries; the specification, and we, keep it.
                        let half = fixture.0["dtype"] == "float16";
                        if hash(&answer.body) != sha256
                            && !(half && hash(&with_plain_nans(&answer.body)) == sha256)
                        {
                            wrong.push(format!(
                                "{} [{slice}]: other bytes than its readers agree on",
                                fixture.path()
                            ));
                        }
                    }
                }
                if supported { right += 1 } else { refused += 1 }
            }
            // Whatever it is, it must be an answer.
            _ => assert_ne!(server.get(&url).await.code_or_ok(), "internal", "{}", fixture.path()),
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    (right, refused)
}

fn manifest(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[tokio::test]
async fn arrays_written_by_zarr_python_read_as_their_readers_agree() {
    let (right, refused) = check(&manifest("tests/data/zarr-python")).await;
    println!("{right} arrays read right, {refused} refused");
    assert!(right >= 345, "{right}");
}

#[tokio::test]
async fn arrays_of_codec_extensions_read_as_their_readers_agree() {
    assert_eq!(check(&manifest("tests/data/extensions")).await, (47, 0));
}

#[tokio::test]
async fn rectilinear_grids_written_by_zarr_python_read_as_it_reads_them() {
    assert_eq!(check(&manifest("tests/data/rectilinear")).await, (20, 0));
}

#[tokio::test]
async fn arrays_of_other_projects_read_as_their_readers_agree() {
    let root = manifest("../shared/data/public");
    if !root.is_dir() {
        println!("the other projects' fixtures are not here: nothing to compare with");
        return;
    }
    let (right, refused) = check(&root).await;
    println!("{right} arrays read right, {refused} refused");
    assert!(right >= 298, "{right}");
}
