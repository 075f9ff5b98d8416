//! Mounts at the root of their own listeners and hosts, over TCP, and a client built on `object_store` there.

use std::io::BufRead;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use futures::TryStreamExt;
use reqwest::{Client, Method, StatusCode};
use rustix::process::Signal;
use zarrd::key::{StoreKey, StorePrefix};
use zarrd::store::{ByteRange, SharedStore, StoreOptions, WriteCondition, open};

use crate::support::client;
use crate::support::process::{Running, text, zarrd};
use crate::support::server::{cpu, put};

/// A server with two mounts that have listeners of their own, of which `a` has a host as well.
fn start(folder: &Path) -> (Running, [SocketAddr; 2]) {
    let file = folder.join("zarrd.toml");
    let mount = "url = 'memory://'\nwritable = true\nallow_prefix_delete = true\nlisten = '127.0.0.1:0'\n";
    let config = format!("[mounts.a]\n{mount}hosts = ['data.example']\n[mounts.b]\n{mount}");
    std::fs::write(&file, config).unwrap();
    let mut running = Running::start(&["serve", "--config", file.to_str().unwrap()]);
    let mut lines = vec![String::new(); 5];
    for line in &mut lines {
        running.stdout.read_line(line).unwrap();
    }
    let port = running.address.port();
    let mount = |name| format!("  http://127.0.0.1:{port}/store/{name}/  read-write, memory: memory://\n");
    assert_eq!(lines[..2], [mount("a"), mount("b")]);
    assert_eq!(lines[2], format!("  http://data.example:{port}/ is /store/a/\n"));
    let address = |line: &str, name: &str| {
        let line = line
            .strip_prefix("  http://")
            .and_then(|line| line.strip_suffix(&format!("/ is /store/{name}/\n")));
        line.unwrap_or_else(|| panic!("{line:?}")).parse().unwrap()
    };
    let roots = [address(&lines[3], "a"), address(&lines[4], "b")];
    (running, roots)
}

fn client() -> Client {
    client::builder().timeout(Duration::from_secs(30)).build().unwrap()
}

#[tokio::test]
async fn each_listener_serves_its_root_mount_and_all_shut_down_together() {
    let folder = tempfile::tempdir().unwrap();
    let (mut running, [a, b]) = start(folder.path());
    let client = client();
    let get = async |url: String| {
        let answer = client.get(url).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    };
    for (root, value) in [(a, "of a"), (b, "of b")] {
        let stored = client.put(format!("http://{root}/healthz")).body(value).send().await.unwrap();
        assert_eq!(stored.status(), StatusCode::CREATED);
    }
    let main = running.address;
    for (url, value) in [
        (format!("http://{a}/healthz"), "of a"),
        (format!("http://{b}//healthz"), "of b"),
        (format!("http://{main}/store/a/healthz"), "of a"),
        (format!("http://{main}/store/b/healthz"), "of b"),
        (format!("http://{main}/healthz"), "{\"status\":\"ok\"}"),
    ] {
        assert_eq!(get(url.clone()).await, (StatusCode::OK, value.to_owned()), "{url}");
    }
    // By name, in HTTP/1.1 and HTTP/2: `Host` and `:authority`.
    let named = || client::builder().resolve("data.example", main);
    for client in [named(), named().http2_prior_knowledge()].map(|client| client.build().unwrap()) {
        for (host, value) in [("DATA.example", "of a"), ("127.0.0.1", "{\"status\":\"ok\"}")] {
            let url = format!("http://{host}:{}/healthz", main.port());
            let answer = client.get(url).send().await.unwrap();
            assert_eq!(answer.text().await.unwrap(), value);
        }
    }
    // A listener serves its mount for every host name.
    let other = client.get(format!("http://{b}/healthz")).header("host", "data.example").send().await;
    assert_eq!(other.unwrap().text().await.unwrap(), "of b");
    assert_eq!(get(format!("http://{a}/store/a/healthz")).await.0, StatusCode::NOT_FOUND);

    running.signal(Signal::TERM);
    assert!(running.child.wait().unwrap().success());
    for address in [main, a, b] {
        assert!(std::net::TcpStream::connect(address).is_err(), "{address}");
    }
}

#[tokio::test]
async fn one_address_in_use_is_exit_code_69_and_nothing_is_announced() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zarrd.toml");
    std::fs::write(&file, format!("[mounts.a]\nurl = 'memory://'\nlisten = '{address}'\n")).unwrap();
    let output =
        zarrd(&["serve", "--listen", "127.0.0.1:0", "--config", file.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(69), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(&format!("cannot listen on {address}")));
    assert_eq!(text(&output.stdout), "");
}

/// A store that reads and writes another server: `object_store`'s own HTTP client, as obstore and zarrs have it.
fn over_http(root: SocketAddr) -> SharedStore {
    let options = StoreOptions { writable: true, ..StoreOptions::default() };
    open(&format!("http://{root}"), &options, &cpu()).unwrap()
}

#[tokio::test]
async fn a_client_built_on_object_store_lists_reads_and_writes_at_the_root() {
    let folder = tempfile::tempdir().unwrap();
    let (_running, [root, _]) = start(folder.path());
    let store = over_http(root);
    let empty = store.list_dir(&StorePrefix::root()).await.unwrap();
    assert!(empty.keys.is_empty() && empty.prefixes.is_empty());
    let keys = ["a/c/0", "a/c/1", "a/zarr.json", "a b/\u{e9}", "ab", "zarr.json"];
    for key in keys {
        put(&store, key, key).await;
    }
    let prefix = |text: &str| StorePrefix::parse(text).unwrap();
    let all: Vec<_> = store.list_prefix(&StorePrefix::root(), None).try_collect().await.unwrap();
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    assert_eq!(all.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), sorted);
    for entry in &all {
        let value = store.get(&entry.key, ByteRange::Whole, None).await.unwrap().unwrap();
        assert_eq!((value.info.size, entry.info.size), (value.len(), value.len()));
        assert_eq!(value.bytes(100).await.unwrap(), entry.key.as_str());
    }
    let dir = store.list_dir(&prefix("a/")).await.unwrap();
    assert_eq!(dir.keys.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["a/zarr.json"]);
    assert_eq!(dir.prefixes, [prefix("a/c/")]);
    let none = store.list_dir(&prefix("none/")).await.unwrap();
    assert!(none.keys.is_empty() && none.prefixes.is_empty());
    let key = StoreKey::parse("a/c/0").unwrap();
    assert!(store.erase(&key, WriteCondition::Always).await.unwrap());
    assert!(store.get(&key, ByteRange::Whole, None).await.unwrap().is_none());
}

#[tokio::test]
async fn propfind_copy_and_move_go_through_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let (_running, [root, _]) = start(folder.path());
    let client = client();
    let ask = async |method: &str, path: &str, headers: &[(&str, String)], body: &'static str| {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = client.request(method, format!("http://{root}{path}")).body(body);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    assert_eq!(ask("PUT", "/dir/a%20b", &[], "value").await.0, 201);
    let destination = [("destination", format!("http://{root}/copy"))];
    assert_eq!(ask("COPY", "/dir", &destination, "").await.0, 201);
    assert_eq!(ask("COPY", "/dir", &destination, "").await.0, 204);
    assert_eq!(ask("MOVE", "/copy/", &[("destination", "/moved/".to_owned())], "").await.0, 201);
    assert_eq!(ask("GET", "/moved/a%20b", &[], "").await, (200, "value".to_owned()));
    let body = "<?xml version=\"1.0\"?><propfind xmlns=\"DAV:\"><allprop/></propfind>";
    let (status, xml) = ask("PROPFIND", "/", &[("depth", "infinity".to_owned())], body).await;
    assert_eq!(status, 207);
    let hrefs: Vec<&str> =
        xml.split("<D:href>").skip(1).map(|text| text.split_once('<').unwrap().0).collect();
    assert_eq!(hrefs, ["/", "/dir/", "/dir/a%20b", "/moved/", "/moved/a%20b"]);
    assert_eq!(ask("PROPFIND", "/", &[], "<propfind").await.0, 400);
    assert_eq!(ask("MKCOL", "/new/", &[], "").await.0, 201);
    assert_eq!(ask("MKCOL", "/new/", &[], "x").await.0, 415);
}
