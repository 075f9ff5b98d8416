//! Stores in Zarr Vector Format (`tests/data/vectors`): those that a library wrote, in two versions of the format, and
//! those that follow the documents.

mod boxes;

use std::path::Path;

use axum::http::StatusCode;
use serde_json::Value;
use zarrd::store::{SharedStore, StoreOptions};

use crate::support::server::{Answer, Server, cpu};

pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/vectors");

/// The stores of a folder of the fixtures.
pub fn stored(folder: &str) -> SharedStore {
    let path = Path::new(FOLDER).join(folder);
    zarrd::store::open(path.to_str().unwrap(), &StoreOptions::default(), &cpu()).unwrap()
}

pub fn server(folder: &str) -> Server {
    Server::of(stored(folder))
}

/// What is expected of the fixtures.
pub fn expected(file: &str) -> Value {
    serde_json::from_slice(&std::fs::read(Path::new(FOLDER).join(file)).unwrap()).unwrap()
}

/// What a store answers.
pub async fn ask(server: &Server, question: &str) -> Answer {
    server.get(&format!("/v1/vectors/m/{question}")).await
}

/// The same, which must be JSON.
pub async fn told(server: &Server, question: &str) -> Value {
    let answer = ask(server, question).await;
    assert_eq!(answer.status, StatusCode::OK, "{question}: {:?}", answer.body);
    answer.json()
}

/// Numbers with commas between.
pub fn joined(numbers: &Value) -> String {
    let numbers: Vec<String> = numbers.as_array().unwrap().iter().map(Value::to_string).collect();
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
