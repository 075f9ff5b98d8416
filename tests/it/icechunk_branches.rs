//! Branches of Icechunk repositories in a bucket: a commit is seen as soon as `freshness` wants it, by whole requests, and while
//! the bucket fails or is slow, `stale` keeps the last snapshot.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use serde_json::json;
use zarrd::cache::{StaleCache, ValueCache};
use zarrd::services::Mount;
use zarrd::store::{Freshness, StoreOptions, open};

use crate::access::{access, grant, known, token};
use crate::support::s3::{Fault, Kind, Rule, TestS3, When};
use crate::support::server::{Answer, Server, cpu};

const VALUES: &str = "/v1/data/m/a?format=bytes";

/// A repository in a bucket, in version 1 of the format, whose branches are a file each.
struct Scene {
    s3: TestS3,
    server: Server,
    admin: Server,
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/icechunk").join(name)
}

fn upload(s3: &TestS3, root: &Path, folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            upload(s3, root, &path);
        } else {
            let key = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            s3.insert(&key, std::fs::read(&path).unwrap());
        }
    }
}

impl Scene {
    async fn new(freshness: &str) -> Self {
        Self::of("history-1", freshness).await
    }

    async fn of(name: &str, freshness: &str) -> Self {
        let freshness: Freshness = freshness.parse().unwrap();
        let s3 = TestS3::start().await;
        upload(&s3, &fixture(name), &fixture(name));
        let options = StoreOptions { writable: false, ..s3.options() };
        let store = open(&format!("icechunk+{}", TestS3::s3_url()), &options, &cpu()).unwrap();
        let values = ValueCache::new(1 << 20);
        let store = values.wrap("m", store, freshness.policy);
        let stale = StaleCache::new(1 << 20).of_mount("m", freshness);
        let staleness = stale.as_ref().map(|stale| Arc::clone(stale.staleness()));
        let mount = Mount { staleness, ..Mount::read_only("m", store) };
        let mut builder = Server::build(mount);
        builder.values = Some(values);
        let (server, admin) = builder.finish_with_admin();
        Self { s3, server, admin }
    }

    /// Another program commits to the branch: it is the snapshot of a tag.
    fn commit(&self, tag: &str) -> String {
        let file = self.s3.value(&format!("refs/tag.{tag}/ref.json")).unwrap();
        self.s3.insert("refs/branch.main/ref.json", file.clone());
        let file: serde_json::Value = serde_json::from_slice(&file).unwrap();
        file["snapshot"].as_str().unwrap().to_owned()
    }

    fn fail(&self, fault: Fault) {
        let kinds = vec![Kind::Get, Kind::Head, Kind::List];
        self.s3.inject(vec![Rule { kinds, key: "", when: When::Always, fault }], 1);
    }

    async fn values(&self) -> Answer {
        let answer = self.server.get(VALUES).await;
        assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.body);
        answer
    }
}

fn snapshot(answer: &Answer) -> String {
    answer.header("zarrd-snapshot").to_owned()
}

#[tokio::test]
async fn a_commit_is_seen_by_the_next_request_and_the_old_snapshot_stays_readable() {
    let scene = Scene::new("always").await;
    let before = scene.values().await;
    let committed = scene.commit("v1");
    let after = scene.values().await;
    assert_eq!(snapshot(&after), committed);
    assert_ne!((snapshot(&after), &after.body), (snapshot(&before), &before.body));
    assert_ne!(after.header("etag"), before.header("etag"));
    let old = scene.server.get(before.header("content-location")).await;
    assert_eq!((old.status, &old.body), (StatusCode::OK, &before.body));
    let tag = scene.server.get("/v1/data/m/@tag.v1/a?format=bytes").await;
    assert_eq!((&tag.body, snapshot(&tag)), (&after.body, committed));
}

#[tokio::test]
async fn requests_beside_commits_see_one_snapshot_each() {
    let scene = Scene::new("always").await;
    let mut of_snapshot = std::collections::HashMap::new();
    for tag in ["v1", "v2", "v1"] {
        scene.commit(tag);
        let answer = scene.values().await;
        of_snapshot.insert(snapshot(&answer), answer.body);
    }
    assert_eq!(of_snapshot.len(), 2);
    for round in 0..20 {
        let (commit, answer) = tokio::join!(
            async {
                tokio::time::sleep(Duration::from_micros(137 * round)).await;
                scene.commit(if round % 2 == 0 { "v2" } else { "v1" })
            },
            scene.values()
        );
        assert_eq!(of_snapshot.get(&snapshot(&answer)), Some(&answer.body), "{round} {commit}");
    }
}

#[tokio::test]
async fn a_branch_is_asked_for_as_often_as_the_freshness_wants() {
    for (freshness, most) in [("ttl:1h", 0), ("immutable", 0), ("always", 6)] {
        let scene = Scene::new(freshness).await;
        let before = scene.values().await;
        let requests = scene.s3.requests(Kind::Get);
        scene.commit("v1");
        for _ in 0..3 {
            let again = scene.values().await;
            assert_eq!(snapshot(&again) == snapshot(&before), most == 0, "{freshness}");
        }
        let asked = scene.s3.requests(Kind::Get) - requests;
        assert!(if most == 0 { asked == 0 } else { asked >= 3 }, "{freshness}: {asked}");
    }
}

#[tokio::test]
async fn while_the_bucket_fails_or_hangs_a_branch_is_its_last_snapshot() {
    for freshness in ["always, stale:1h", "ttl:0s, stale:1h"] {
        for fault in [Fault::Status(503), Fault::Hang] {
            let scene = Scene::new(freshness).await;
            let before = scene.values().await;
            assert!(before.header("age").is_empty());
            let document = scene.server.get("/store/m/a/zarr.json").await;
            scene.fail(fault);
            scene.commit("v1");
            for _ in 0..3 {
                let answer = scene.values().await;
                assert_eq!((snapshot(&answer), &answer.body), (snapshot(&before), &before.body), "{fault:?}");
                assert_eq!(
                    answer.header("cache-status"),
                    "zarrd; hit; detail=stale",
                    "{freshness} {fault:?}"
                );
                assert!(!answer.header("age").is_empty(), "{freshness} {fault:?}");
            }
            let again = scene.server.get("/store/m/a/zarr.json").await;
            assert_eq!((again.status, &again.body), (StatusCode::OK, &document.body));
            scene.s3.heal();
            let mut seen = scene.values().await;
            for _ in 0..100 {
                if snapshot(&seen) != snapshot(&before) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
                seen = scene.values().await;
            }
            assert_ne!(snapshot(&seen), snapshot(&before), "the bucket responds again");
        }
    }
}

#[tokio::test]
async fn tags_and_snapshots_take_nothing_from_a_branch_whose_bucket_fails() {
    let scene = Scene::new("always, stale:1h").await;
    let before = scene.values().await;
    let id = snapshot(&before);
    scene.server.get("/v1/data/m/@tag.v1/a?format=bytes").await;
    scene.fail(Fault::Hang);
    assert_eq!(snapshot(&scene.values().await), id, "the first request waits for a second");
    let asked = scene.s3.requests(Kind::Get) + scene.s3.requests(Kind::Head) + scene.s3.requests(Kind::List);
    // What is known of these says nothing of the bucket, and does not take the place of the branch.
    for _ in 0..80 {
        for version in ["@tag.v1", &format!("@{id}")] {
            scene.server.get(&format!("/v1/data/m/{version}/a?format=bytes")).await;
        }
        let answer = scene.values().await;
        assert_eq!((snapshot(&answer), &answer.body), (id.clone(), &before.body));
        assert_eq!(answer.header("cache-status"), "zarrd; hit; detail=stale");
    }
    let now = scene.s3.requests(Kind::Get) + scene.s3.requests(Kind::Head) + scene.s3.requests(Kind::List);
    assert!(now - asked < 80, "{} requests to a bucket that hangs", now - asked);
}

#[tokio::test]
async fn without_stale_a_branch_that_cannot_be_resolved_is_an_error_and_not_another_snapshot() {
    let scene = Scene::new("always").await;
    scene.values().await;
    scene.fail(Fault::Status(503));
    for url in [VALUES, "/store/m/a/zarr.json", "/v1/nodes/m/a", "/store/m/a/c/0?pretty"] {
        let answer = scene.server.get(url).await;
        assert!(matches!(answer.status.as_u16(), 502..=504), "{url}: {} {:?}", answer.status, answer.body);
    }
    // What never changes does not depend on the branch.
    let fixed = scene.server.get("/v1/nodes/m/@tag.v1/a").await;
    assert!(fixed.status != StatusCode::NOT_FOUND, "{:?}", fixed.body);
}

#[tokio::test]
async fn grants_name_versions() {
    let scene = Scene::new("always").await;
    let commit = scene.commit("v2");
    for (prefix, readable) in [
        ("@tag.", vec!["@tag.v1/", "@tag.v2/"]),
        ("@tag.v1", vec!["@tag.v1/"]),
        ("@branch.", vec!["@branch.main/", "@branch.dev/"]),
        ("@branch.dev", vec!["@branch.dev/"]),
        ("a", vec![""]),
        ("@tag.v1/a", vec!["@tag.v1/"]),
    ] {
        let tokens = json!({ "some": known("some", json!([grant("m", prefix, &["read"])])) });
        scene.server.set_access(access(json!({ "tokens": tokens }), &[], &Arc::default()));
        let bearer = format!("Bearer {}", token("some"));
        let pin = format!("@{commit}/");
        for version in ["", "@branch.main/", "@branch.dev/", "@tag.v1/", "@tag.v2/", &pin] {
            for url in [
                "/v1/nodes/m/{}a",
                "/v1/data/m/{}a",
                "/store/m/{}a/zarr.json",
                "/rechunk/m/auto/raw/{}a/zarr.json",
            ] {
                let url = url.replace("{}", version);
                let answer = scene.server.ask(Method::GET, &url, &[("authorization", &bearer)]).await;
                let expected = if readable.contains(&version) { 200 } else { 403 };
                assert_eq!(answer.status, expected, "{prefix}: {url}: {:?}", answer.body);
            }
        }
    }
}

#[tokio::test]
async fn a_grant_of_all_tags_lists_them_by_s3() {
    let scene = Scene::new("always").await;
    let tokens = json!({ "some": known("some", json!([grant("m", "@tag.", &["read", "list"])])) });
    scene.server.set_access(access(json!({ "tokens": tokens }), &[], &Arc::default()));
    let bearer = format!("Bearer {}", token("some"));
    let list = async |prefix: &str| {
        let url = format!("/s3/m?list-type=2&prefix={prefix}");
        scene.server.ask(Method::GET, &url, &[("authorization", &bearer)]).await
    };
    for prefix in ["@tag.v1/", "@tag.v1/a/", "%40tag.v2/", "@tag.v1/a"] {
        let answer = list(prefix).await;
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(answer.status == StatusCode::OK && text.contains("/zarr.json</Key>"), "{prefix}: {text}");
    }
    assert_eq!(list("@tag.").await.status, StatusCode::OK, "it is covered, and versions are not listed");
    for prefix in ["", "@", "@ta", "a/", "@branch.main/", "@branch.", "@tagged/"] {
        assert_eq!(list(prefix).await.status, StatusCode::FORBIDDEN, "{prefix}");
    }
}

/// The frames of a response of `/v1/partial`; `None` for a key without a value.
fn frames(mut body: &[u8]) -> Vec<Option<&[u8]>> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = body.split_first_chunk() {
        let length = u64::from_le_bytes(*length);
        let (frame, rest) = if length == u64::MAX {
            (None, rest)
        } else {
            let (frame, rest) = rest.split_at(usize::try_from(length).unwrap());
            (Some(frame), rest)
        };
        frames.push(frame);
        body = rest;
    }
    frames
}

#[tokio::test]
async fn many_values_of_one_request_are_of_one_snapshot() {
    let scene = Scene::new("always").await;
    let partial = async |keys: &[&str]| {
        let parts: Vec<_> = keys.iter().map(|key| json!({ "key": key })).collect();
        let body = json!({ "get": parts }).to_string();
        scene.server.request("POST", "/v1/partial/m", &[("content-type", "application/json")], body).await
    };
    let keys = [
        "a/c/0/0",
        "a/c/1/0",
        "a/zarr.json",
        "@branch.main/a/c/0/0",
        "@branch.main/a/c/1/0",
        "@tag.v1/a/c/0/0",
    ];
    let before = partial(&keys).await;
    assert_eq!(before.status, StatusCode::OK, "{:?}", before.body);
    let stored = |frames: &[Option<&[u8]>]| frames.iter().all(Option::is_some);
    let of_before = frames(&before.body);
    assert!(stored(&of_before) && of_before[0] == of_before[3] && of_before[1] == of_before[4]);
    // Each branch is asked for once, however many keys name it: the served one, and the one that is named.
    let requests = scene.s3.requests(Kind::Get);
    let many: Vec<String> = (0..40).map(|at| format!("@branch.main/a/c/{}/0", at % 2)).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).chain(keys).collect();
    let answer = partial(&many).await;
    assert_eq!(frames(&answer.body).len(), 46);
    let asked = scene.s3.requests(Kind::Get) - requests;
    assert!(asked <= 4, "{asked} requests");
    // A commit is seen as a whole.
    scene.commit("v1");
    let after = partial(&keys).await;
    let of_after = frames(&after.body);
    assert!(of_after[0] == of_after[3] && of_after[0] == of_after[5] && of_after[0] != of_before[0]);
    // Versions that are not there: documents are absent, and chunks are an error, which clients do not take for fill values.
    for version in ["@branch.left", "@tag.gone", "@tag.none", "@0000000000000000000G"] {
        let (document, chunk) = (format!("{version}/a/zarr.json"), format!("{version}/a/c/0/0"));
        let absent = partial(&["a/zarr.json", &document]).await;
        assert_eq!(absent.status, StatusCode::OK, "{version} {:?}", absent.body);
        assert!(matches!(frames(&absent.body)[..], [Some(_), None]));
        let gone = partial(&["a/zarr.json", &chunk]).await;
        gone.refuses(410, "no-such-version", version);
        assert_eq!((&gone.json()["part"], &gone.json()["key"]), (&json!(1), &json!(chunk)));
    }
}

/// The URLs of the chunks of an array, which are files of the repository, in its versions.
fn chunks_of_big(id: &str) -> Vec<String> {
    let versions = ["", "@branch.main/", "@tag.v2/", &format!("@{id}/")].map(str::to_owned);
    versions
        .iter()
        .flat_map(|version| {
            [format!("/store/m/{version}big/c/0/0"), format!("/v1/data/m/{version}big?format=bytes")]
        })
        .collect()
}

#[tokio::test]
async fn a_purge_of_a_path_evicts_what_is_cached_of_it_in_every_version() {
    let scene = Scene::of("history-2", "ttl:1h").await;
    let id = snapshot(&scene.values().await);
    let urls = chunks_of_big(&id);
    let whole = scene.s3.objects();
    let mut cut = whole.clone();
    cut.retain(|key, _| !key.contains("chunks/"));
    assert!(cut.len() < whole.len());
    for place in
        ["/big", "/@branch.main/big", "/@tag.v2/big", &format!("/@{id}/big"), "/@branch.main", "", "/big/c/0"]
    {
        scene.s3.put_back(&whole);
        for url in &urls {
            let answer = scene.server.get(url).await;
            assert_eq!(answer.status, StatusCode::OK, "{place} {url}: {:?}", answer.body);
        }
        scene.s3.put_back(&cut);
        for url in &urls {
            assert_eq!(scene.server.get(url).await.status, StatusCode::OK, "{place} {url}: it is cached");
        }
        let purged = scene.admin.ask(Method::DELETE, &format!("/v1/cache/m{place}"), &[]).await;
        assert_eq!((purged.status, &purged.json()["durable"]), (StatusCode::OK, &json!(true)), "{place}");
        for url in &urls {
            scene.server.get(url).await.refuses(502, "reference-broken", &format!("{place} {url}"));
        }
    }
    // What is beside it stays cached.
    scene.s3.put_back(&whole);
    let beside = "/v1/data/m/g/sharded?format=bytes";
    assert_eq!(scene.server.get(beside).await.status, StatusCode::OK);
    scene.s3.put_back(&cut);
    scene.admin.ask(Method::DELETE, "/v1/cache/m/@branch.main/big", &[]).await;
    assert_eq!(scene.server.get(beside).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_version_is_warmed_as_it_is_read_and_one_that_is_not_there_is_not_found() {
    for version in ["", "/@branch.main", "/@tag.v2"] {
        let scene = Scene::of("history-2", "always").await;
        let warmed =
            scene.admin.request("POST", &format!("/v1/cache/m{version}/big?level=chunks"), &[], "").await;
        assert_eq!(warmed.status, StatusCode::OK, "{version}: {:?}", warmed.body);
        assert_eq!((&warmed.json()["chunks"], &warmed.json()["complete"]), (&json!(4), &json!(true)));
        let mut cut = scene.s3.objects();
        cut.retain(|key, _| !key.contains("chunks/"));
        scene.s3.put_back(&cut);
        let read = scene.server.get(&format!("/v1/data/m{version}/big?format=bytes")).await;
        assert_eq!(read.status, StatusCode::OK, "{version}: {:?}", read.body);
    }
    let scene = Scene::of("history-2", "always").await;
    for version in ["@nope", "@", "@branch.none", "@tag.none", "@tag.gone/big", "@0000000000000000000G"] {
        let url = format!("/v1/cache/m/{version}?level=chunks");
        let answer = scene.admin.request("POST", &url, &[], "").await;
        assert_eq!((answer.status, &*answer.code()), (StatusCode::NOT_FOUND, "not-found"), "{version}");
    }
}

#[tokio::test]
async fn a_repository_that_is_gone_is_a_failure_below_every_version() {
    for name in ["history-1", "history-2"] {
        let scene = Scene::of(name, "always").await;
        let mut objects = scene.s3.objects();
        let count = objects.len();
        objects.retain(|key, _| !key.contains("refs/") && !key.ends_with("repo"));
        assert!(objects.len() < count);
        scene.s3.put_back(&objects);
        for version in
            ["", "@branch.main/", "@branch.left/", "@tag.v1/", "@tag.none/", "@0000000000000000000G/"]
        {
            for key in ["zarr.json", "a/zarr.json", "a/c/0/0"] {
                let url = format!("/store/m/{version}{key}");
                scene.server.get(&url).await.refuses(502, "backend-failed", &url);
            }
            let url = format!("/v1/nodes/m/{version}a");
            scene.server.get(&url).await.refuses(502, "backend-failed", &url);
        }
    }
}
