//! Icechunk repositories as mounts: what the real library wrote reads as it reads it itself, on all branches, tags and
//! snapshots, and what is damaged, or leads where it may not, is refused by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use axum::http::{Method, StatusCode};
use serde_json::Value;
use sha2::{Digest, Sha256};
use zarrd::services::Mount;
use zarrd::store::{
    AllowedPrefix, ContainerBudget, OpenBudgets, SharedStore, StoreOptions, open, open_within,
};

use crate::support::process::{run, text};
use crate::support::server::{Server, cpu};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/icechunk")
}

/// The files that the virtual chunks of the fixtures are in.
fn remote(url: &str) -> AllowedPrefix {
    let at = Some(format!("file://{}/files/", fixtures().display()));
    AllowedPrefix { url: url.to_owned(), at, private_addresses: false, options: StoreOptions::default() }
}

fn repository(path: &Path, version: Option<&str>) -> SharedStore {
    let references = vec![remote("s3://remote/files/"), remote("vcc://remote/")];
    let version = version.map(|version| version.parse().unwrap());
    let options = StoreOptions { references, version, ..StoreOptions::default() };
    open(&format!("icechunk+file://{}", path.display()), &options, &cpu()).unwrap()
}

fn serve(name: &str) -> Server {
    Server::of(repository(&fixtures().join(name), None))
}

fn hash(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// A copy of a fixture that a test may change.
fn copied(name: &str) -> (tempfile::TempDir, PathBuf) {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                copy(&entry.path(), &to);
            } else {
                std::fs::copy(entry.path(), to).unwrap();
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("repository");
    copy(&fixtures().join(name), &root);
    (folder, root)
}

fn names(listing: &Value) -> (Vec<String>, Vec<String>) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let keys = listing["keys"].as_array().unwrap().iter().map(|entry| text(&entry["key"])).collect();
    (keys, listing["prefixes"].as_array().map_or_else(Vec::new, |all| all.iter().map(text).collect()))
}

#[tokio::test]
async fn arrays_of_every_version_read_as_icechunk_reads_them() {
    let mut right = 0;
    for format in [1, 2] {
        let expected = fixtures().join(format!("expected-{format}.json"));
        let expected: Vec<Value> = serde_json::from_slice(&std::fs::read(expected).unwrap()).unwrap();
        let mut servers = BTreeMap::new();
        for array in expected {
            let text = |name: &str| array[name].as_str().unwrap().to_owned();
            let (name, version, path) = (text("repository"), text("version"), text("path"));
            let server = servers.entry(name.clone()).or_insert_with(|| serve(&name));
            let path = path.replace(' ', "%20").replace('é', "%C3%A9");
            let pinned = format!("/v1/data/m/@{version}/{path}?format=bytes");
            let mut urls = vec![pinned.replace('@', "%40"), pinned];
            if version == "branch.main" && !path.starts_with('@') {
                urls.push(format!("/v1/data/m/{path}?format=bytes"));
            }
            for url in urls {
                let answer = server.get(&url).await;
                assert_eq!(answer.status, StatusCode::OK, "{name} {url}: {:?}", answer.body);
                assert_eq!(hash(&answer.body), text("sha256"), "{name} {url}");
            }
            right += 1;
        }
    }
    assert!(right >= 100, "{right}");
}

#[tokio::test]
async fn listings_have_the_keys_that_icechunk_lists_and_each_of_them_is_there() {
    for name in ["history-1", "history-2", "split-2", "root-1"] {
        let server = serve(name);
        for pin in ["", "@branch.main/", "@tag.v1/"] {
            let listing = server.get(&format!("/store/m/{pin}?recursive&format=json")).await;
            if pin == "@tag.v1/" && !name.starts_with("history") {
                assert_eq!(names(&listing.json()).0, Vec::<String>::new(), "{name}: there is no such tag");
                continue;
            }
            let (keys, _) = names(&listing.json());
            assert!(keys.is_sorted() && !keys.is_empty(), "{name} {keys:?}");
            for key in &keys {
                let path = key.replace(' ', "%20").replace('é', "%C3%A9");
                let answer = server.get(&format!("/store/m/{path}")).await;
                assert_eq!(answer.status, StatusCode::OK, "{name} {key}");
            }
            // Level by level there are the same keys, and from any key on the rest.
            let (mut walked, mut left) = (Vec::new(), vec![pin.to_owned()]);
            while let Some(prefix) = left.pop() {
                let url = format!("/store/m/{prefix}?format=json").replace(' ', "%20").replace('é', "%C3%A9");
                let (mut found, mut below) = names(&server.get(&url).await.json());
                walked.append(&mut found);
                left.append(&mut below);
            }
            walked.sort_unstable();
            assert_eq!(walked, keys, "{name} {pin}");
        }
    }
    let (keys, _) = names(&serve("history-2").get("/store/m/?recursive&format=json").await.json());
    assert!(keys.contains(&"a/c/1/0".to_owned()) && keys.contains(&"holes/c/1/0".to_owned()), "{keys:?}");
    assert!(!keys.iter().any(|key| key.starts_with('@') || key.starts_with("g/h/x/")), "{keys:?}");
}

#[tokio::test]
async fn a_page_says_which_version_it_shows_and_links_to_it_and_to_all() {
    let server = serve("history-2");
    let page = server.get("/view/m/").await;
    assert_eq!(page.status, StatusCode::OK);
    let snapshot = page.header("zarrd-snapshot").to_owned();
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(text.contains("<bdi>branch.main</bdi>") && text.contains("href=\"/v1/versions/m\""), "{text}");
    assert!(text.contains(&format!("href=\"/view/m/%40{snapshot}\"")), "{text}");
    let pinned = server.get(&format!("/view/m/@{snapshot}")).await;
    let pinned = String::from_utf8(pinned.body.to_vec()).unwrap();
    assert!(pinned.contains(&format!("Version <code><bdi>{snapshot}</bdi></code>. ")), "{pinned}");
}

#[tokio::test]
async fn virtual_chunks_are_read_where_the_mount_allows_and_refused_by_name_remote() {
    for (name, is_second) in [("virtual-1", false), ("virtual-2", true)] {
        let server = serve(name);
        let values: Vec<u8> = (0..6_i16).flat_map(i16::to_le_bytes).collect();
        assert_eq!(server.elements("m/virtual", "...").await.as_ref(), values, "{name}");
        assert_eq!(server.elements("m/virtual_new", "...").await.as_ref(), values, "{name}");
        for array in ["virtual_missing", "virtual_old", "virtual_tag"] {
            server.get(&format!("/v1/data/m/{array}")).await.refuses(502, "reference-broken", array);
            server.get(&format!("/store/m/{array}/c/1")).await.refuses(502, "reference-broken", array);
        }
        server.get("/store/m/virtual_short/c/200").await.refuses(502, "reference-broken", "beyond the end");
        for array in ["virtual_refused", "virtual_file", "virtual_metadata"] {
            let detail =
                server.get(&format!("/v1/data/m/{array}")).await.refuses(502, "reference-refused", array);
            assert!(!detail.contains("passwd") && !detail.contains("169"), "{detail}");
        }
        server.get("/rechunk/m/2/raw/virtual_file/c/0").await.refuses(502, "reference-refused", "in a view");
        let many: Vec<u8> = (0..450_i16).flat_map(i16::to_le_bytes).collect();
        assert_eq!(server.elements("m/virtual_many", ":450").await.as_ref(), many, "{name}");
        server.get("/store/m/virtual_many/c/199").await.refuses(502, "reference-broken", "none such");
        if is_second {
            assert_eq!(server.elements("m/virtual_named", "...").await.as_ref(), values, "{name}");
        }
    }
    // Without a list, none may lead anywhere.
    let url = format!("icechunk+file://{}", fixtures().join("virtual-2").display());
    let server = Server::of(open(&url, &StoreOptions::default(), &cpu()).unwrap());
    server.get("/v1/data/m/virtual").await.refuses(502, "reference-refused", "no list");
    // The entity tag of this one is in its reference, so it is known without a request.
    let url = "/store/m/virtual_tag/c/0";
    let tag = serve("virtual-2").ask(Method::HEAD, url, &[]).await.header("etag").to_owned();
    assert!(tag.starts_with('"'), "{tag}");
    server.get(url).await.refuses(502, "reference-refused", "no list");
    assert_eq!(server.ask(Method::HEAD, url, &[]).await.status, StatusCode::BAD_GATEWAY, "as GET");
    let same = server.ask(Method::GET, url, &[("if-none-match", &*tag)]).await;
    same.refuses(502, "reference-refused", "as GET without a condition");
    // Listings have them, with the lengths of their references.
    for url in ["/store/m/?recursive&format=json", "/store/m/virtual/c/?format=json"] {
        let listing = server.get(url).await;
        assert_eq!(listing.status, StatusCode::OK, "{url}: {:?}", listing.body);
        let listing = listing.json();
        let chunk = listing["keys"].as_array().unwrap().iter().find(|entry| entry["key"] == "virtual/c/1");
        assert_eq!(chunk.unwrap()["size"], 6, "{url}: {listing}");
    }
}

#[tokio::test]
async fn a_file_that_was_cut_and_is_whole_again_is_read_again_after_a_purge() {
    for (name, kind) in [("history-2", "snapshots"), ("history-1", "snapshots"), ("split-2", "manifests")] {
        let (_folder, root) = copied(name);
        let files = || std::fs::read_dir(root.join(kind)).unwrap().map(|entry| entry.unwrap().path());
        let whole: Vec<(PathBuf, Vec<u8>)> =
            files().map(|file| (file.clone(), std::fs::read(file).unwrap())).collect();
        for (file, bytes) in &whole {
            std::fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
        }
        let mount = Mount::read_only("m", repository(&root, None));
        let (server, admin) = Server::build(mount).finish_with_admin();
        server.get("/v1/data/m/a").await.refuses(502, "references-refused", name);
        for (file, bytes) in &whole {
            std::fs::write(file, bytes).unwrap();
        }
        let purged = admin.ask(Method::DELETE, "/v1/cache/m", &[]).await;
        assert_eq!(purged.status, StatusCode::OK, "{name}");
        let read = server.get("/v1/data/m/a").await;
        assert_eq!(read.status, StatusCode::OK, "{name}: {:?}", read.body);
    }
}

#[tokio::test]
async fn times_are_read_as_the_list_prints_them_and_refused_where_no_route_reads_them() {
    for name in ["history-1", "history-2"] {
        let server = serve(name);
        let versions = server.get("/v1/versions/m").await.json();
        let snapshots = versions["snapshots"].as_array().unwrap();
        let named = |id: &Value| snapshots.iter().find(|snapshot| snapshot["id"] == *id);
        let mains = versions["branches"].as_array().unwrap().iter().find(|branch| branch["name"] == "main");
        let mut next = named(&mains.unwrap()["snapshot"]);
        let mut count = 0;
        while let Some(snapshot) = next {
            let time = snapshot["time"].as_str().unwrap();
            assert!(time.contains('.') && time.ends_with('Z'), "{time}");
            let moved = server.get(&format!("/v1/versions/m?at={time}")).await;
            assert_eq!(moved.status, StatusCode::TEMPORARY_REDIRECT, "{name} {time}: {:?}", moved.body);
            let id = moved.header("location").trim_start_matches("/store/m/@").trim_end_matches('/');
            assert_eq!(named(&id.into()).unwrap()["time"], time, "{name}");
            (next, count) = (named(&snapshot["parent"]), count + 1);
        }
        assert!(count >= 2, "{versions}");
    }
    let server = serve("history-2");
    for time in ["2999-01-01T00:00:00%2B02:00", "2999-01-01T00:00+02:00", "2999-01-01T00:00:00.5-11:30"] {
        let moved = server.get(&format!("/v1/versions/m?at={time}")).await;
        assert_eq!(moved.status, StatusCode::TEMPORARY_REDIRECT, "{time}: {:?}", moved.body);
    }
    for path in [
        "/v1/data/m/a",
        "/v1/data/m/@tag.v1/a",
        "/v1/chunk/m/a/c/0/0",
        "/v1/nodes/m/a",
        "/v1/stats/m/a",
        "/store/m/a/zarr.json",
        "/store/m/a/c/0/0",
        "/store/m/",
        "/rechunk/m/2,2/raw/a/c/0/0",
    ] {
        for time in ["2026-05-01", "2026-05-01T12:00:00.5Z", "yesterday"] {
            let answer = server.get(&format!("{path}?at={time}")).await;
            let detail = answer.refuses(400, "invalid-request", path);
            assert!(detail.contains("/v1/versions/m"), "{path}: {detail}");
        }
    }
    assert_eq!(server.get("/view/m/a?at=2026-05-01").await.status, StatusCode::BAD_REQUEST);
    // A place, as pages have it in their URLs.
    for path in ["/view/m/a?at=3,4", "/v1/data/m/a?at=3,4"] {
        assert_eq!(server.get(path).await.status, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn a_response_says_its_snapshot_and_the_url_that_stays_so() {
    let url = format!("icechunk+file://{}", fixtures().join("history-2").display());
    let server = Server::of(open(&url, &StoreOptions::default(), &cpu()).unwrap());
    for path in
        ["/store/m/a/c/0/0", "/v1/data/m/a?slice=0", "/rechunk/m/2,2/raw/a/c/0/0", "/v1/chunk/m/a/c/0/0"]
    {
        let branch = server.get(path).await;
        assert_eq!(branch.status, StatusCode::OK, "{path}: {:?}", branch.body);
        let id = branch.header("zarrd-snapshot").to_owned();
        assert_eq!(id.len(), 20, "{path}");
        let stays = branch.header("content-location").to_owned();
        assert!(stays.contains(&format!("/@{id}/a")), "{path}: {stays}");
        assert_eq!(branch.header("cache-control"), "no-cache", "{path}");
        let pinned = server.get(&stays).await;
        assert_eq!((pinned.status, &pinned.body), (StatusCode::OK, &branch.body), "{stays}");
        assert_eq!(pinned.header("zarrd-snapshot"), id);
        assert_eq!(pinned.header("cache-control"), "public, max-age=31536000, immutable", "{stays}");
        let tag = stays.replace(&format!("@{id}"), "@tag.v2");
        assert_eq!(server.get(&tag).await.header("zarrd-snapshot"), id, "{tag}");
        let named = server.get(&stays.replace(&format!("@{id}"), "%40branch.main")).await;
        assert_eq!(named.header("content-location"), stays, "a branch by name");
        let old = server.get(&stays.replace(&format!("@{id}"), "@tag.v1")).await;
        assert!(old.status == StatusCode::OK && old.header("zarrd-snapshot") != id, "{path}");
    }
    // No segment of such a path is one of the place.
    let escaped = server.get("/v1/nodes/m/g%2Fh").await;
    let plain = server.get("/v1/nodes/m/g/h").await;
    assert_eq!((escaped.status, plain.status, &escaped.body), (StatusCode::OK, StatusCode::OK, &plain.body));
    assert_eq!(
        (escaped.header("content-location"), plain.header("content-location").is_empty()),
        ("", false)
    );
    // The path of these does not say of which versions they are.
    let listing = server.get("/s3/m?list-type=2&prefix=@tag.v1/g/").await;
    assert_eq!(listing.status, StatusCode::OK);
    let keys = r#"{"get":[{"key":"@tag.v1/a/zarr.json"}]}"#;
    let json = [("content-type", "application/json")];
    let parts = server.request("POST", "/v1/partial/m", &json, keys.to_owned()).await;
    assert_eq!(parts.status, StatusCode::OK, "{:?}", parts.body);
    for answer in [listing, parts] {
        assert_eq!((answer.header("zarrd-snapshot"), answer.header("content-location")), ("", ""));
    }
    for absent in ["@tag.gone", "@tag.none", "@branch.left", "@0000000000000000000G", "@odd", "@"] {
        server.get(&format!("/store/m/{absent}/a/zarr.json")).await.refuses(404, "not-found", absent);
        server.get(&format!("/v1/data/m/{absent}/a")).await.refuses(404, "not-found", absent);
    }
    // Chunks of an array that is open while its branch is deleted: clients would take 404 for fill values.
    for absent in ["@tag.gone", "@branch.left", "@0000000000000000000G"] {
        for route in ["/store/m", "/plain/m", "/unshard/m", "/rechunk/m/2/zstd", "/v1/chunk/m"] {
            let url = format!("{route}/{absent}/a/c/0");
            server.get(&url).await.refuses(410, "no-such-version", &url);
        }
    }
    // What a mount of another version serves.
    let server = Server::of(repository(&fixtures().join("history-2"), Some("tag:v1")));
    assert_eq!(server.get("/store/m/g/h/x/zarr.json").await.status, StatusCode::OK);
    let server = Server::of(repository(&fixtures().join("history-2"), Some("branch:none")));
    let detail = server.get("/store/m/zarr.json").await.refuses(502, "backend-failed", "never absent");
    assert!(detail.contains("`none`"), "{detail}");
}

#[tokio::test]
async fn a_commit_is_seen_by_the_next_request_and_by_no_request_in_part() {
    // Two repositories of one history: the file that lists the snapshots is replaced by the newer one.
    let (_folder, root) = copied("history-2");
    let server = Server::of(repository(&root, None));
    let before = server.get("/v1/data/m/a?format=bytes").await;
    assert_eq!(before.status, StatusCode::OK);
    let versions = server.get("/v1/versions/m").await.json();
    assert_eq!(versions["served"], "branch.main");
    let names = |kind: &str| -> Vec<String> {
        let all = versions[kind].as_array().unwrap().iter();
        all.map(|named| named["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (names("branches"), names("tags")),
        (vec!["dev".into(), "main".into()], vec!["v1".into(), "v2".into()])
    );
    let snapshots = versions["snapshots"].as_array().unwrap();
    assert!(snapshots.is_sorted_by_key(|snapshot| std::cmp::Reverse(snapshot["time"].to_string())));
    assert!(snapshots.iter().any(|snapshot| snapshot["message"] == "second: a changed, x deleted"));
    assert_eq!(versions["total"], snapshots.len());
    let moved = server.get("/v1/versions/m?at=2999-01-01").await;
    assert_eq!(moved.status, StatusCode::TEMPORARY_REDIRECT);
    let location = moved.header("location").to_owned();
    assert_eq!(location, format!("/store/m/@{}/", before.header("zarrd-snapshot")));
    assert_eq!(server.get(&format!("{location}a/zarr.json")).await.status, StatusCode::OK);
    server.get("/v1/versions/m?at=2001-01-01T00:00Z").await.refuses(404, "not-found", "before the first");
    server.get("/v1/versions/m?at=2999-01-01&branch=none").await.refuses(404, "not-found", "no branch");
    for odd in ["at=yesterday", "at=", "limit=100000", "limit=x", "branch=main", "what=1"] {
        server.get(&format!("/v1/versions/m?{odd}")).await.refuses(400, "invalid-request", odd);
    }
    let first = serve("history-1").get("/v1/versions/m").await.json();
    assert_eq!(first["branches"].as_array().unwrap().len(), 2);
    assert_eq!(first["tags"].as_array().unwrap().len(), 2, "the deleted one is none");
    let plain = open(fixtures().join("files").to_str().unwrap(), &StoreOptions::default(), &cpu()).unwrap();
    Server::of(plain).get("/v1/versions/m").await.refuses(404, "no-versions", "a directory");
}

#[tokio::test]
async fn a_damaged_repository_is_refused_by_name_and_no_value_is_absent() {
    for (name, file) in [
        ("history-2", "repo"),
        ("history-2", "snapshots"),
        ("history-1", "snapshots"),
        ("split-2", "manifests"),
    ] {
        let (_folder, root) = copied(name);
        let path = root.join(file);
        let files: Vec<PathBuf> = if path.is_dir() {
            std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect()
        } else {
            vec![path]
        };
        let whole: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        let answers = async |what: &str| {
            let server = Server::of(repository(&root, None));
            for url in ["/store/m/a/c/0/3", "/v1/data/m/a"] {
                let answer = server.get(url).await;
                // Chunks at the edge of the split array are absent on purpose.
                if !(name == "split-2" && url.starts_with("/store")) || answer.status != StatusCode::NOT_FOUND
                {
                    assert!(
                        answer.status == StatusCode::BAD_GATEWAY
                            || answer.status == StatusCode::OK && what == "flipped",
                        "{name} {file} {what} {url}: {} {:?}",
                        answer.status,
                        answer.body
                    );
                }
            }
        };
        let write = |change: &dyn Fn(&[u8]) -> Vec<u8>| {
            for (file, whole) in files.iter().zip(&whole) {
                std::fs::write(file, change(whole)).unwrap();
            }
        };
        for length in [0, 20, 38, 39, 45, 80] {
            write(&|whole| whole[..length.min(whole.len() - 1)].to_vec());
            answers("cut").await;
        }
        write(&|whole| [&whole[..36], &[9], &whole[37..]].concat());
        let server = Server::of(repository(&root, None));
        let detail = server.get("/v1/data/m/a").await.refuses(502, "references-refused", "version 9");
        assert!(detail.contains("version 9"), "{detail}");
        write(&|whole| [&whole[..37], &[4], &whole[38..]].concat());
        answers("another kind").await;
        write(&|whole| [&whole[..38], &[7], &whole[39..]].concat());
        answers("another compression").await;
        for at in (40..120).step_by(7) {
            write(&|whole| {
                let mut bytes = whole.to_vec();
                let at = at % bytes.len();
                bytes[at] ^= 0x55;
                bytes
            });
            answers("flipped").await;
        }
    }
}

#[tokio::test]
async fn what_the_repository_misses_is_broken_and_never_absent() {
    let (_folder, root) = copied("history-2");
    std::fs::remove_dir_all(root.join("chunks")).unwrap();
    let server = Server::of(repository(&root, None));
    server.get("/v1/data/m/big").await.refuses(502, "reference-broken", "a file of chunks");
    server.get("/store/m/big/c/0/0").await.refuses(502, "reference-broken", "a file of chunks");
    std::fs::remove_dir_all(root.join("manifests")).unwrap();
    let server = Server::of(repository(&root, None));
    server.get("/store/m/big/c/0/0").await.refuses(502, "reference-broken", "a manifest");
    assert_eq!(server.get("/store/m/big/zarr.json").await.status, StatusCode::OK);
    std::fs::remove_dir_all(root.join("snapshots")).unwrap();
    let server = Server::of(repository(&root, None));
    server.get("/store/m/big/zarr.json").await.refuses(502, "reference-broken", "a snapshot");
    std::fs::remove_file(root.join("repo")).unwrap();
    let server = Server::of(repository(&root, None));
    server.get("/store/m/big/zarr.json").await.refuses(502, "backend-failed", "everything");
    let mounts = server.get("/v1/mounts").await.json();
    assert_eq!(mounts["mounts"][0]["kind"], "icechunk");
    assert_eq!(mounts["mounts"][0]["state"], "unavailable", "{mounts}");
}

#[tokio::test]
async fn repositories_over_the_memory_budget_are_refused_with_the_name_of_the_setting() {
    let url = format!("icechunk+file://{}", fixtures().join("history-2").display());
    for bytes in [500, 3000] {
        let budgets = OpenBudgets { references: ContainerBudget::new(bytes), ..OpenBudgets::default() };
        let server = Server::of(open_within(&url, &StoreOptions::default(), &cpu(), &budgets).unwrap());
        let detail = server.get("/store/m/zarr.json").await.refuses(502, "references-refused", "budget");
        assert!(detail.contains("`cache.references_size`"), "{detail}");
    }
}

#[test]
fn the_configuration_of_a_repository_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("icechunk+file://{}", fixtures().join("history-2").display());
    let checked = |url: &str, rest: &str| {
        let file = folder.path().join("zarrd.toml");
        std::fs::write(&file, format!("[mounts.m]\nurl = {url:?}\n{rest}")).unwrap();
        let output = run(&["check", "--config", file.to_str().unwrap()]);
        (output.status.code(), text(&output.stderr))
    };
    for rest in ["", "ref = \"tag:v1\"\n", "ref = \"branch:dev\"\n", "freshness = \"ttl:60s\"\n"] {
        assert_eq!(checked(&url, rest), (Some(0), String::new()), "{rest}");
    }
    for (url, rest, says) in [
        (&*url, "writable = true\n", "only read: remove `writable`"),
        ("icechunk+/srv/x", "", "icechunk+file:///"),
        (&*url, "redirect = true\n", "sign URLs"),
        (&*url, "ref = \"v1\"\n", "branch:NAME"),
        (&*url, "ref = \"snapshot:x\"\n", "20 characters"),
        (&*url, "ref = \"branch:a/b\"\n", "branch:NAME"),
        ("icechunk+vcc://bucket/x", "", "scheme"),
        ("icechunk+s3://bucket/x?branch=main", "", "query"),
        ("memory://", "ref = \"tag:v1\"\n", "icechunk+"),
    ] {
        let (code, error) = checked(url, rest);
        assert!(code != Some(0) && error.contains(says), "{url} {rest}: {code:?} {error}");
    }
}
