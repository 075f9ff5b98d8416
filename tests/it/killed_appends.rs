//! An array after servers that append to it were killed: each acknowledged append is there once, each other one at most once.
//!
//! Longer by hand: `ZARRD_APPEND_KILLS=1000 cargo test --test it killed_appends -- --nocapture`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::client;
use crate::support::process::{Running, zarrd};
use crate::support::stamped::{Dice, by_hand};

const WRITERS: u64 = 5;

/// A client that appends a row of its name and a number, and sends it again until that is acknowledged.
struct Appender {
    client: Client,
    name: u64,
    number: u64,
    /// Where each acknowledged row is said to be.
    acknowledged: BTreeMap<u64, u64>,
}

impl Appender {
    /// Appends until the connection breaks.
    async fn append(mut self, url: String) -> Self {
        loop {
            let request = self.client.post(&url).header("content-type", "application/json");
            let request = request.header("idempotency-key", format!("{}-{}", self.name, self.number));
            let body = json!([[self.name, self.number]]).to_string();
            let Ok(answer) = request.body(body).send().await else { return self };
            let status = answer.status();
            let Ok(answer) = answer.json::<Value>().await else { return self };
            if status.is_success() {
                self.acknowledged.insert(self.number, answer["start"].as_u64().unwrap());
                self.number += 1;
            } else {
                assert!(status.is_server_error(), "{status} {answer}");
            }
        }
    }
}

fn start(root: &Path) -> Running {
    let mut command = zarrd(&["serve", "--writable", &format!("w={}", root.display())]);
    command.env("ZARRD__LOG__LEVEL", "error");
    Running::of(command)
}

#[tokio::test(flavor = "multi_thread")]
async fn after_each_kill_every_acknowledged_append_is_there_once() {
    let kills = by_hand("ZARRD_APPEND_KILLS", 6);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut server = start(root);
    let array = json!({"shape": [0, 2], "data_type": "uint32", "chunks": [16, 2], "shards": [64, 2]});
    let made = client::client()
        .put(format!("http://{}/v1/nodes/w/log", server.address))
        .header("content-type", "application/json")
        .body(array.to_string());
    assert!(made.send().await.unwrap().status().is_success());
    let appender =
        |name| Appender { client: client::client(), name, number: 0, acknowledged: BTreeMap::new() };
    let mut appenders: Vec<_> = (1..=WRITERS).map(appender).collect();
    let mut dice = Dice::of(u64::from(std::process::id()));
    let acknowledged =
        |appenders: &[Appender]| appenders.iter().map(|appender| appender.acknowledged.len()).sum::<usize>();
    let mut kill = 0;
    // A slow machine may acknowledge nothing between the first kills.
    while kill < kills || acknowledged(&appenders) == 0 {
        kill += 1;
        assert!(kill < kills + 100, "nothing is acknowledged");
        let url = format!("http://{}/v1/data/w/log?append=0", server.address);
        let mut tasks = JoinSet::new();
        for appender in appenders {
            tasks.spawn(appender.append(url.clone()));
        }
        tokio::time::sleep(Duration::from_micros(50_000 + dice.below(250_000))).await;
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        appenders = tasks.join_all().await;
        server = start(root);
        let read = client::get(format!("http://{}/v1/data/w/log?format=json", server.address));
        let rows: Vec<[u64; 2]> = read.await.unwrap().json().await.unwrap();
        let mut places: BTreeMap<[u64; 2], u64> = BTreeMap::new();
        for (place, row) in rows.iter().enumerate() {
            let before = places.insert(*row, u64::try_from(place).unwrap());
            assert_eq!(before, None, "{row:?} is there twice after kill {kill}");
        }
        for appender in &appenders {
            for (number, start) in &appender.acknowledged {
                assert_eq!(places.remove(&[appender.name, *number]), Some(*start), "after kill {kill}");
            }
            // That in flight when the server was killed is there or not.
            places.remove(&[appender.name, appender.number]);
        }
        assert!(places.is_empty(), "{places:?} was never appended");
    }
    println!("{kill} kills, {} appends acknowledged", acknowledged(&appenders));
}
