//! Answers each line of JSON, a question to a store behind a URL, with another.
//!
//! The stores are `zarrs_http`, which reads; object_store's over HTTP, which lists and writes too, with PROPFIND and the
//! like; and those of opendal, over HTTP and over WebDAV.

mod integration;
mod store;

use std::io::{BufRead, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use store::Store;

/// A question: to which store, and what.
#[derive(Deserialize)]
struct Question {
    client: String,
    url: String,
    #[serde(flatten)]
    verb: Verb,
}

/// What a store is asked for.
#[derive(Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
enum Verb {
    /// The elements of the arrays at these paths.
    Read { paths: Vec<String> },
    /// To write an array of uint16 with shards.
    Write { path: String, shape: Vec<u64>, shards: Vec<u64>, chunks: Vec<u64>, values: String },
    /// All keys below a prefix.
    List { prefix: String },
    /// The keys and prefixes right below a prefix.
    ListDir { prefix: String },
    /// To erase all below a prefix.
    Erase { prefix: String },
    /// To hold to what object_store's own tests say of a store.
    Integration { test: String },
}

async fn answer(line: &str) -> anyhow::Result<Value> {
    let Question { client, url, verb } = serde_json::from_str(line)?;
    if let Verb::Integration { test } = verb {
        integration::run(&test, &url).await?;
        return Ok(json!({}));
    }
    let store = Store::open(&client, &url)?;
    match verb {
        Verb::Read { paths } => {
            let mut arrays = Vec::new();
            for path in paths {
                arrays.push(match store.read(&path).await {
                    Ok((shape, values)) => json!({"shape": shape, "values": STANDARD.encode(values)}),
                    Err(error) => json!({"error": format!("{error:#}")}),
                });
            }
            Ok(arrays.into())
        }
        Verb::Write { path, shape, shards, chunks, values } => {
            store.write(&path, shape, shards, chunks, STANDARD.decode(values)?).await?;
            Ok(json!({}))
        }
        Verb::List { prefix } => Ok(json!({"keys": store.list(&prefix).await?})),
        Verb::ListDir { prefix } => {
            let (keys, prefixes) = store.list_dir(&prefix).await?;
            Ok(json!({"keys": keys, "prefixes": prefixes}))
        }
        Verb::Erase { prefix } => {
            store.erase(&prefix).await?;
            Ok(json!({}))
        }
        Verb::Integration { .. } => unreachable!("answered above"),
    }
}

fn main() -> anyhow::Result<()> {
    opendal_http_transport_reqwest::install_default();
    let runtime = tokio::runtime::Runtime::new()?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        // A task of its own, as a failed assertion is one answer among others.
        let answered = runtime.block_on(runtime.spawn(async move { answer(&line).await }));
        let answer = match answered {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => json!({"error": format!("{error:#}")}),
            Err(panicked) => json!({"error": message(panicked)}),
        };
        writeln!(std::io::stdout(), "{answer}")?;
    }
    Ok(())
}

/// What an assertion said.
fn message(panicked: tokio::task::JoinError) -> String {
    match panicked.try_into_panic().map(|panic| panic.downcast::<String>()) {
        Ok(Ok(message)) => *message,
        _ => "a panic without a message".to_owned(),
    }
}
