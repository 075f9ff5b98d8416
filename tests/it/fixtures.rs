//! Arrays of other implementations: they read as the readers of those agree.

use std::path::{Path, PathBuf};

use axum::http::StatusCode;
use serde_json::Value;
use sha2::{Digest, Sha256};
use zarrd::store::{SharedStore, StoreOptions};

use crate::support::not_supported::NotSupported;
use crate::support::server::{Server, cpu};

/// One array of an `expected.json`.
struct Fixture(Value);

impl Fixture {
    fn path(&self) -> &str {
        self.0["path"].as_str().unwrap()
    }

    fn expect(&self) -> &str {
        self.0["expect"].as_str().unwrap()
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

/// JSON values as the fixtures' hashes have them: a string as the text it stands for, without quotes.
fn with_bare_strings(packed: &[u8]) -> Vec<u8> {
    let (mut rest, mut bare) = (packed, Vec::new());
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (text, next) = behind.split_at(u32::from_le_bytes(*length).try_into().unwrap());
        let text = match serde_json::from_slice(text).unwrap() {
            Value::String(string) => string.into_bytes(),
            _ => text.to_vec(),
        };
        bare.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
        bare.extend(text);
        rest = next;
    }
    bare
}

fn encode(path: &str) -> String {
    path.split('/')
        .map(|name| {
            percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
        })
        .collect::<Vec<_>>()
        .join("/")
}

/// Reads every array below `root` through the server: it is right, or in the list. Returns how many were read right, and
/// which were refused as the list has it.
async fn check(root: &Path) -> (usize, Vec<String>) {
    check_through(root, &Server::of(stored(root))).await
}

/// The store of fixtures.
pub fn stored(root: &Path) -> SharedStore {
    zarrd::store::open(root.to_str().unwrap(), &StoreOptions::default(), &cpu()).unwrap()
}

/// The same through a server that has the arrays, or what is made of them, in its mount `m`.
pub async fn check_through(root: &Path, server: &Server) -> (usize, Vec<String>) {
    check_some(root, server, |_| true).await
}

/// The same of the arrays at some paths.
pub async fn check_some(
    root: &Path,
    server: &Server,
    is_wanted: impl Fn(&str) -> bool,
) -> (usize, Vec<String>) {
    let expected: Vec<Value> =
        serde_json::from_slice(&std::fs::read(root.join("expected.json")).unwrap()).unwrap();
    let listed = NotSupported::read("arrays");
    let (mut right, mut refused, mut wrong) = (0, Vec::new(), Vec::new());
    for fixture in expected.into_iter().map(Fixture).filter(|fixture| is_wanted(fixture.path())) {
        let path = fixture.path();
        let url = format!("/v1/data/m/{}", encode(path));
        if listed.holds(path) {
            let answer = server.get(&url).await;
            if answer.status != StatusCode::NOT_IMPLEMENTED {
                wrong.push(format!("{path}: {}, though listed", answer.status));
            }
            refused.push(path.to_owned());
            continue;
        }
        match fixture.expect() {
            "reject" => {
                if server.get(&url).await.status.is_success() {
                    wrong.push(format!("{path}: read, though every reader rejects it"));
                }
            }
            "value" => {
                for (slice, sha256) in fixture.selections() {
                    let answer = server.get(&format!("{url}?slice={slice}")).await;
                    // zarr-python loses what a float16 NaN carries; the specification, and we, keep it.
                    let is_half = fixture.0["dtype"] == "float16";
                    let is_json = fixture.0["codecs"].to_string().contains("json2");
                    if answer.status != StatusCode::OK {
                        wrong.push(format!("{path} [{slice}]: {} {:?}", answer.status, answer.body));
                    } else if hash(&answer.body) != sha256
                        && !(is_half && hash(&with_plain_nans(&answer.body)) == sha256)
                        && !(is_json && hash(&with_bare_strings(&answer.body)) == sha256)
                    {
                        wrong.push(format!("{path} [{slice}]: other bytes than its readers agree on"));
                    }
                }
                right += 1;
            }
            "conflict" => assert_ne!(server.get(&url).await.code_or_ok(), "internal", "{path}"),
            // There is no reader to compare with; it must open.
            _ => {
                let answer = server.get(&url).await;
                if answer.status != StatusCode::OK {
                    wrong.push(format!("{path}: {} {:?}", answer.status, answer.body));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    (right, refused)
}

pub fn manifest(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[tokio::test]
async fn arrays_written_by_zarr_python_read_as_their_readers_agree() {
    let (right, refused) = check(&manifest("tests/data/zarr-python")).await;
    println!("{right} arrays read right");
    assert!(right >= 368, "{right}");
    assert_eq!(refused, [""; 0]);
}

#[tokio::test]
async fn arrays_of_codec_extensions_read_as_their_readers_agree() {
    assert_eq!(check(&manifest("tests/data/extensions")).await, (47, vec![]));
}

#[tokio::test]
async fn rectilinear_grids_written_by_zarr_python_read_as_it_reads_them() {
    assert_eq!(check(&manifest("tests/data/rectilinear")).await, (20, vec![]));
}

#[tokio::test]
async fn arrays_of_other_projects_read_as_their_readers_agree() {
    let root = manifest("../shared/data/public");
    if !root.is_dir() {
        println!("the other projects' fixtures are not here: nothing to compare with");
        return;
    }
    let (right, refused) = check(&root).await;
    println!("{right} arrays read right, {} refused", refused.len());
    assert!(right >= 338, "{right}");
    assert_eq!(NotSupported::read("arrays").without(&refused), [""; 0]);
}
