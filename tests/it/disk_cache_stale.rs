//! A server that is started while its bucket is down: with `stale`, what the disk cache has is served, and says its age.

use std::process::Command;

use bytes::Bytes;
use reqwest::{Response, StatusCode};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::client;
use crate::support::hierarchy::{Array, Format};
use crate::support::model::Model;
use crate::support::process::{Running, zarrd};
use crate::support::s3::{Fault, Kind, Rule, TestS3, When};

const SLICES: [&str; 2] = ["/v1/data/m/three", "/v1/data/m/two"];

/// A bucket with an array of each version, and a folder for the cache.
struct Scene {
    s3: TestS3,
    folder: TempDir,
    models: [Model; 2],
    freshness: &'static str,
}

impl Scene {
    async fn new(freshness: &'static str) -> Self {
        let s3 = TestS3::start().await;
        let store = s3.store();
        let three = Array::of(&[6, 8]).chunks(&[3, 4]).random(1, &[]).store(&store, "three").await;
        let two = Format::V2 { compressor: None, fortran: false, big: false, separator: '.' };
        let two = Array::of(&[6, 8]).chunks(&[3, 4]).format(two);
        let two = two.random(2, &[]).store(&store, "two").await;
        s3.insert("value", "stored");
        Self { s3, folder: tempfile::tempdir().unwrap(), models: [three, two], freshness }
    }

    fn start(&self) -> Running {
        let file = self.folder.path().join("zarrd.toml");
        let endpoint = self.s3.options().bucket.endpoint.unwrap();
        let config = format!(
            "[cache.disk]\npath = '{}'\nsize = '16MiB'\n\
             [server]\nadmin_listen = '127.0.0.1:0'\n\
             [mounts.m]\nurl = '{}'\nfreshness = '{}'\n\
             [mounts.m.options]\nendpoint = '{endpoint}'\nallow_http = true\n",
            self.folder.path().join("cache").display(),
            TestS3::s3_url(),
            self.freshness,
        );
        std::fs::write(&file, config).unwrap();
        let mut command: Command = zarrd(&["serve", "--config", file.to_str().unwrap()]);
        command.env("ZARRD__LOG__LEVEL", "error");
        Running::of(command)
    }

    fn fail(&self) {
        let kinds = vec![Kind::Get, Kind::Head, Kind::List];
        self.s3.inject(vec![Rule { kinds, key: "", when: When::Always, fault: Fault::Status(503) }], 1);
    }

    /// Reads everything, which must be right. Whether each answer said that it is stale.
    async fn read_all(&self, server: &Running) -> Vec<bool> {
        let mut stale = Vec::new();
        for (url, model) in SLICES.iter().zip(&self.models) {
            let answer = get(server, url).await;
            assert_eq!(answer.status(), StatusCode::OK, "{url}");
            stale.push(is_stale(&answer));
            assert_eq!(&*answer.bytes().await.unwrap(), &*model.elements, "{url}");
        }
        let answer = get(server, "/store/m/value").await;
        stale.push(is_stale(&answer));
        assert_eq!(answer.bytes().await.unwrap(), "stored");
        let answer = get(server, "/store/m/three/c/9/9").await;
        stale.push(is_stale(&answer) || answer.status() == StatusCode::NOT_FOUND);
        stale
    }
}

fn is_stale(answer: &Response) -> bool {
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
    header("cache-status") == Some("zarrd; hit; detail=stale") && header("age").is_some()
}

async fn get(server: &Running, path: &str) -> Response {
    client::get(format!("http://{}{path}", server.address)).await.unwrap()
}

fn stop(mut server: Running) {
    server.signal(Signal::TERM);
    assert!(server.child.wait().unwrap().success());
}

#[tokio::test]
async fn after_a_restart_while_the_bucket_fails_what_is_on_the_disk_is_served_and_says_its_age() {
    for freshness in ["always, stale:1h", "ttl:10ms, stale:1h"] {
        let scene = Scene::new(freshness).await;
        let server = scene.start();
        scene.read_all(&server).await;
        let folder = get(&server, "/view/m").await;
        assert_eq!(folder.status(), StatusCode::OK);
        scene.s3.insert("unread", "never");
        stop(server);

        scene.fail();
        let server = scene.start();
        assert_eq!(scene.read_all(&server).await, [true; 4], "{freshness}");
        let ready = get(&server, "/readyz").await;
        assert_eq!(ready.status(), StatusCode::OK, "it has responses");
        assert!(ready.text().await.unwrap().contains("\"m\":\"stale\""));
        let home = client::client().get(format!("http://{}/", server.address)).header("accept", "text/html");
        let home = home.send().await.unwrap().text().await.unwrap();
        assert!(home.contains("stale: overloaded"), "{}", home.split_once("<body").unwrap().1);
        let folder = get(&server, "/view/m").await.status();
        assert!(
            folder.is_server_error(),
            "a folder that cannot be listed is not reported as absent: {folder}"
        );
        let unread = get(&server, "/store/m/unread").await;
        assert!(unread.status().is_server_error(), "what was never read is not known: {}", unread.status());
        scene.s3.heal();
        stop(server);
    }
}

#[tokio::test]
async fn what_is_older_than_the_window_or_was_purged_is_not_served_after_a_restart() {
    for (freshness, purges) in [("always, stale:0s", false), ("always, stale:1h", true)] {
        let scene = Scene::new(freshness).await;
        let mut server = scene.start();
        scene.read_all(&server).await;
        if purges {
            let address = admin_address(&mut server);
            let request = client::client().delete(format!("{address}/v1/cache/m"));
            let purged: Bytes = request.send().await.unwrap().bytes().await.unwrap();
            assert!(String::from_utf8_lossy(&purged).contains("\"durable\":true"), "{purged:?}");
        }
        stop(server);
        scene.fail();
        let server = scene.start();
        for url in SLICES.into_iter().chain(["/store/m/value"]) {
            let status = get(&server, url).await.status();
            assert!(status.is_server_error(), "{freshness} {url}: {status}");
        }
        stop(server);
    }
}

#[tokio::test]
async fn what_is_read_after_a_purge_is_served_after_a_restart_while_the_bucket_fails() {
    for below in ["m", "m/three"] {
        let scene = Scene::new("always, stale:1h").await;
        let mut server = scene.start();
        for _ in 0..2 {
            scene.read_all(&server).await;
        }
        let address = admin_address(&mut server);
        let purged = client::client().delete(format!("{address}/v1/cache/{below}")).send().await.unwrap();
        assert_eq!(purged.status(), StatusCode::OK);
        scene.read_all(&server).await;
        stop(server);
        assert!(scene.folder.path().join("cache/lookups").exists(), "{below}");

        scene.fail();
        let server = scene.start();
        assert_eq!(scene.read_all(&server).await, [true; 4], "{below}");
        stop(server);
    }
}

/// The admin address, which the banner has.
fn admin_address(server: &mut Running) -> String {
    use std::io::BufRead;
    loop {
        let mut line = String::new();
        assert!(server.stdout.read_line(&mut line).unwrap() > 0, "no admin address in the banner");
        if let Some((address, _)) = line.trim().split_once("/metrics") {
            return address.to_owned();
        }
    }
}
