//! Nodes after servers were killed within copies and moves of them: each node that there is, is whole, and the same request again
//! ends with the node at its target, and nothing of it at the source of a move; so does an erasure of that source.
//!
//! Longer by hand: `ZARRD_COPY_KILLS=500 cargo test --test it killed_copies -- --nocapture`.

use std::path::Path;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::client;
use crate::support::process::{Running, zarrd};
use crate::support::stamped::{Dice, by_hand};

/// The arrays of the group, and their lengths: each element is a chunk of its own.
const ARRAYS: [(&str, u64); 2] = [("a", 120), ("sub/b", 40)];

fn start(root: &Path) -> Running {
    let mut command = zarrd(&["serve"]);
    command.env("ZARRD__LOG__LEVEL", "error");
    command.env("ZARRD__MOUNTS__W__URL", root).env("ZARRD__MOUNTS__W__WRITABLE", "true");
    command.env("ZARRD__MOUNTS__W__ALLOW_PREFIX_DELETE", "true");
    Running::of(command)
}

async fn send(server: &Running, method: Method, url: &str, body: Option<Value>) -> (StatusCode, Value) {
    let mut request = client::client().request(method, format!("http://{}{url}", server.address));
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let answer = request.send().await.unwrap();
    let status = answer.status();
    (status, answer.json().await.unwrap_or_default())
}

/// The elements of an array of this length.
fn elements(length: u64) -> Value {
    (1..=length).collect::<Vec<u64>>().into()
}

/// Whether there is a group at a path. Whatever there is of it and in it must be whole.
async fn is_there(server: &Running, group: &str) -> bool {
    let (status, document) = send(server, Method::GET, &format!("/v1/nodes/w/{group}"), None).await;
    assert!(status == StatusCode::OK || status == StatusCode::NOT_FOUND, "{group}: {status} {document}");
    for (name, length) in ARRAYS {
        let url = format!("/v1/data/w/{group}/{name}?format=json");
        let (found, read) = send(server, Method::GET, &url, None).await;
        if found == StatusCode::OK {
            assert_eq!(read, elements(length), "{group}/{name} is not whole");
        } else {
            assert_eq!(found, StatusCode::NOT_FOUND, "{group}/{name}: {read}");
            assert_eq!(status, StatusCode::NOT_FOUND, "{group} is there without {name}");
        }
    }
    status == StatusCode::OK
}

/// The keys of the values that are stored below a path.
async fn stored(server: &Running, path: &str) -> Vec<String> {
    let (status, listing) =
        send(server, Method::GET, &format!("/store/w/{path}/?recursive&format=json"), None).await;
    assert_eq!(status, StatusCode::OK, "{listing}");
    listing["keys"].as_array().unwrap().iter().map(|entry| entry["key"].to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_each_kill_within_a_copy_or_a_move_nodes_are_whole_and_the_same_request_finishes_it() {
    let kills = by_hand("ZARRD_COPY_KILLS", 6);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut server = start(root);
    for (name, length) in ARRAYS {
        let array = json!({"shape": [length], "data_type": "uint16", "chunks": [1]});
        let made = send(&server, Method::PUT, &format!("/v1/nodes/w/0/{name}"), Some(array)).await;
        assert_eq!(made.0, StatusCode::CREATED, "{}", made.1);
        let written =
            send(&server, Method::PUT, &format!("/v1/data/w/0/{name}"), Some(elements(length))).await;
        assert_eq!(written.0, StatusCode::NO_CONTENT, "{}", written.1);
    }
    let mut dice = Dice::of(u64::from(std::process::id()));
    let (mut source, mut broken_off, mut cut) = ("0".to_owned(), 0, 0);
    for kill in 1..=kills {
        let (is_move, target) = (kill % 2 == 0, kill.to_string());
        let kind = if is_move { "move" } else { "copy" };
        let url = format!("/v1/nodes/w/{target}?{kind}={source}");
        let request = client::client().put(format!("http://{}{url}", server.address)).send();
        let request = tokio::spawn(request);
        tokio::time::sleep(Duration::from_micros(dice.below(150_000))).await;
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        broken_off += u64::from(request.await.unwrap().is_err());
        server = start(root);

        let was_there = is_there(&server, &target).await;
        let has_source = is_there(&server, &source).await;
        assert!(was_there || has_source, "neither is there after kill {kill} of a {kind}");
        let has_left = !stored(&server, &source).await.is_empty();
        cut += u64::from(is_move && was_there && has_left);
        // What is left of the source of a move is erased by the same request again, or by an erasure of the source.
        let (status, answer) = if is_move && was_there && kill % 4 == 0 {
            send(&server, Method::DELETE, &format!("/v1/nodes/w/{source}"), None).await
        } else {
            send(&server, Method::PUT, &url, None).await
        };
        let expected = match (is_move, was_there, has_left) {
            (true, true, false) => StatusCode::NOT_FOUND,
            (true, true, true) if kill % 4 == 0 => StatusCode::NO_CONTENT,
            (false, true, _) => StatusCode::CONFLICT,
            _ => StatusCode::CREATED,
        };
        assert_eq!(status, expected, "{kind} after kill {kill}: {answer}");
        assert!(is_there(&server, &target).await, "after kill {kill}");
        if is_move {
            assert_eq!(stored(&server, &source).await, Vec::<String>::new(), "after kill {kill}");
        }
        let erased = send(&server, Method::DELETE, &format!("/store/w/{source}/"), None).await;
        assert_eq!(erased.0, StatusCode::NO_CONTENT, "{}", erased.1);
        source = target;
    }
    println!("{kills} kills, {broken_off} within a request, {cut} while a source was erased");
}
