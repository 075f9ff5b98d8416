//! Symbolic links below a mount: links within the root read as their targets, and no other link is treated as absent,
//! which clients read as fill values.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use axum::http::{Method, StatusCode};
use tempfile::TempDir;
use zarrd::services::Mount;
use zarrd::store::{Durability, LocalOptions, LocalStore, SharedStore, Symlinks};

use crate::support::hierarchy::Array;
use crate::support::server::Server;

/// Chunks of the array `a` that are links, and the detail of the problem for each.
const REFUSED: [(&str, &str, &str); 4] = [
    ("1", "../../../outside/0", "leads out"),
    ("2", "/etc/hostname", "leads out"),
    ("3", "3", "in a circle"),
    ("4", "nowhere", "leads to nothing"),
];

/// A mount with the array `a` of six chunks, the first of which is a link to the last and the others are bad ones; with
/// links to the array and to its chunks; and with a directory outside.
async fn served(symlinks: Symlinks) -> (TempDir, Server) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    let options = LocalOptions { writable: true, durability: Durability::Rename, ..LocalOptions::default() };
    std::fs::create_dir(&root).unwrap();
    let fill = serde_json::json!({ "fill_value": 0 });
    let array = Array::of(&[12]).chunks(&[2]).members(fill).uniform(7);
    let made: SharedStore = Arc::new(LocalStore::open(&root, &options).unwrap());
    array.store(&made, "a").await;
    array.store(&made, "b").await;
    drop(made);
    std::fs::create_dir(directory.path().join("outside")).unwrap();
    std::fs::write(directory.path().join("outside/0"), "outside").unwrap();
    let link = |to: &str, name: &str| {
        let name = root.join(name);
        let _ = std::fs::remove_file(&name);
        symlink(to, name).unwrap();
    };
    link("5", "a/c/0");
    for (chunk, to, _) in REFUSED {
        link(to, &format!("a/c/{chunk}"));
    }
    link("b", "linked");
    link("../outside", "out");
    std::fs::create_dir(root.join("d")).unwrap();
    std::fs::copy(root.join("b/zarr.json"), root.join("d/zarr.json")).unwrap();
    link("../b/c", "d/c");
    std::fs::create_dir(root.join("e")).unwrap();
    std::fs::copy(root.join("b/zarr.json"), root.join("e/zarr.json")).unwrap();
    link("../../outside", "e/c");
    let store = LocalStore::open(&root, &LocalOptions { symlinks, ..LocalOptions::default() }).unwrap();
    (directory, Server::build(Mount::read_only("m", Arc::new(store))).finish())
}

#[tokio::test]
async fn symbolic_links_within_the_root_read_as_their_targets() {
    for symlinks in [Symlinks::default(), Symlinks::Follow] {
        let (_directory, server) = served(symlinks).await;
        for url in ["a?slice=0:2", "linked?slice=3:5", "d?slice=3:5"] {
            let answer = server.get(&format!("/v1/data/m/{url}")).await;
            assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 4), "{url}: {:?}", answer.body);
            assert!(answer.body.iter().all(|byte| *byte == 7), "{url}: {:?}", answer.body);
        }
        for (one, other) in [("a/c/0", "b/c/5"), ("linked/c/1", "b/c/1"), ("d/c/1", "b/c/1")] {
            let (one, other) = (format!("/store/m/{one}"), format!("/store/m/{other}"));
            assert_eq!(server.get(&one).await.body, server.get(&other).await.body, "{one}");
        }
        for absent in ["linked/c/9", "d/c/9", "d/c/9/9", "linked/none", "a/c/0/none"] {
            assert_eq!(
                server.get(&format!("/store/m/{absent}")).await.status,
                StatusCode::NOT_FOUND,
                "{absent}"
            );
        }
        assert_eq!(server.get("/v1/nodes/m/linked").await.json()["node_type"], "array");
        let listing = server.get("/store/m/linked/?format=json").await.json();
        assert!(listing["keys"].to_string().contains("linked/zarr.json"), "{listing}");
    }
}

#[tokio::test]
async fn no_route_treats_a_refused_link_as_absent() {
    let (_directory, server) = served(Symlinks::default()).await;
    for (chunk, _, why) in REFUSED {
        let keys = format!("a/c/{chunk}");
        for url in [
            format!("/store/m/{keys}"),
            format!("/plain/m/{keys}"),
            format!("/rechunk/m/2/raw/{keys}"),
            format!("/v1/chunk/m/{keys}"),
            format!("/v1/data/m/a?slice={chunk}:12:2"),
            "/v1/data/m/a".to_owned(),
            "/v1/data/m/a?format=json".to_owned(),
        ] {
            for _ in 0..2 {
                let detail = server.get(&url).await.refuses(500, "unusable-link", &url);
                assert!(detail.contains("symbolic link") && detail.contains("a/c/"), "{url}: {detail}");
                // A slice of several chunks reports the first broken link that it reaches.
                assert!(detail.contains(why) || url.starts_with("/v1/data"), "{url}: {detail}");
                let head = server.ask(Method::HEAD, &url, &[]).await;
                assert_eq!(head.status, StatusCode::INTERNAL_SERVER_ERROR, "{url}");
            }
        }
        let range = server.ask(Method::GET, &format!("/store/m/{keys}"), &[("range", "bytes=0-0")]).await;
        range.refuses(500, "unusable-link", &keys);
        let found = server.request("PROPFIND", &format!("/store/m/{keys}"), &[("depth", "0")], "").await;
        found.refuses(500, "unusable-link", &keys);
        let s3 = server.get(&format!("/s3/m/{keys}")).await;
        assert_eq!(s3.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(String::from_utf8_lossy(&s3.body).contains("symbolic link"), "{:?}", s3.body);
    }
    for (url, name) in [
        // Whichever of its chunks is read first.
        ("/v1/data/m/e", "e/c/"),
        ("/store/m/e/c/0", "e/c/0"),
        ("/v1/nodes/m/out", "out/zarr.json"),
        ("/v1/data/m/out", "out/zarr.json"),
        ("/store/m/out/zarr.json", "out/zarr.json"),
        ("/store/m/out/?format=json", "out"),
    ] {
        let detail = server.get(url).await.refuses(500, "unusable-link", url);
        assert!(detail.contains(name) && detail.contains("symlinks"), "{url}: {detail}");
    }
    assert_eq!(server.get("/store/m/a/c/9").await.status, StatusCode::NOT_FOUND, "what is absent is absent");
}

#[tokio::test]
async fn a_refused_link_is_listed_and_its_read_is_an_error() {
    let (_directory, server) = served(Symlinks::default()).await;
    let listing = server.get("/store/m/a/c/?format=json").await.json();
    let keys: Vec<_> =
        listing["keys"].as_array().unwrap().iter().map(|entry| entry["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["a/c/0", "a/c/1", "a/c/2", "a/c/3", "a/c/4", "a/c/5"]);
    let all = server.get("/store/m/?recursive&format=json").await.json().to_string();
    assert!(all.contains("\"linked/c/0\"") && all.contains("\"out\"") && !all.contains("out/0"), "{all}");
    // One bad link does not keep the others from being found.
    let node = server.get("/v1/nodes/m").await;
    assert_ne!(node.code_or_ok(), "unusable-link");
}

#[tokio::test]
async fn without_following_links_all_are_refused_by_name() {
    let (_directory, server) = served(Symlinks::Deny).await;
    for url in [
        "/store/m/a/c/0",
        "/v1/data/m/a?slice=0:2",
        "/store/m/linked/zarr.json",
        "/v1/data/m/linked",
        "/v1/data/m/d",
    ] {
        let detail = server.get(url).await.refuses(500, "unusable-link", url);
        assert!(detail.contains("is not followed") && detail.contains("`symlinks`"), "{url}: {detail}");
    }
}

#[tokio::test]
async fn no_link_shows_content_outside_the_root() {
    for symlinks in [Symlinks::Deny, Symlinks::Within] {
        let (directory, server) = served(symlinks).await;
        for url in ["/store/m/a/c/1", "/store/m/out/0", "/store/m/e/c/0", "/store/m/out/", "/store/m/e/c/"] {
            let answer = server.get(url).await;
            assert!(!answer.status.is_success(), "{url}");
            let body = String::from_utf8_lossy(&answer.body).into_owned();
            let outside = directory.path().to_str().unwrap();
            assert!(!body.contains("outside") && !body.contains(outside), "{url}: {body}");
        }
    }
}

/// A writable mount with `real/a` and `real/sub/b`, with `own/k`, and with links to them.
fn writable() -> (TempDir, Server) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for made in ["real/sub", "box", "own", "file", "above"] {
        std::fs::create_dir_all(root.join(made)).unwrap();
    }
    for (file, value) in [("real/a", "A"), ("real/sub/b", "B"), ("own/k", "K")] {
        std::fs::write(root.join(file), value).unwrap();
    }
    symlink("../real", root.join("box/l")).unwrap();
    symlink("a", root.join("real/name")).unwrap();
    symlink("../real/a", root.join("file/f")).unwrap();
    symlink("..", root.join("above/u")).unwrap();
    let options = LocalOptions { writable: true, durability: Durability::Rename, ..LocalOptions::default() };
    let store: SharedStore = Arc::new(LocalStore::open(root, &options).unwrap());
    let mount = Mount { writable: true, allow_prefix_delete: true, ..Mount::read_only("m", store) };
    (directory, Server::build(mount).finish())
}

/// The files and links below a folder, without the server's own files.
fn tree(root: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            match entry.file_type().unwrap() {
                kind if !kind.is_dir() => found.push(name),
                _ if name != ".zarr-server" => folders.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort_unstable();
    found
}

const ALL: [&str; 7] = ["above/u", "box/l", "file/f", "own/k", "real/a", "real/name", "real/sub/b"];

#[tokio::test]
async fn a_copy_onto_itself_through_a_link_is_refused_and_loses_nothing() {
    for verb in ["COPY", "MOVE"] {
        for (from, to) in [
            ("real/", "box/l/"),
            ("box/l/", "real/"),
            ("real/sub/", "box/l/"),
            ("real/", "box/l/new/"),
            ("real/", "box/l/sub/"),
            // By a link below the source.
            ("box/", "real/"),
            ("file/", "real/"),
            ("above/", "real/sub/"),
            ("real/a", "box/l"),
            ("real/a", "box/l/a"),
            ("box/l/a", "real/a"),
            ("real/name", "real/a"),
            ("box/l/name", "real/a"),
        ] {
            let (directory, server) = writable();
            let url = format!("/store/m/{from}");
            let to = format!("/store/m/{to}");
            let answer =
                server.ask(Method::from_bytes(verb.as_bytes()).unwrap(), &url, &[("destination", &to)]).await;
            answer.refuses(403, "overlapping", &format!("{verb} {from} {to}"));
            assert_eq!(tree(directory.path()), ALL, "{verb} {from} {to}");
        }
    }
}

#[tokio::test]
async fn erasing_a_prefix_removes_its_links_and_keeps_their_targets() {
    let kept: Vec<&str> = ALL.into_iter().filter(|name| *name != "box/l").collect();
    for url in ["box/", "box/l/"] {
        let (directory, server) = writable();
        let erased = server.ask(Method::DELETE, &format!("/store/m/{url}"), &[]).await;
        assert_eq!(erased.status, StatusCode::NO_CONTENT, "{url}");
        assert_eq!(tree(directory.path()), kept, "{url}");
        assert_eq!(server.get("/store/m/box/l/a").await.status, StatusCode::NOT_FOUND);
    }
    // The destination of a copy is erased in the same way.
    for (verb, to, copied) in [("COPY", "box/", "box/k"), ("MOVE", "box/l/", "box/l/k")] {
        let (directory, server) = writable();
        let (verb, to) = (Method::from_bytes(verb.as_bytes()).unwrap(), format!("/store/m/{to}"));
        let answer = server.ask(verb.clone(), "/store/m/own/", &[("destination", &to)]).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{to}: {:?}", answer.body);
        let mut expected = kept.clone();
        expected.push(copied);
        expected.retain(|name| verb == "COPY" || *name != "own/k");
        expected.sort_unstable();
        assert_eq!(tree(directory.path()), expected, "{to}");
    }
}
