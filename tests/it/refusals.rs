//! Invalid requests: the right status, a stable code, and what to do about it.

use std::collections::HashSet;
use std::sync::Arc;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd::services::Mount;

use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory};
use crate::support::model::{Dim, Model};
use crate::support::server::{Server, cpu, put};

const LITTLE: Codec = Codec::Bytes { big: false };

/// An array of shape [10, 20] as `m/a`, and a group as `m/g`.
async fn server() -> Server {
    let store = memory();
    Array::of(&[10, 20]).chunks(&[4, 8]).store(&store, "a").await;
    put(&store, "g/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    Server::of(store)
}

async fn assert_works(server: &Server) {
    assert_eq!(server.get("/v1/data/m/a?slice=0,:2").await.body.as_ref(), [1, 0, 2, 0]);
}

#[tokio::test]
async fn invalid_requests_get_a_problem_that_states_the_reason() {
    let server = server().await;
    for (url, status, code) in [
        ("/nowhere", 404, "not-found"),
        ("/v1/data", 404, "not-found"),
        ("/store/other/a/zarr.json", 404, "unknown-mount"),
        ("/v1/data/other/a", 404, "unknown-mount"),
        ("/v1/nodes/other", 404, "unknown-mount"),
        ("/v1/chunk/other/a/c/0/0", 404, "unknown-mount"),
        ("/store/m/a/c/9/9", 404, "not-found"),
        ("/store/m/A/zarr.json", 404, "not-found"),
        ("/v1/data/m/b", 404, "not-found"),
        ("/v1/data/m/a/c", 404, "not-found"),
        ("/v1/data/m", 404, "not-found"),
        ("/v1/nodes/m/b", 404, "not-found"),
        ("/v1/nodes/m", 404, "not-found"),
        ("/v1/data/m/g", 404, "not-found"),
        ("/v1/chunk/m/g/c/0", 404, "not-found"),
        ("/v1/chunk/m/b/c/0", 404, "not-found"),
        ("/v1/data/m/a?format=bmp", 400, "unknown-format"),
        ("/v1/data/m/a?f=", 400, "unknown-format"),
        ("/v1/data/m/a?slcie=0", 400, "invalid-request"),
        ("/v1/data/m/a?slice=0&slice=1", 400, "invalid-request"),
        ("/v1/data/m/a?slice=0&select=1", 400, "invalid-request"),
        ("/v1/data/m/a?endian=middle", 400, "invalid-request"),
        ("/v1/data/m/a?nan=0", 400, "invalid-request"),
        ("/v1/data/m/a?expected_shape=10,x", 400, "invalid-request"),
        ("/v1/data/m/a?expected_shape=20,10", 409, "conflict"),
        ("/v1/data/m/a?expected_shape=", 409, "conflict"),
        ("/v1/chunk/m/a/c/0/0?slice=0", 400, "invalid-request"),
        ("/v1/chunk/m/a/c/0/0?expected_shape=1,1", 409, "conflict"),
    ] {
        let answer = server.get(url).await;
        answer.refuses(status, code, url);
        let head = server.ask(Method::HEAD, url, &[]).await;
        assert_eq!(head.status, answer.status, "HEAD {url}");
    }
    let long = format!("/v1/data/m/a?slice={}", "0".repeat(10_000));
    assert_eq!(server.get(&long).await.status, StatusCode::URI_TOO_LONG);
    assert_works(&server).await;
}

#[tokio::test]
async fn chunks_have_one_spelling_and_lie_in_the_grid() {
    let server = server().await;
    assert_eq!(server.get("/v1/chunk/m/a/c/2/2").await.header("array-shape"), "[2, 4]");
    for chunk in [
        "c",
        "c/0",
        "c/0/0/0",
        "c/3/0",
        "c/0/3",
        "c/00/0",
        "c/0/007",
        "c/-1/0",
        "c/+1/0",
        "c/1e0/0",
        "c.0.0",
        "0/0",
        "0.0",
        "c/18446744073709551616/0",
        "c/18446744073709551615/0",
        "c/0x1/0",
        "c/%D9%A3/0",
        "C/0/0",
        "c/0/%200",
    ] {
        let answer = server.get(&format!("/v1/chunk/m/a/{chunk}")).await;
        answer.refuses(404, "not-found", chunk);
    }
    assert_works(&server).await;
}

#[tokio::test]
async fn malformed_slices_are_refused_with_the_invalid_part() {
    let server = server().await;
    let many = vec!["0"; 65].join(",");
    for (slice, says) in [
        ("a", "`a`"),
        ("1.5", "`1.5`"),
        ("1e3", "`1e3`"),
        ("%2B1", "`+1`"),
        ("0x1", "`0x1`"),
        ("-", "`-`"),
        ("--1", "`--1`"),
        ("0,,1", "dimension 1"),
        (",", "dimension 0"),
        ("1:2:3:4", "`1:2:3:4`"),
        ("1:x", "`1:x`"),
        ("....", "`....`"),
        ("..", "`..`"),
        ("(0,1]", "`(0`"),
        ("[[0]]", "`[0]`"),
        ("%D9%A3", "dimension 0"),
        ("0%00", "dimension 0"),
        ("9223372036854775808", "`9223372036854775808`"),
        ("0:1:0", "step of 0"),
        (":,::0", "dimension 1"),
        ("...,...", "only once"),
        ("0,0,0", "3 dimensions, the array has 2"),
        ("...,0,0,0", "3 dimensions, the array has 2"),
        (&many, "65 dimensions"),
        ("10", "index 10 is out of range for axis 0 of length 10"),
        ("-11", "index -11 is out of range for axis 0 of length 10"),
        ("0,20", "index 20 is out of range for axis 1 of length 20"),
        ("...,9223372036854775807", "out of range for axis 1"),
        ("-9223372036854775808", "out of range for axis 0"),
    ] {
        for name in ["slice", "select"] {
            let answer = server.get(&format!("/v1/data/m/a?{name}={slice}")).await;
            let detail = answer.refuses(400, "invalid-request", slice);
            assert!(detail.contains(says), "{slice}: {detail}");
        }
    }
    assert_works(&server).await;
}

#[tokio::test]
async fn surrounding_brackets_and_blanks_are_ignored() {
    let server = server().await;
    let expected = server.elements("m/a", "1,2:4").await;
    for slice in ["[1,2:4]", "(1,2:4)", "%201%20,%202:4", "%5B1%2C2%3A4%5D", "1,2:4:1", "-9,-18:-16"] {
        assert_eq!(server.elements("m/a", slice).await, expected, "{slice}");
    }
}

#[tokio::test]
async fn an_unsatisfiable_accept_header_is_406() {
    let server = server().await;
    for accept in ["text/html", "image/png, text/xml;q=0.5", "*/*;q=0", "application/json;q=0, text/plain"] {
        let answer = server.ask(Method::GET, "/v1/data/m/a", &[("accept", accept)]).await;
        let detail = answer.refuses(406, "not-acceptable", accept);
        assert!(detail.contains("application/x-npy"), "it names what there is: {detail}");
    }
    for (accept, media_type) in [
        ("*/*", "application/octet-stream"),
        ("application/json, */*;q=0.1", "application/json"),
        ("application/x-npy;q=0.9, application/json;q=0.8", "application/x-npy"),
    ] {
        let answer = server.ask(Method::GET, "/v1/data/m/a", &[("accept", accept)]).await;
        assert_eq!((answer.header("content-type"), answer.header("vary")), (media_type, "accept"));
        let answer = server.ask(Method::GET, "/v1/data/m/a?f=npy", &[("accept", accept)]).await;
        assert_eq!(answer.header("content-type"), "application/x-npy", "`format` wins over {accept}");
    }
}

#[tokio::test]
async fn unsupported_methods_are_405_with_the_allowed_ones() {
    let server = server().await;
    // POST of `/v1/data` is a read, but with `append`.
    for url in [
        "/v1/data/m/a?append=0",
        "/v1/nodes/m/a",
        "/v1/chunk/m/a/c/0/0",
        "/store/m/a/zarr.json",
        "/v1/mounts",
    ] {
        for method in [Method::PUT, Method::DELETE, Method::POST, Method::TRACE] {
            let answer = server.ask(method.clone(), url, &[]).await;
            answer.refuses(405, "not-allowed", url);
            assert!(answer.header("allow").contains("GET"), "{method} {url}: {:?}", answer.headers);
        }
    }
    assert_works(&server).await;
}

#[tokio::test]
async fn no_spelling_of_a_path_escapes_the_served_directory() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    std::fs::create_dir_all(root.join("a")).unwrap();
    let secret = r#"{"zarr_format": 3, "node_type": "group", "attributes": {"secret": 1}}"#;
    std::fs::write(folder.path().join("zarr.json"), secret).unwrap();
    std::fs::write(root.join("a/zarr.json"), r#"{"zarr_format": 3, "node_type": "group"}"#).unwrap();
    let options = zarrd::store::StoreOptions::default();
    let store = zarrd::store::open(root.to_str().unwrap(), &options, &cpu()).unwrap();
    let server = Server::of(store);
    // 400 where a segment is one no key can have; else a key like any other, which does not exist.
    for (up, status) in [
        ("..", 400),
        ("%2e%2e", 400),
        ("%2E.", 400),
        (".%2e", 400),
        ("a/../..", 400),
        ("./..", 400),
        ("%2e", 400),
        ("..%2f", 400),
        ("..%2f..", 400),
        ("a%2f..", 400),
        ("%00", 400),
        ("..%00", 400),
        ("%c0%ae%c0%ae", 400),
        ("%ff", 400),
        ("%", 400),
        ("%u002e%u002e", 400),
        ("%0a..", 400),
        ("//..//", 400),
        ("%252e%252e", 404),
        ("..%5c", 404),
        ("%5c..%5c..", 404),
        ("..;", 404),
        ("%EF%BC%8E%EF%BC%8E", 404),
        ("C:", 404),
        ("~", 404),
    ] {
        for (route, rest) in [("store", "zarr.json"), ("v1/nodes", ""), ("v1/data", ""), ("v1/chunk", "c/0")]
        {
            let url = format!("/{route}/m/{up}/{rest}");
            let answer = server.get(&url).await;
            let code = if status == 400 { "invalid-request" } else { "not-found" };
            answer.refuses(status, code, &url);
            assert!(!String::from_utf8_lossy(&answer.body).contains("secret"), "{url}");
        }
    }
    assert_eq!(server.get("/v1/nodes/m/a").await.status, StatusCode::OK);
}

/// Elements as numbers.
fn numbers(elements: &[u8]) -> Vec<u16> {
    elements.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
}

/// The quantities that the limits of the test below bound.
async fn limited(array: &Array, limit: impl Fn(&mut zarrd::array::ReadLimits)) -> (Server, Model) {
    let store = memory();
    let model = array.store(&store, "a").await;
    let mut server = Server::build(Mount::read_only("m", store));
    limit(&mut server.read);
    (server.finish(), model)
}

#[tokio::test]
async fn a_selection_over_a_limit_is_413_with_slices_that_fit() {
    let plain = Array::of(&[30, 40]).chunks(&[7, 9]);
    let sharded = Array::of(&[30, 40]).chunks(&[16, 16]).codecs([Shards::of(&[4, 8], &[LITTLE]).codec()]);
    let slice = |start, stop, step| Dim::Slice { start, stop, step };
    let selections = [
        vec![],
        vec![slice(None, None, Some(-1))],
        vec![slice(Some(28), None, Some(-3)), slice(Some(1), Some(-1), Some(2))],
        vec![slice(Some(3), Some(29), Some(2)), slice(None, None, Some(-4))],
        vec![Dim::Index(-1)],
        vec![Dim::Ellipsis, Dim::Index(7)],
    ];
    for array in [&plain, &sharded] {
        for (limited_by, (server, model)) in [
            ("bytes of elements", limited(array, |limits| limits.max_response_size = 50).await),
            ("decoded chunks", limited(array, |limits| limits.max_chunks = 2).await),
            ("decoded bytes", limited(array, |limits| limits.max_decoded_size = 300).await),
        ] {
            for dims in &selections {
                let asked = crate::support::model::spell(dims);
                let answer = server.get(&format!("/v1/data/m/a?slice={asked}")).await;
                answer.refuses(413, "too-large", &asked);
                let problem = answer.json();
                assert_eq!(problem["limited"], limited_by, "{asked}");
                assert!(problem["asked"].as_u64() > problem["limit"].as_u64(), "{asked}: {problem}");
                let within: HashSet<u16> = numbers(&model.select(dims).elements).into_iter().collect();
                let mut seen = HashSet::new();
                let suggested: Vec<&str> = problem["suggested_slices"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter_map(Value::as_str)
                    .collect();
                assert!(suggested.len() > 1, "{asked}, {limited_by}: {problem}");
                for slice in suggested {
                    // Each is a part of the request, and none overlaps another.
                    for number in numbers(&server.elements("m/a", slice).await) {
                        assert!(
                            within.contains(&number) && seen.insert(number),
                            "{asked}: {slice}: {number}"
                        );
                    }
                }
                assert!(!seen.is_empty(), "{asked}");
            }
        }
    }
}

/// A slice suggested in place of one over a limit is accepted in every format.
#[test]
fn suggested_slices_are_within_every_limit() {
    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let shapes = prop::collection::vec(1_usize..30, 1..=3);
    let limits = (prop_oneof![Just(1 << 20), 8_u64..400], prop_oneof![Just(1 << 20), 1_u64..6]);
    let tables = ["json&coords=1", "csv&coords=1", "arrow&coords=1", "parquet&coords=1"];
    let formats =
        prop::sample::select([&["json", "csv", "npy", "bytes", "arrow", "nc"][..], &tables].concat());
    let steps = prop::collection::vec(prop::sample::select(vec![-3_i64, -1, 1, 2]), 3);
    let asked = (shapes, limits, 1_u64..3000, formats, steps, any::<bool>());
    let mut runner =
        TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) });
    let suggested = std::cell::Cell::new(0);
    let ran = runner.run(&asked, |(shape, (response_bytes, chunks), whole_bytes, format, steps, header)| {
        runtime.block_on(async {
            let store = memory();
            let edges = vec![4; shape.len()];
            Array::of(&shape).chunks(&edges).store(&store, "a").await;
            let mut server = Server::build(Mount::read_only("m", store));
            server.read.max_response_size = response_bytes;
            server.read.max_chunks = chunks;
            server.http.max_buffered_response_size = whole_bytes;
            let server = server.finish();
            let slice: Vec<String> = shape.iter().zip(&steps).map(|(_, step)| format!("::{step}")).collect();
            let header = if header { "present" } else { "absent" };
            let url = |slice: &str| format!("/v1/data/m/a?slice={slice}&format={format}&header={header}");
            let answer = server.get(&url(&slice.join(","))).await;
            if answer.status != 413 {
                return Ok(());
            }
            let problem = answer.json();
            prop_assert!(
                problem["setting"].is_string() && problem["suggested_slices_truncated"].is_boolean()
            );
            prop_assert!(problem["detail"].as_str().unwrap().contains(problem["setting"].as_str().unwrap()));
            for slice in problem["suggested_slices"].as_array().unwrap() {
                let answer = server.get(&url(slice.as_str().unwrap())).await;
                prop_assert_eq!(
                    answer.status.as_u16(),
                    200,
                    "{}: {:?}",
                    url(slice.as_str().unwrap()),
                    answer.body
                );
                suggested.set(suggested.get() + 1);
            }
            Ok(())
        })
    });
    ran.unwrap();
    assert!(suggested.get() > 100, "{suggested:?}");
}

#[tokio::test]
async fn a_refusal_for_length_names_the_setting_and_whether_the_list_is_cut() {
    let store = memory();
    Array::of(&[100, 100]).chunks(&[10, 10]).store(&store, "a").await;
    let mut server = Server::build(Mount::read_only("m", store));
    server.http.max_buffered_response_size = 1000;
    server.read.max_chunks = 60;
    let server = server.finish();
    let problem = server.get("/v1/data/m/a?slice=:10&format=json").await.json();
    assert_eq!(
        (&problem["setting"], &problem["limit"]),
        (&"http.max_buffered_response_size".into(), &1000.into()),
        "{problem}"
    );
    assert_eq!(problem["suggested_slices_truncated"], true);
    assert!(!problem["suggested_slices"].as_array().unwrap().is_empty());
    let problem = server.get("/v1/data/m/a").await.json();
    assert_eq!(
        (&problem["setting"], &problem["suggested_slices_truncated"]),
        (&"read.max_chunks".into(), &false.into())
    );
}

/// As the page of the HTTP API says.
#[tokio::test]
async fn a_parameter_that_a_route_does_not_have_is_refused_or_ignored() {
    let server = server().await;
    for (url, status) in [
        ("/v1/data/m/a?sice=1", 400),
        ("/v1/chunk/m/a/c/0/0?sice=1", 400),
        ("/v1/stats/m/a?sice=1", 400),
        ("/v1/image/m/a?sice=1", 400),
        ("/v1/legend/m/a?sice=1", 400),
        ("/v1/legend?sice=1", 400),
        ("/tiles/m/native/0/0/0/a?sice=1", 400),
        ("/v1/tilejson/m/a?sice=1", 400),
        ("/v1/nodes/m/a?datset", 200),
        ("/v1/mounts?datset", 200),
        ("/v1/versions/m?datset", 400),
        ("/view/m/a?datset", 200),
        ("/store/m/a/zarr.json?datset", 200),
        ("/store/m/?datset", 200),
        ("/plain/m/a/zarr.json?datset", 200),
        ("/rechunk/m/auto/raw/a/zarr.json?datset", 200),
        ("/s3/m/a/zarr.json?datset", 200),
        ("/healthz?datset", 200),
        ("/openapi.json?datset", 200),
    ] {
        let answer = server.get(url).await;
        assert_eq!(answer.status.as_u16(), status, "{url}: {:?}", answer.body);
    }
}

#[tokio::test]
async fn up_to_four_suggested_slices_select_everything_and_end_where_chunks_end() {
    let store = memory();
    Array::of(&[40, 40]).chunks(&[10, 10]).store(&store, "a").await;
    let mut server = Server::build(Mount::read_only("m", store));
    server.read.max_response_size = 400;
    let server = server.finish();
    for (slice, expected, is_cut) in [
        ("0:40:2", json!(["0:19:2,0:20", "0:19:2,20:40", "20:39:2,0:20", "20:39:2,20:40"]), false),
        ("3:40,0:10", json!(["3:10,0:10", "10:20,0:10", "20:30,0:10", "30:40,0:10"]), false),
        ("0:40,20:40", json!(["0:20,20:30", "0:20,30:40", "20:40,20:30", "20:40,30:40"]), false),
        ("", json!(["0:20,0:10", "0:20,10:20", "0:20,20:30", "0:20,30:40"]), true),
    ] {
        let problem = server.get(&format!("/v1/data/m/a?slice={slice}")).await.json();
        let slices = &problem["suggested_slices"];
        assert_eq!((slices, &problem["suggested_slices_truncated"]), (&expected, &json!(is_cut)), "{slice}");
    }
}

#[tokio::test]
async fn suggested_slices_of_windows_have_the_same_windows() {
    let store = memory();
    Array::of(&[314, 7]).chunks(&[43, 2]).store(&store, "a").await;
    let limited = |max_chunks| {
        let mut server = Server::build(Mount::read_only("m", Arc::clone(&store)));
        server.read.max_chunks = max_chunks;
        server.finish()
    };
    let (whole, few) = (limited(1000), limited(4));
    for windows in
        ["slice=:249,3&downsample=5", "slice=2:249,3&downsample=4", "slice=:249,:1&downsample=43,1"]
    {
        let url = |words: &str| format!("/v1/data/m/a?{words}&method=stride&format=json");
        let problem = few.get(&url(windows)).await.json();
        assert_eq!(problem["suggested_slices_truncated"], false, "{windows}: {problem}");
        let (_, factors) = windows.split_once('&').unwrap();
        let mut parts = Vec::new();
        for slice in problem["suggested_slices"].as_array().unwrap() {
            let part = few.get(&url(&format!("slice={}&{factors}", slice.as_str().unwrap()))).await;
            parts.extend(part.json().as_array().unwrap().clone());
        }
        assert_eq!(json!(parts), whole.get(&url(windows)).await.json(), "{windows}: {problem}");
    }
}

#[tokio::test]
async fn one_element_with_a_long_step_does_not_keep_the_others_from_being_cut() {
    let store = memory();
    Array::of(&[40, 40]).chunks(&[10, 10]).store(&store, "a").await;
    let mut server = Server::build(Mount::read_only("m", store));
    server.read.max_response_size = 30;
    let problem = server.finish().get("/v1/data/m/a?slice=0:1:100").await.json();
    assert_eq!(
        problem["suggested_slices"],
        json!(["0:1:100,0:10", "0:1:100,10:20", "0:1:100,20:30", "0:1:100,30:40"])
    );
}

#[tokio::test]
async fn a_disabled_method_is_answered_with_the_setting_that_enables_it() {
    let store = memory();
    put(&store, "k", "v").await;
    let server = Server::build(Mount::read_only("data", store.clone()))
        .beside(Mount { writable: true, ..Mount::read_only("w", store.clone()) })
        .finish();
    for (method, url, said) in [
        ("PUT", "/store/data/k", "set `mounts.data.writable = true`"),
        ("PATCH", "/store/data/k", "`--writable`"),
        ("DELETE", "/store/data/k", "the mount `data` is read-only"),
        ("DELETE", "/store/data/p/", "the mount `data` is read-only"),
        ("PUT", "/store/data/p/", "the mount `data` is read-only"),
        ("PUT", "/store/data/", "the mount `data` is read-only"),
        ("MKCOL", "/store/data/p/", "the mount `data` is read-only"),
        ("COPY", "/store/data/k", "the mount `data` is read-only"),
        ("POST", "/v1/erase/data", "set `mounts.data.writable = true`"),
        ("DELETE", "/store/w/p/", "set `mounts.w.allow_prefix_delete = true`"),
        ("DELETE", "/store/w/", "set `mounts.w.allow_prefix_delete = true`"),
        ("PUT", "/store/w/p/", "leave the slash out"),
        ("PUT", "/store/w/", "leave the slash out"),
        ("PUT", "/plain/w/k", "write to `/store/w/`"),
        ("DELETE", "/unshard/w/k/", "write to `/store/w/`"),
        ("PATCH", "/v1/data/w/a", "`/store/{mount}/{key}`"),
        ("POST", "/v1/stats/w/a", "PUT of `/v1/data`"),
        ("PATCH", "/v1/stats/w/a", "`/store/{mount}/{key}`"),
        ("DELETE", "/v1/chunk/w/a/c/0", "`/store/{mount}/{key}`"),
    ] {
        let answer = server.request(method, url, &[("destination", "/store/data/x")], "").await;
        let detail = answer.refuses(405, "not-allowed", url);
        assert!(detail.contains(said), "{method} {url}: {detail}");
        assert!(!answer.header("allow").is_empty(), "{method} {url}");
    }
}

#[tokio::test]
async fn a_missing_node_is_answered_with_what_exists_nearby() {
    let store = memory();
    let group = r#"{"zarr_format": 3, "node_type": "group"}"#;
    put(&store, "climate.zarr/zarr.json", group).await;
    for name in ["climate.zarr/t2m", "climate.zarr/precip", "images/cells"] {
        Array::of(&[2]).store(&store, name).await;
    }
    let server = Server::build(Mount::read_only("data", store)).finish();
    for (url, said, member, value) in [
        (
            "/v1/data/data/climate.zarr/t2",
            "did you mean `/climate.zarr/t2m`?",
            "did_you_mean",
            "climate.zarr/t2m",
        ),
        ("/v1/nodes/data/climate.zarr/percip", "of the mount `data`", "did_you_mean", "climate.zarr/precip"),
        ("/v1/chunk/data/climate.zar/t2m/c/0", "at `/climate.zar/t2m`", "did_you_mean", "climate.zarr/t2m"),
        ("/v1/nodes/data/climate.zarr/wind", "is the group `/climate.zarr`", "nearest", "climate.zarr"),
        (
            "/v1/nodes/data/climate.zarr/t2m/x/y",
            "is the array `/climate.zarr/t2m`",
            "nearest",
            "climate.zarr/t2m",
        ),
        (
            "/v1/data/data/images/cells/c/0",
            "one chunk is at `/v1/chunk/data/images/cells/c/0`",
            "nearest",
            "images/cells",
        ),
        ("/v1/nodes/data/images/wells", "did you mean `/images/cells`?", "nearest", "images"),
    ] {
        let answer = server.get(url).await;
        let detail = answer.refuses(404, "not-found", url);
        assert!(detail.contains(said), "{url}: {detail}");
        let problem = answer.json();
        let named = problem[member].as_str().unwrap_or_default().trim_start_matches('/');
        assert_eq!((named, &problem["mount"]), (value, &"data".into()), "{url}: {problem}");
    }
    for (url, names) in [
        ("/v1/nodes/data", vec![("climate.zarr", "group".into()), ("images", Value::Null)]),
        ("/v1/nodes/data/", vec![("climate.zarr", "group".into()), ("images", Value::Null)]),
        ("/v1/data/data/images", vec![("cells", "array".into())]),
    ] {
        let answer = server.get(url).await;
        assert!(answer.refuses(404, "not-found", url).contains("a folder: `"), "{url}");
        let problem = answer.json();
        let children = problem["children"].as_array().unwrap();
        let found: Vec<_> = children
            .iter()
            .map(|child| (child["name"].as_str().unwrap(), child["node_type"].clone()))
            .collect();
        assert_eq!(found, names, "{url}");
        for child in children.iter().filter(|child| !child["node_type"].is_null()) {
            assert_eq!(server.get(child["href"].as_str().unwrap()).await.status, 200, "{child}");
        }
    }
}

#[tokio::test]
async fn a_missing_node_in_a_long_folder_lists_the_first_children_with_kinds_and_the_rest_by_name() {
    let store = memory();
    for number in 0..30 {
        Array::of(&[1]).store(&store, &format!("folder/{number:02}")).await;
    }
    let server = Server::build(Mount::read_only("data", store)).finish();
    let problem = server.get("/v1/nodes/data/folder").await.json();
    let children = problem["children"].as_array().unwrap();
    assert_eq!(children.len(), 30);
    for (at, child) in children.iter().enumerate() {
        assert_eq!(child["name"], format!("{at:02}"));
        assert_eq!(child.get("node_type").is_some(), at < 20, "{child}");
    }
}

#[tokio::test]
async fn an_unknown_parameter_is_answered_with_the_nearest_known_one() {
    let store = memory();
    let named = Array::of(&[4, 4]).members(serde_json::json!({ "dimension_names": ["time", "lat"] }));
    named.store(&store, "air/t2m").await;
    let server = Server::build(Mount::read_only("data", store)).finish();
    for (query, said) in [
        ("slcie=0", "did you mean `slice`?"),
        ("Format=json", "did you mean `format`?"),
        ("time=2020-03-01", "`isel.time=0:10`"),
        ("time=2020-03-01", "`/v1/data/data/air/time`"),
        ("slice=2020-03-01", "selected by index"),
        ("isel.time=2020-03-01", "selected by index"),
    ] {
        let detail = server.get(&format!("/v1/data/data/air/t2m?{query}")).await.refuses(
            400,
            "invalid-request",
            query,
        );
        assert!(detail.contains(said), "{query}: {detail}");
    }
    let without_labels = server.get("/v1/data/data/air/t2m?sel.lat=47.4").await;
    assert!(without_labels.refuses(400, "no-coordinate", "sel.lat").contains("`isel.lat`"));
}

#[tokio::test]
async fn an_icon_is_served_and_linked_by_pages() {
    let server = server().await;
    for (url, kind) in [("/favicon.ico", "image/x-icon"), ("/favicon.svg", "image/svg+xml")] {
        let answer = server.get(url).await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, kind), "{url}");
        assert!(answer.header("cache-control").contains("max-age="), "{url}");
    }
    let page = server.ask(Method::GET, "/", &[("accept", "text/html")]).await;
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    for part in ["<html lang=\"en\">", "name=\"viewport\"", "href=\"/favicon.svg\""] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[tokio::test]
async fn the_documentation_page_lists_each_route_once() {
    let server = server().await;
    let script = String::from_utf8(server.get("/docs/swagger-initializer.js").await.body.to_vec()).unwrap();
    assert!(script.contains("../openapi.json?head=no"), "{script}");
    let (all, short) = (server.get("/openapi.json").await, server.get("/openapi.json?head=no").await);
    let operations = |document: &Value, method: &str| {
        document["paths"].as_object().unwrap().values().filter(|item| item.get(method).is_some()).count()
    };
    assert!(operations(&all.json(), "head") > 20);
    assert_eq!(operations(&short.json(), "head"), 0);
    assert_eq!(operations(&short.json(), "get"), operations(&all.json(), "get"));
    assert_ne!(all.header("etag"), short.header("etag"));
    // Each operation has a name of its own, and each path stands once, however its parameters are called.
    let document = short.json();
    let paths = document["paths"].as_object().unwrap();
    let names: Vec<&str> = paths
        .values()
        .flat_map(|item| item.as_object().unwrap().values())
        .filter_map(|operation| operation["operationId"].as_str())
        .collect();
    let distinct: std::collections::HashSet<&str> = names.iter().copied().collect();
    assert!(names.len() >= paths.len() && distinct.len() == names.len(), "{names:?}");
    let shapes: std::collections::HashSet<String> = paths
        .keys()
        .map(|path| {
            path.split('/')
                .map(|part| if part.starts_with('{') { "{}" } else { part })
                .collect::<Vec<_>>()
                .join("/")
        })
        .collect();
    assert_eq!(shapes.len(), paths.len());
    let tags: Vec<Value> =
        short.json()["tags"].as_array().unwrap().iter().map(|tag| tag["name"].clone()).collect();
    assert_eq!(tags, ["store", "nodes", "data", "images", "views", "pages", "s3", "service", "vectors"]);
}

#[tokio::test]
async fn json_over_its_limit_is_413_and_bytes_are_not_limited_by_it() {
    let store = memory();
    Array::of(&[100, 100]).store(&store, "a").await;
    let mut server = Server::build(Mount::read_only("m", store));
    server.http.max_buffered_response_size = 1000;
    let server = server.finish();
    server.get("/v1/data/m/a?format=json").await.refuses(413, "too-large", "json");
    assert_eq!(server.get("/v1/data/m/a?format=json&slice=0,:3").await.body, "[1,2,3]");
    assert_eq!(server.get("/v1/data/m/a").await.status, StatusCode::OK, "bytes are not limited by it");
}

#[tokio::test]
async fn a_chunk_over_a_limit_suggests_slices_that_the_array_returns() {
    let store = memory();
    Array::of(&[10, 20]).chunks(&[4, 8]).store(&store, "a").await;
    let mut server = Server::build(Mount::read_only("m", store));
    server.read.max_response_size = 40;
    let server = server.finish();
    assert_eq!(server.get("/v1/chunk/m/a/c/1/2").await.body.len(), 32);
    let refused = server.get("/v1/chunk/m/a/c/1/1").await;
    refused.refuses(413, "too-large", "c/1/1");
    assert!(refused.json()["detail"].as_str().unwrap().contains("/v1/data"));
    let slices = refused.json()["suggested_slices"].as_array().unwrap().clone();
    assert!(!slices.is_empty());
    let mut found = 0;
    for slice in slices {
        found += server.elements("m/a", slice.as_str().unwrap()).await.len();
    }
    assert_eq!(found, 64, "together they select the chunk");
}

#[tokio::test]
async fn a_table_that_no_file_can_have_suggests_no_slices() {
    let metadata = serde_json::json!({
        "zarr_format": 3, "node_type": "array", "shape": [100], "data_type": "complex64", "fill_value": [0, 0],
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [10] } },
        "chunk_key_encoding": { "name": "default" }, "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
    });
    let store = memory();
    put(&store, "a/zarr.json", metadata.to_string()).await;
    let mut server = Server::build(Mount::read_only("m", store));
    server.read.max_response_size = 40;
    let refused = server.finish().get("/v1/data/m/a?format=parquet").await;
    assert_eq!(
        (refused.status, &refused.json()["suggested_slices"]),
        (StatusCode::BAD_REQUEST, &Value::Null)
    );
}
