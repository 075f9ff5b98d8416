//! The store after a server was killed within writes: complete values, none older than the last one it
//! acknowledged, and nothing else.
//!
//! Longer by hand: `ZARRD_KILLS=1000 ZARRD_KILL_BYTES=67108864 cargo test --test it killed -- --nocapture`.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use reqwest::{Client, StatusCode};
use tokio::task::JoinSet;

use crate::support::client;
use crate::support::process::{Running, zarrd};
use crate::support::stamped::{Dice, by_hand, value};

const WRITERS: u64 = 6;
const KEYS_EACH: u64 = 6;

/// The content of a key after a write: the value of a number and a length, or nothing.
type Content = Option<(u64, usize)>;

/// A key, whose only writer knows its possible contents.
#[derive(Clone, Debug)]
struct Key {
    name: String,
    /// The content acknowledged by the server.
    acknowledged: Content,
    /// The content of the write in flight when the connection broke.
    in_flight: Option<Content>,
    tag: Option<String>,
}

impl Key {
    fn bytes(&self, content: Content) -> Option<Bytes> {
        content.map(|(number, bytes)| value(&self.name, number, bytes))
    }
}

/// One client, with keys of its own.
#[derive(Clone, Debug)]
struct Writer {
    client: Client,
    base: String,
    keys: Vec<Key>,
    dice: Dice,
    number: u64,
    most_bytes: usize,
    acknowledged: u64,
}

impl Writer {
    fn new(n: u64, most_bytes: usize) -> Self {
        let key = |k| {
            let name = match k % 3 {
                0 => format!("{n}-{k}"),
                // Directories that come and go with their only key, and some that many share.
                1 => format!("own-{n}/{k}/deep/er"),
                _ => format!("shared/c/{}/{n}/{k}", k % 2),
            };
            Key { name, acknowledged: None, in_flight: None, tag: None }
        };
        Self {
            client: client::client(),
            base: String::new(),
            keys: (0..KEYS_EACH).map(key).collect(),
            dice: Dice::of(n * 7919 + 1),
            number: 0,
            most_bytes,
            acknowledged: 0,
        }
    }

    /// Writes until the connection breaks.
    async fn write(mut self) -> Self {
        while self.write_once().await.is_ok() {}
        self
    }

    async fn write_once(&mut self) -> Result<(), reqwest::Error> {
        self.number += 1;
        let length = self.dice.length(self.most_bytes);
        let (chosen, kind) = (usize::try_from(self.dice.below(KEYS_EACH)).unwrap(), self.dice.below(10));
        let key = &mut self.keys[chosen];
        let url = format!("{}/{}", self.base, key.name);
        let before = key.acknowledged;
        if kind == 0 {
            let answer = self.client.get(url).send().await?;
            let found = answer.status() != StatusCode::NOT_FOUND;
            let bytes = answer.bytes().await?;
            assert!(found.then_some(bytes) == key.bytes(before), "{} is not as written", key.name);
            return Ok(());
        }
        let after = (kind > 2).then_some((self.number, length));
        let request = match key.bytes(after) {
            Some(bytes) => self.client.put(url).body(bytes),
            None => self.client.delete(url),
        };
        let request = match (kind > 7, &key.tag) {
            (true, Some(tag)) => request.header("if-match", tag),
            (true, None) => request.header("if-none-match", "*"),
            (false, _) => request,
        };
        key.in_flight = Some(after);
        let answer = request.send().await?;
        let created = before.is_none() && after.is_some();
        let expected = if created { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
        assert_eq!(answer.status(), expected, "{} {before:?} → {after:?}", key.name);
        key.tag = after.and_then(|_| Some(answer.headers().get("etag")?.to_str().unwrap().to_owned()));
        (key.acknowledged, key.in_flight) = (after, None);
        self.acknowledged += 1;
        Ok(())
    }

    /// Checks every key of a restarted server. Returns how many writes had been in flight.
    async fn check(&mut self) -> u64 {
        let mut in_flight = 0;
        for key in &mut self.keys {
            let answer = self.client.get(format!("{}/{}", self.base, key.name)).send().await.unwrap();
            let (status, headers) = (answer.status(), answer.headers().clone());
            let bytes = answer.bytes().await.unwrap();
            let found = match status {
                StatusCode::OK => Some(bytes),
                StatusCode::NOT_FOUND => None,
                other => panic!("{}: {other}", key.name),
            };
            let mut allowed = key.in_flight.into_iter().chain([key.acknowledged]);
            let content = allowed.find(|content| key.bytes(*content) == found);
            let Some(content) = content else {
                let head: Vec<u8> = found.iter().flatten().take(60).copied().collect();
                panic!("lost or torn: {key:?} holds {:?}", String::from_utf8_lossy(&head));
            };
            in_flight += u64::from(key.in_flight.take().is_some());
            key.acknowledged = content;
            key.tag = headers.get("etag").map(|tag| tag.to_str().unwrap().to_owned());
        }
        in_flight
    }

    /// The keys that hold something.
    fn held(&self) -> impl Iterator<Item = String> {
        self.keys.iter().filter(|key| key.acknowledged.is_some()).map(|key| key.name.clone())
    }
}

/// The files below a directory, as keys.
fn files(root: &Path) -> BTreeSet<String> {
    fn visit(root: &Path, directory: &Path, files: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                visit(root, &entry.path(), files);
            } else {
                files.insert(entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut found = BTreeSet::new();
    visit(root, root, &mut found);
    found
}

async fn listed(base: &str) -> BTreeSet<String> {
    let listing = client::get(format!("{base}/?recursive&format=json")).await.unwrap();
    let listing: serde_json::Value = listing.json().await.unwrap();
    let keys = listing["keys"].as_array().unwrap().iter();
    keys.map(|entry| entry["key"].as_str().unwrap().to_owned()).collect()
}

fn start(root: &Path) -> Running {
    let mut command = zarrd(&["serve", "--writable", &format!("w={}", root.display())]);
    command.env("ZARRD__LOG__LEVEL", "error");
    Running::of(command)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_loses_no_write_tears_no_value_and_leaves_no_staged_files() {
    let kills = by_hand("ZARRD_KILLS", 7);
    let most_bytes = usize::try_from(by_hand("ZARRD_KILL_BYTES", 4 << 20)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut writers: Vec<_> = (0..WRITERS).map(|n| Writer::new(n, most_bytes)).collect();
    let mut dice = Dice::of(u64::from(std::process::id()));
    let (mut interrupted, mut swept) = (0, 0);
    let mut server = start(root);
    for _ in 0..kills {
        let base = format!("http://{}/store/w", server.address);
        let mut tasks = JoinSet::new();
        for mut writer in writers {
            writer.base.clone_from(&base);
            tasks.spawn(writer.write());
        }
        tokio::time::sleep(Duration::from_micros(50_000 + dice.below(400_000))).await;
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        writers = tasks.join_all().await;
        swept += files(root).iter().filter(|name| name.contains("/staging/")).count();

        server = start(root);
        let base = format!("http://{}/store/w", server.address);
        for writer in &mut writers {
            writer.base.clone_from(&base);
            interrupted += writer.check().await;
        }
        let held: BTreeSet<_> = writers.iter().flat_map(Writer::held).collect();
        let mut on_disk = files(root);
        assert!(on_disk.remove(".zarr-server/lock"));
        assert_eq!(on_disk, held, "what is on the disk");
        assert_eq!(listed(&base).await, held, "what is listed");
    }
    let acknowledged: u64 = writers.iter().map(|writer| writer.acknowledged).sum();
    println!(
        "{kills} kills, {acknowledged} writes acknowledged, {interrupted} interrupted, {swept} files swept: \
         none torn, none lost, none left"
    );
    assert!(
        acknowledged > kills && interrupted > 0,
        "{acknowledged} acknowledged, {interrupted} interrupted"
    );
}
