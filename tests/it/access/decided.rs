//! Authorization decisions: equal for every spelling of a key, made before caches, and never beyond the grant.
//!
//! Longer by hand: `ZARRD_CASES=2000 cargo test --test it decided`.

use std::fmt::Write;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;

use super::{access, ask, filled, get_as, grant, known, server, stranger, token};
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, put};
use crate::support::stamped::by_hand;
use axum::body::Body;
use axum::http::Request;
use zarrd::auth::Scope;
use zarrd::services::Mount;

/// One way to write a key in a URL: with escapes where it needs none, in either case, slashes twice, and what is no part of
/// it.
fn written(key: &str, choices: &[u8]) -> String {
    written_below("/store/m/", key, choices)
}

/// One way to write what is below a route and a mount. Of a node, slashes may be escaped.
fn written_below(route: &str, key: &str, choices: &[u8]) -> String {
    let of_nodes = route.starts_with("/v1/");
    let mut choices = choices.iter().cycle();
    let mut next = || *choices.next().unwrap();
    let mut url = match next() % 3 {
        0 => "http://any.example".to_owned(),
        _ => String::new(),
    };
    url.push_str(route);
    for letter in key.bytes() {
        match (letter, next() % 4) {
            (b'/', 0) => url.push_str("//"),
            (b'/', 1) if of_nodes => url.push_str("%2F"),
            (b'/', 2) if of_nodes => url.push_str("%2f/"),
            (b'/', _) => url.push('/'),
            (letter, 0) => write!(url, "%{letter:02x}").unwrap(),
            (letter, 1) => write!(url, "%{letter:02X}").unwrap(),
            (letter, _) if letter.is_ascii_alphanumeric() || b".;-_~=@".contains(&letter) => {
                url.push(char::from(letter));
            }
            (letter, _) => write!(url, "%{letter:02X}").unwrap(),
        }
    }
    if next() % 3 == 0 {
        url.push_str("?x=%2F..%2F&below=g/");
    }
    url
}

/// The requested keys: segments equal and similar to those of the grants; and spellings of each key.
fn keys_and_ways() -> impl Strategy<Value = (String, Vec<Vec<u8>>)> {
    let key = prop::collection::vec("[abg;.=@ ]{1,3}", 1..4)
        .prop_filter("these are no segments", |segments| {
            segments.iter().all(|segment| segment != "." && segment != "..")
        })
        .prop_map(|segments| segments.join("/"));
    (key, prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 1..12))
}

/// As many cases, or those that are asked for.
fn cases(count: u64) -> ProptestConfig {
    let count = u32::try_from(by_hand("ZARRD_CASES", count)).unwrap();
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(count) }
}

#[test]
fn every_spelling_of_a_key_gets_the_same_decision() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let reader =
        known("reader", json!([grant("m", "g", &["read", "write"]), grant("m", "a/b", &["read", "write"])]));
    let (server, _) = runtime.block_on(server(json!({ "tokens": { "reader": reader } }), &[]));
    let bearer = format!("Bearer {}", token("reader"));
    // Some 24 decisions each.
    let mut runner = TestRunner::new(cases(400));
    let ran = runner.run(&keys_and_ways(), |(key, ways)| {
        let is_granted =
            ["g", "a/b"].iter().any(|prefix| key == *prefix || key.starts_with(&format!("{prefix}/")));
        for method in ["GET", "HEAD", "PUT", "DELETE"] {
            for way in &ways {
                let url = written(&key, way);
                let headers = [("authorization", &*bearer)];
                let status = runtime.block_on(ask(&server, method, &url, &headers, "")).status;
                let expected = is_granted && method != "DELETE";
                prop_assert_eq!(status != 403, expected, "{} {} of {}: {}", method, url, key, status);
                prop_assert_ne!(status, 401);
            }
        }
        Ok(())
    });
    ran.unwrap();
}

#[test]
fn every_spelling_of_a_node_gets_the_same_decision() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let reader = known("reader", json!([grant("m", "g", &["read"]), grant("m", "a/b", &["read"])]));
    let (server, _) = runtime.block_on(server(json!({ "tokens": { "reader": reader } }), &[]));
    let bearer = format!("Bearer {}", token("reader"));
    let mut runner = TestRunner::new(cases(150));
    let ran = runner.run(&keys_and_ways(), |(path, ways)| {
        let is_granted =
            ["g", "a/b"].iter().any(|prefix| path == *prefix || path.starts_with(&format!("{prefix}/")));
        for route in ["/v1/data/m/", "/v1/stats/m/", "/v1/nodes/m/", "/v1/chunk/m/", "/v1/vectors/m/"] {
            // A request for a chunk concerns the node before its coordinates.
            let path = if route.contains("chunk") { format!("{path}/c/0") } else { path.clone() };
            for way in &ways {
                let url = written_below(route, &path, way);
                let headers = [("authorization", &*bearer)];
                let status = runtime.block_on(ask(&server, "GET", &url, &headers, "")).status;
                prop_assert_eq!(status != 403, is_granted, "{} of {}: {}", url, path, status);
                prop_assert_ne!(status, 401);
            }
        }
        Ok(())
    });
    ran.unwrap();
}

#[tokio::test]
async fn escaped_slashes_give_access_to_no_other_node() {
    let g = known("g", json!([grant("m", "g", &["read"])]));
    let (server, _) = server(json!({ "tokens": { "g": g } }), &[]).await;
    let get = async |url: &str| get_as(&server, &token("g"), url).await.status.as_u16();
    for route in ["data", "nodes"] {
        for (path, status) in [
            ("g%2Fin", 200),
            ("g%2f%2Fin", 200),
            ("%2Fg/in", 200),
            ("g%2F..%2Farr", 400),
            ("g%2F%2e%2e%2Farr", 400),
            ("g%252Fin", 403),
            ("arr%2F", 403),
            ("%2Farr", 403),
        ] {
            assert_eq!(get(&format!("/v1/{route}/m/{path}")).await, status, "{route} {path}");
        }
    }
    assert_eq!(get("/v1/chunk/m/g%2Fin%2Fc%2F0").await, 200);
    assert_eq!(get("/v1/chunk/m/arr%2Fc%2F0").await, 403);
    assert_eq!(get("/v1/nodes/m%2Fg").await, 400);
}

#[tokio::test]
async fn paths_that_name_no_key_are_refused_for_every_caller() {
    let (server, _) =
        server(json!({ "tokens": { "a": known("a", json!([grant("m", "g", &["read"])])) } }), &[]).await;
    for url in [
        "/store/m/g%2Fin",
        "/store/m/g/../arr/c/0",
        "/store/m/g/%2e%2E/arr",
        "/store/m/g/%00",
        "/store/m/%ff",
        "/store/m/g/%",
    ] {
        assert_eq!(get_as(&server, &token("a"), url).await.status, 400, "{url}");
        assert_eq!(ask(&server, "GET", url, &[], "").await.status, 400, "{url}");
    }
}

#[tokio::test]
async fn a_revoked_right_is_refused_though_the_response_is_cached() {
    let read = json!([grant("m", "", &["read"])]);
    let (server, web) =
        server(json!({ "tokens": { "a": known("a", read.clone()), "b": known("b", read.clone()) } }), &[])
            .await;
    let urls = [
        "/v1/data/m/arr?slice=0",
        "/v1/data/m/arr?downsample=2&method=stride",
        "/v1/stats/m/arr",
        "/store/m/arr/c/0",
        "/v1/chunk/m/arr/c/0",
        "/rechunk/m/auto/raw/arr/c/0",
        "/v1/nodes/m/arr",
    ];
    for url in urls {
        for _ in 0..3 {
            assert_eq!(get_as(&server, &token("a"), url).await.status, 200, "{url}");
        }
        assert_eq!(ask(&server, "GET", url, &[], "").await.status, 401, "{url}");
        assert_eq!(get_as(&server, &token("c"), url).await.status, 401, "{url}");
    }
    server.set_access(access(json!({ "tokens": { "b": known("b", read) } }), &[], &web));
    for url in urls {
        assert_eq!(get_as(&server, &token("a"), url).await.status, 401, "{url}");
        assert_eq!(get_as(&server, &token("b"), url).await.status, 200, "{url}");
    }
}

#[tokio::test]
async fn a_grant_for_a_prefix_covers_every_key_read_for_its_nodes() {
    let at = |prefix: &str| json!([grant("m", prefix, &["read", "list"])]);
    let tokens = json!({ "g": known("g", at("g")), "arr": known("arr", at("arr")), "chunks": known("chunks", at("arr/c")), "in": known("in", at("g/in")) });
    let (server, _) = server(json!({ "tokens": tokens }), &[]).await;
    for (holder, url, status) in [
        ("g", "/v1/nodes/m/g", 200),
        ("g", "/v1/data/m/g/in", 200),
        ("g", "/plain/m/g/in/zarr.json", 200),
        ("g", "/plain/m/g/?format=json", 200),
        ("g", "/store/m/g/zarr.json?consolidated", 200),
        ("g", "/rechunk/m/auto/raw/g/in/c/0", 200),
        ("g", "/s3/m?prefix=g/", 200),
        ("g", "/s3/m?prefix=g/i", 200),
        ("g", "/s3/m?prefix=g", 403),
        ("g", "/s3/m", 403),
        ("g", "/store/m/", 403),
        ("g", "/store/m/zarr.json", 403),
        ("g", "/store/m/zarr.json?consolidated", 403),
        ("g", "/store/m/gg", 403),
        ("g", "/v1/nodes/m", 403),
        ("g", "/v1/nodes/m/arr", 403),
        ("g", "/rechunk/m/auto/raw/arr/c/0", 403),
        ("g", "/rechunk/m/auto/raw/dtype=stored/arr/c/0", 403),
        ("in", "/v1/data/m/g/in", 200),
        ("in", "/v1/chunk/m/g/in/c/0", 200),
        ("in", "/v1/stats/m/g/in", 200),
        ("g", "/v1/stats/m/g/in", 200),
        ("g", "/v1/stats/m/arr", 403),
        ("in", "/v1/nodes/m/g", 403),
        ("arr", "/v1/chunk/m/arr/c/0", 200),
        ("arr", "/unshard/m/arr/c/0", 200),
        // The stored values alone: what lies in an array's directory is made of what is beside it.
        ("chunks", "/store/m/arr/c/0", 200),
        ("chunks", "/store/m/arr/c/?format=json", 200),
        ("chunks", "/v1/chunk/m/arr/c/0", 403),
        ("chunks", "/v1/stats/m/arr", 403),
        ("chunks", "/v1/nodes/m/arr/c", 403),
        ("chunks", "/plain/m/arr/c/0", 403),
        ("chunks", "/unshard/m/arr/c/?format=json", 403),
        ("chunks", "/rechunk/m/auto/raw/arr/c/0", 403),
        ("chunks", "/v1/vectors/m/arr/c/vertices", 403),
    ] {
        let answer = get_as(&server, &token(holder), url).await;
        assert_eq!(answer.status, status, "{holder} {url}: {:?}", answer.body);
    }
}

#[tokio::test]
async fn neighbours_of_a_missing_node_are_named_only_to_callers_who_may_list() {
    let at = |scopes: &[&str]| json!([grant("m", "g", scopes)]);
    let tokens =
        json!({ "reads": known("reads", at(&["read"])), "lists": known("lists", at(&["read", "list"])) });
    let (server, _) = server(json!({ "tokens": tokens }), &[]).await;
    for (holder, url, nearest, meant) in [
        ("reads", "/v1/nodes/m/g/inn", None, None),
        ("reads", "/v1/data/m/g/inn", None, None),
        ("lists", "/v1/nodes/m/g/inn", Some("g"), Some("g/in")),
        ("lists", "/v1/data/m/g/inn", Some("g"), Some("g/in")),
        ("lists", "/v1/data/m/g/another", Some("g"), None),
    ] {
        let answer = get_as(&server, &token(holder), url).await;
        answer.refuses(404, "not-found", url);
        let problem = answer.json();
        assert_eq!(problem.get("nearest").and_then(|at| at.as_str()), nearest, "{holder} {url}: {problem}");
        assert_eq!(
            problem.get("did_you_mean").and_then(|at| at.as_str()),
            meant,
            "{holder} {url}: {problem}"
        );
        let is_silent = nearest.is_some() || !problem.to_string().contains("g/in\"");
        assert!(is_silent && problem.get("children").is_none(), "{problem}");
    }
}

#[tokio::test]
async fn the_right_to_read_a_declared_arrays_path_is_not_enough_to_read_it() {
    let store = zarrd::store::open(
        crate::dependents::FOLDER,
        &zarrd::store::StoreOptions::default(),
        &crate::support::server::cpu(),
    )
    .unwrap();
    let server = Server::of(store);
    let family = "suffix_siblings.zarr";
    let tokens = json!({
        "mask": known("mask", json!([grant("m", &format!("{family}/mask"), &["read", "list"])])),
        "family": known("family", json!([grant("m", family, &["read", "list"])])),
    });
    server.set_access(access(json!({ "tokens": tokens }), &[], &std::sync::Arc::default()));
    for url in [
        format!("/v1/data/m/{family}/mask"),
        format!("/v1/nodes/m/{family}/mask"),
        format!("/plain/m/{family}/mask/zarr.json"),
        format!("/plain/m/{family}/mask/c/0/0"),
        format!("/rechunk/m/auto/raw/{family}/mask/c/0/0"),
    ] {
        assert_eq!(get_as(&server, &token("family"), &url).await.status, 200, "{url}");
        let refused = get_as(&server, &token("mask"), &url).await;
        assert!(refused.refuses(403, "forbidden", &url).contains("inside an array"), "{url}");
    }
}

#[tokio::test]
async fn the_right_to_read_a_declared_arrays_path_is_not_enough_to_make_an_array_like_it() {
    let store = memory();
    let document =
        std::fs::read(format!("{}/suffix_siblings.zarr/zarr.json", crate::dependents::FOLDER)).unwrap();
    put(&store, "family/zarr.json", document).await;
    // Groups above the new array that are there need not be made.
    put(&store, "zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    let server = Server::build(Mount { writable: true, ..Mount::read_only("m", store) }).finish();
    let may = |read: &str| json!([grant("m", read, &["read"]), grant("m", "new", &["read", "write"])]);
    let tokens =
        json!({ "mask": known("mask", may("family/mask")), "family": known("family", may("family")) });
    server.set_access(access(json!({ "tokens": tokens }), &[], &std::sync::Arc::default()));
    let put_as = async |name: &str, like: &str| {
        let bearer = format!("Bearer {}", token(name));
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        ask(
            &server,
            "PUT",
            &format!("/v1/nodes/m/new/{name}"),
            &headers,
            &json!({ "like": like }).to_string(),
        )
        .await
    };
    let refused = put_as("mask", "family/mask").await;
    assert!(refused.refuses(403, "forbidden", "mask").contains("inside an array"), "{refused:?}");
    assert_eq!(refused.json()["written"], false);
    // What the caller may not read at all is as if it was not there.
    assert_eq!(put_as("mask", "family").await.status, 400);
    assert_eq!(put_as("family", "family/mask").await.status, 201);
}

#[tokio::test]
async fn the_right_to_read_one_level_of_an_image_is_not_enough_to_read_levels_made_from_others() {
    let store = memory();
    Array::of(&[3, 900]).store(&store, "i/s0").await;
    Array::of(&[3, 900]).store(&store, "map/a").await;
    Array::of(&[3, 900]).store(&store, "plain/a").await;
    let dataset =
        json!({"path": "s0", "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0]}]});
    let axes = json!([{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]);
    let image = json!({"ome": {"version": "0.5", "multiscales": [{"axes": axes, "datasets": [dataset]}]}});
    for (path, attributes) in [("i", image), ("map", json!({"proj:code": "EPSG:3031"})), ("plain", json!({}))]
    {
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
        put(&store, &format!("{path}/zarr.json"), group.to_string()).await;
    }
    let server = Server::of(store);
    let grants = ["i/s1", "map/a", "plain/a"].map(|path| grant("m", path, &["read", "list"]));
    let tokens = json!({
        "narrow": known("narrow", json!(grants)),
        "wide": known("wide", json!(["i", "map", "plain"].map(|path| grant("m", path, &["read", "list"])))),
    });
    server.set_access(access(json!({ "tokens": tokens }), &[], &std::sync::Arc::default()));
    for (key, is_narrow) in [
        ("i/s1/zarr.json", false),
        ("i/s1/c/0/0", false),
        ("map/a/zarr.json", false),
        ("plain/a/1/c/0/0", true),
    ] {
        let url = format!("/pyramid/m/auto/auto/raw/{key}");
        assert_eq!(get_as(&server, &token("wide"), &url).await.status, 200, "{url}");
        let status = get_as(&server, &token("narrow"), &url).await.status.as_u16();
        assert_eq!(status, if is_narrow { 200 } else { 403 }, "{url}");
    }
}

#[tokio::test]
async fn what_the_group_around_an_array_says_decides_nothing_for_those_who_may_not_read_it() {
    let store = memory();
    let levels = json!([{"axes": [{"name": "y"}, {"name": "x"}], "datasets": [{"path": "0"}]}]);
    let attributes = json!({"multiscales": levels, "image-label": {}});
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
    put(&store, "i/zarr.json", group.to_string()).await;
    let array = Array::of(&[2, 2]).data_type(crate::support::data_types::data_type("uint8"));
    put(&store, "i/0/zarr.json", array.document().1.to_string()).await;
    put(&store, "i/0/c/0/0", vec![0, 9, 9, 2]).await;
    let server = Server::of(store);
    let tokens = json!({
        "narrow": known("narrow", json!([grant("m", "i/0", &["read"])])),
        "wide": known("wide", json!([grant("m", "i", &["read"])])),
    });
    server.set_access(access(json!({ "tokens": tokens }), &[], &std::sync::Arc::default()));
    // The most frequent label, or the mean; in any order, because responses are cached.
    for (holder, expected) in [("wide", 9), ("narrow", 5), ("wide", 9), ("narrow", 5)] {
        for url in ["/v1/data/m/i/0?downsample=2,2", "/v1/data/m/i/0?fit=1,1"] {
            let answer = get_as(&server, &token(holder), url).await;
            assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &[expected][..]), "{holder} {url}");
        }
    }
}

#[tokio::test]
async fn every_key_in_a_body_is_authorized_by_itself() {
    let scopes = ["read", "write", "delete"];
    let tokens = json!({ "g": known("g", json!([grant("m", "g", &scopes)])), "r": known("r", json!([grant("m", "g", &["read"])])) });
    let (server, _) = server(json!({ "tokens": tokens }), &[]).await;
    let get = |keys: &[&str]| {
        json!({ "get": keys.iter().map(|key| json!({ "key": key })).collect::<Vec<_>>() }).to_string()
    };
    let set = |key: &str| {
        json!({ "set": [{ "key": "g/new", "offset": 0, "base64": "AA==" }, { "key": key, "offset": 0, "base64": "AA==" }] }).to_string()
    };
    let erase = |keys: &[&str]| json!({ "keys": keys }).to_string();
    for (holder, route, body, status) in [
        ("g", "partial", get(&["g/zarr.json", "g/in/c/0"]), 200),
        ("g", "partial", get(&["g/zarr.json", "arr/c/0"]), 403),
        ("g", "partial", get(&["g/zarr.json", "../arr/c/0"]), 400),
        ("g", "partial", set("g/other"), 200),
        ("g", "partial", set("gother"), 403),
        ("r", "partial", set("g/other"), 403),
        ("r", "partial", get(&["g/zarr.json"]), 200),
        ("r", "erase", erase(&["g/new"]), 403),
        ("g", "erase", erase(&["g/new", "zarr.json"]), 403),
        ("g", "erase", erase(&["g/new", "g/other"]), 200),
    ] {
        let bearer = format!("Bearer {}", token(holder));
        let answer =
            ask(&server, "POST", &format!("/v1/{route}/m"), &[("authorization", &bearer)], &body).await;
        assert_eq!(answer.status, status, "{holder} {route} {body}: {:?}", answer.body);
    }
}

#[tokio::test]
async fn a_copy_needs_the_right_to_write_its_destination() {
    let tokens = json!({ "c": known("c", json!([
        grant("m", "arr", &["read"]), grant("m", "g", &["read", "write", "delete"]), grant("m", "w", &["write"]),
    ])) });
    let (server, _) = server(json!({ "tokens": tokens }), &[]).await;
    for (method, from, to, overwrite, status) in [
        ("COPY", "/store/m/arr/c/0", "/store/m/g/copy", "T", 201),
        ("COPY", "/store/m/arr/c/0", "/store/m/arr/c/9", "T", 403),
        ("COPY", "/store/m/zarr.json", "/store/m/g/copy", "T", 403),
        ("COPY", "/store/m/arr/c/0", "/store/m/g%2F..%2Farr", "T", 400),
        ("COPY", "/store/m/arr/c/0", "/store/m//g///copy2", "T", 201),
        // Replacing a prefix erases it.
        ("COPY", "/store/m/arr/c/0", "/store/m/w/x", "T", 403),
        ("COPY", "/store/m/arr/c/0", "/store/m/w/x", "F", 201),
        ("COPY", "/store/m/arr/", "/store/m/w/y/", "F", 201),
        ("MOVE", "/store/m/arr/c/0", "/store/m/g/moved", "T", 403),
        ("MOVE", "/store/m/g/copy", "/store/m/g/moved", "T", 201),
        ("MOVE", "/store/m/g/moved", "/store/m/zarr.json", "T", 403),
        ("COPY", "/store/m/g/copy2", "/store/other/g/x", "T", 502),
    ] {
        let bearer = format!("Bearer {}", token("c"));
        let headers = [("authorization", &*bearer), ("destination", to), ("overwrite", overwrite)];
        let answer = ask(&server, method, from, &headers, "").await;
        assert_eq!(answer.status, status, "{method} {from} {to}: {:?}", answer.body);
    }
}

/// Erasing the destination of a copy needs `delete`, on mounts that let prefixes be erased and on those that do not.
#[tokio::test]
async fn a_copy_that_erases_needs_the_right_to_delete() {
    let of = |name: &str, scopes: &[&str]| known(name, json!([grant("*", "", scopes)]));
    let tokens = json!({ "tokens": {
        "writes": of("writes", &["read", "write"]), "deletes": of("deletes", &["read", "write", "delete"]),
        "another": known("another", json!([grant("*", "", &["read", "write"]), grant("*", "g", &["delete"])])),
    } });
    for (holder, method, from, to, overwrite, status) in [
        // A prefix in place of a key erases the key.
        ("writes", "COPY", "/store/w/g/", "/store/w/key/", "T", 403),
        ("writes", "COPY", "/store/w/g", "/store/w/key", "T", 403),
        ("writes", "COPY", "/store/w/g/", "/store/w/key/", "F", 412),
        ("writes", "COPY", "/store/m/g/", "/store/m/key/", "T", 403),
        ("another", "COPY", "/store/w/g/", "/store/w/key/", "T", 403),
        ("deletes", "COPY", "/store/w/g/", "/store/w/key/", "T", 204),
        ("deletes", "COPY", "/store/m/g", "/store/m/key", "T", 204),
        ("deletes", "MOVE", "/store/m/g/", "/store/m/key/", "T", 204),
        // A prefix in place of a prefix erases what is below it.
        ("writes", "COPY", "/store/m/g/", "/store/m/arr/", "T", 403),
        ("deletes", "COPY", "/store/m/g/", "/store/m/arr/", "T", 204),
        // A key in place of a prefix, too.
        ("writes", "COPY", "/store/m/zarr.json", "/store/m/arr", "T", 403),
        ("deletes", "COPY", "/store/m/zarr.json", "/store/m/arr", "T", 204),
        // A value in place of a value is a write, as PUT is.
        ("writes", "COPY", "/store/w/zarr.json", "/store/w/key", "T", 204),
        ("writes", "COPY", "/store/w/g/", "/store/w/new/", "T", 201),
        // A move erases its source.
        ("writes", "MOVE", "/store/w/zarr.json", "/store/w/new", "T", 403),
        ("another", "MOVE", "/store/w/g/zarr.json", "/store/w/new", "T", 201),
    ] {
        let mount = async |name: &str| {
            let store = filled().await;
            put(&store, "key", "kept").await;
            Mount { writable: true, ..Mount::read_only(name, store) }
        };
        let m = Mount { allow_prefix_delete: true, ..mount("m").await };
        let server = Server::build(m).beside(mount("w").await).finish();
        server.set_access(access(tokens.clone(), &[], &std::sync::Arc::default()));
        let bearer = format!("Bearer {}", token(holder));
        let headers = [("authorization", &*bearer), ("destination", to), ("overwrite", overwrite)];
        let what = format!("{holder} {method} {from} {to} {overwrite}");
        let answer = ask(&server, method, from, &headers, "").await;
        assert_eq!(answer.status, status, "{what}: {:?}", answer.body);
        if status >= 400 {
            let mount = &from[..8];
            let kept = get_as(&server, &token("writes"), &format!("{mount}/key")).await;
            assert_eq!(kept.body, "kept", "{what}");
            let kept = get_as(&server, &token("writes"), &format!("{mount}/arr/c/0")).await;
            assert_eq!(kept.status, 200, "{what}");
        }
    }
}

#[tokio::test]
async fn failed_credentials_are_rate_limited_per_caller() {
    let (server, _) =
        server(json!({ "tokens": { "a": known("a", json!([grant("m", "", &["read"])])) } }), &[]).await;
    let (guesser, other) = (stranger(), stranger());
    let send = async |holder: &str, from| {
        let request =
            Request::builder().uri("/store/m/zarr.json").header("authorization", format!("Bearer {holder}"));
        server.send_from(request.body(Body::empty()).unwrap(), from).await
    };
    let mut refusals = 0;
    for guess in 0..10_000 {
        let answer = send(&format!("zs_a_{guess:032}"), guesser).await;
        if answer.status == 429 {
            answer.refuses(429, "too-many-attempts", "guesses");
            assert_eq!(answer.header("retry-after"), "1");
            break;
        }
        assert_eq!(answer.status, 401);
        refusals += 1;
    }
    assert!((10..10_000).contains(&refusals), "{refusals}");
    assert_eq!(send(&token("a"), other).await.status, 200);
    // Without a credential, nothing is guessed.
    let request = Request::builder().uri("/healthz").body(Body::empty()).unwrap();
    assert_eq!(server.send_from(request, guesser).await.status, 200);
}

#[tokio::test]
async fn anonymous_callers_may_do_what_a_mount_grants_to_everyone() {
    let (server, web) = server(json!({}), &[]).await;
    let statuses = async |server: &Server| {
        let mut found = Vec::new();
        for (method, url) in [
            ("GET", "/store/m/zarr.json"),
            ("GET", "/store/m/"),
            ("PUT", "/store/m/new"),
            ("DELETE", "/store/m/new"),
            ("GET", "/store/other/zarr.json"),
        ] {
            found.push(ask(server, method, url, &[], "").await.status.as_u16());
        }
        found
    };
    // Nothing is configured.
    assert_eq!(statuses(&server).await, [200, 200, 201, 204, 200]);
    // One mount grants rights to everyone.
    server.set_access(access(json!({}), &[("m", &[Scope::Read])], &web));
    assert_eq!(statuses(&server).await, [200, 401, 401, 401, 200]);
    // There is a token, for something else.
    let tokens = json!({ "tokens": { "a": known("a", json!([grant("other", "", &["write"])])) } });
    server.set_access(access(tokens.clone(), &[], &web));
    assert_eq!(statuses(&server).await, [401, 401, 401, 401, 401]);
    server.set_access(access(tokens, &[("m", &[Scope::Read, Scope::List])], &web));
    assert_eq!(statuses(&server).await, [200, 200, 401, 401, 401]);
    // Its holder also has the rights of everyone.
    assert_eq!(get_as(&server, &token("a"), "/store/m/zarr.json").await.status, 200);
    assert_eq!(get_as(&server, &token("a"), "/store/other/zarr.json").await.status, 403);
}
