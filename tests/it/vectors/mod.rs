//! Stores in Zarr Vector Format (`tests/data/vectors`): those that a library wrote, in two versions of the format, and
//! those that follow the documents.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::too_many_lines,
    reason = "numbers of fixtures are small, a wrong one fails its test, and a table of cases is as long as it is"
)]

mod boxes;
mod counted;
mod edited;
mod formats;
mod hostile;
mod layouts;
mod objects;
mod validate;

use std::path::Path;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::Value;
use zarrd::http::Peer;
use zarrd::store::{SharedStore, StoreOptions};

use crate::support::hierarchy::memory;
use crate::support::server::{Answer, Server, cpu, put};

pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/vectors");

/// The stores in a folder of the fixtures.
pub fn stored(folder: &str) -> SharedStore {
    let path = Path::new(FOLDER).join(folder);
    zarrd::store::open(path.to_str().unwrap(), &StoreOptions::default(), &cpu()).unwrap()
}

pub fn server(folder: &str) -> Server {
    Server::of(stored(folder))
}

/// The expected results for the fixtures.
pub fn expected(file: &str) -> Value {
    serde_json::from_slice(&std::fs::read(Path::new(FOLDER).join(file)).unwrap()).unwrap()
}

/// The response of a route of a store.
pub async fn ask(server: &Server, route: &str) -> Answer {
    server.get(&format!("/v1/vectors/m/{route}")).await
}

/// The same as [`ask`], parsed as JSON.
pub async fn get_json(server: &Server, route: &str) -> Value {
    let answer = ask(server, route).await;
    assert_eq!(answer.status, StatusCode::OK, "{route}: {:?}", answer.body);
    answer.json()
}

/// The length of a response whose client reads nothing, and the bytes that are charged for it.
pub async fn held(server: &Server, route: &str) -> (u64, u64) {
    let request = Request::builder().uri(format!("/v1/vectors/m/{route}")).body(Body::empty()).unwrap();
    let answer = server.site().handle(request, Peer::LOOPBACK).await;
    assert_eq!(answer.status(), StatusCode::OK, "{route}");
    (answer.headers()["content-length"].to_str().unwrap().parse().unwrap(), server.in_flight_bytes())
}

/// Comma-separated numbers.
pub fn joined(numbers: &Value) -> String {
    let text = |number: &Value| number.as_str().map_or_else(|| number.to_string(), str::to_owned);
    let numbers: Vec<String> = numbers.as_array().unwrap().iter().map(text).collect();
    numbers.join(",")
}

/// Rows of numbers, sorted.
pub fn sorted(rows: &Value) -> Vec<Vec<f64>> {
    let number = |number: &Value| number.as_f64().unwrap();
    let row = |row: &Value| row.as_array().unwrap().iter().map(number).collect::<Vec<f64>>();
    let mut rows: Vec<Vec<f64>> = rows.as_array().unwrap().iter().map(row).collect();
    rows.sort_by(|one, other| one.partial_cmp(other).unwrap());
    rows
}

/// A copy of a fixture store in memory, at `s`.
pub async fn copied(store: &str) -> SharedStore {
    let copy = memory();
    let root = Path::new(FOLDER).join(store);
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let key = path.strip_prefix(&root).unwrap().to_str().unwrap();
                put(&copy, &format!("s/{key}"), std::fs::read(&path).unwrap()).await;
            }
        }
    }
    copy
}
