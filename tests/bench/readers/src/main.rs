//! Reads boxes of arrays with zarrs from the folder given, as lines of JSON ask for, and says how many seconds each took.
//!
//! Arrays stay open, as the server keeps its own; decoded chunks are not kept.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use serde::Deserialize;
use serde_json::json;
use zarrs::array::{Array, ArrayBytes, ArraySubset};
use zarrs::filesystem::FilesystemStore;

/// A box of an array.
#[derive(Deserialize)]
struct Question {
    array: String,
    start: Vec<u64>,
    shape: Vec<u64>,
}

fn main() -> anyhow::Result<()> {
    let folder = std::env::args().nth(1).context("which folder?")?;
    let store = Arc::new(FilesystemStore::new(folder)?);
    let mut arrays = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let question: Question = serde_json::from_str(&line?)?;
        let path = format!("/{}", question.array);
        if !arrays.contains_key(&path) {
            arrays.insert(path.clone(), Array::open(store.clone(), &path)?);
        }
        let array = &arrays[&path];
        let subset = ArraySubset::new_with_start_shape(question.start, question.shape)?;
        let start = Instant::now();
        let read: ArrayBytes = array.retrieve_array_subset(&subset)?;
        let seconds = start.elapsed().as_secs_f64();
        let sum: u64 = read.into_fixed()?.iter().map(|&byte| u64::from(byte)).sum();
        writeln!(std::io::stdout(), "{}", json!({"seconds": seconds, "sum": sum}))?;
    }
    Ok(())
}
