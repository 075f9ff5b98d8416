//! Arbitrary payloads and metadata give a response or an error with a reason, never an internal error.

use std::path::Path;

use serde_json::{Value, json};

use super::{FOLDER, copied};
use crate::support::server::{Server, put};

/// Requests that read every part of a store.
const QUESTIONS: &[&str] = &[
    "",
    "/levels/0",
    "/vertices?columns=position,chunk,row,fragment,object_id",
    "/vertices?mode=objects_exact&bbox=0,0,0,50,50,50",
    "/vertices?mode=crop&format=arrow",
    "/chunks?include=keys,sizes,empty&verify=1",
    "/chunks/0.0.0",
    "/amplification",
    "/objects",
    "/objects/0/vertices",
    "/objects/0/edges",
    "/links",
    "/stats",
    "/validate",
];

/// Keys and their values.
type Values = Vec<(String, Vec<u8>)>;

/// The payloads of a store, and its documents.
fn files(store: &str) -> (Values, Values) {
    let root = Path::new(FOLDER).join(store);
    let (mut folders, mut payloads, mut documents) = (vec![root.clone()], Vec::new(), Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let key = format!("s/{}", path.strip_prefix(&root).unwrap().to_str().unwrap());
            let is_document = path.extension().is_some_and(|kind| kind == "json") || key.ends_with(".zattrs");
            let bytes = std::fs::read(&path).unwrap();
            if is_document { documents.push((key, bytes)) } else { payloads.push((key, bytes)) }
        }
    }
    (payloads, documents)
}

/// Sends all requests, and fails at an internal error.
async fn ask_all(server: &Server, what: &str) {
    ask_each(server, QUESTIONS, what).await;
}

async fn ask_each(server: &Server, routes: &[&str], what: &str) {
    for route in routes {
        let answer = server.get(&format!("/v1/vectors/m/s{route}")).await;
        let status = answer.status.as_u16();
        let is_reported =
            answer.status.is_success() || !matches!(&*answer.code(), "internal" | "overloaded" | "timed-out");
        assert!(is_reported, "{what} {route}: {status} {:?}", answer.body);
    }
}

#[tokio::test]
async fn corrupt_payloads_never_cause_internal_errors() {
    for store in ["real/graph", "doc/doc_streamlines", "v07/streamlines_v07"] {
        let store = &format!("{store}.zarrvectors");
        let copy = copied(store).await;
        let server = Server::of(std::sync::Arc::clone(&copy));
        for (turn, (key, bytes)) in files(store).0.into_iter().enumerate() {
            let mut changed =
                vec![Vec::new(), bytes[..bytes.len() / 2].to_vec(), vec![0xff; bytes.len().min(64)]];
            for place in [8, 24] {
                let mut bytes = bytes.clone();
                if let Some(byte) = bytes.get_mut(place) {
                    *byte ^= 0x81;
                    changed.push(bytes);
                }
            }
            // Every second change of a payload, and of the next one the others.
            for (number, bytes) in changed.into_iter().enumerate().skip(turn % 2).step_by(2) {
                put(&copy, &key, bytes).await;
                ask_all(&server, &format!("{store} {key} {number}")).await;
            }
            put(&copy, &key, bytes).await;
        }
    }
}

/// The document with each of its members replaced by each of some values.
fn changes(document: &Value, values: &[Value]) -> Vec<Value> {
    let mut changed = Vec::new();
    let names: Vec<String> = match document {
        Value::Object(members) => members.keys().cloned().collect(),
        Value::Array(items) => (0..items.len().min(2)).map(|place| place.to_string()).collect(),
        _ => Vec::new(),
    };
    for name in names {
        let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let member = document.pointer(&pointer).unwrap();
        let inner = changes(member, values);
        for value in values.iter().cloned().chain(inner) {
            let mut document = document.clone();
            *document.pointer_mut(&pointer).unwrap() = value;
            changed.push(document);
        }
    }
    changed
}

#[tokio::test]
async fn invalid_metadata_never_causes_internal_errors() {
    let values =
        [json!(null), json!(-1), json!(1e308), json!([i64::MIN, u64::MAX, 1e-308]), json!({"": "\u{0}"})];
    let store = "real/graph.zarrvectors";
    let copy = copied(store).await;
    let server = Server::of(std::sync::Arc::clone(&copy));
    for (key, bytes) in files(store).1 {
        let is_wanted = [
            "s/zarr.json",
            "s/0/zarr.json",
            "s/0/vertices/zarr.json",
            "s/0/links/0/zarr.json",
            "s/0/object_index/zarr.json",
        ];
        if !is_wanted.contains(&key.as_str()) {
            continue;
        }
        let mut document: Value = serde_json::from_slice(&bytes).unwrap();
        // Derived members that the server does not read.
        if let Some(attributes) = document["attributes"].as_object_mut() {
            attributes.remove("ome");
        }
        // Members that follow each other are replaced by different values.
        for (number, changed) in changes(&document, &values).into_iter().enumerate().step_by(3) {
            put(&copy, &key, changed.to_string()).await;
            ask_each(
                &server,
                &["", "/vertices", "/chunks", "/links", "/validate"],
                &format!("{key} {number}: {changed}"),
            )
            .await;
        }
        put(&copy, &key, bytes).await;
    }
}
