//! Conditions, ranges and HEAD of decoded elements: an entity tag changes exactly when the representation does.

use std::collections::HashSet;

use axum::http::{Method, StatusCode};
use zarrd::store::SharedStore;

use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, Format, memory};
use crate::support::server::{Answer, Server, erase, put};

/// An array of shape [8, 8] in chunks of [4, 4].
fn array() -> Array {
    Array::of(&[8, 8]).chunks(&[4, 4])
}

async fn serve(array: &Array) -> (Server, SharedStore) {
    let store = memory();
    array.store(&store, "a").await;
    (Server::of(store.clone()), store)
}

async fn tag(server: &Server, query: &str) -> String {
    let answer = server.get(&format!("/v1/data/m/a?{query}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{query}: {:?}", answer.body);
    let tag = answer.header("etag").to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 2, "a strong tag: {tag}");
    tag
}

#[tokio::test]
async fn different_responses_have_different_etags_and_equal_ones_the_same() {
    let (server, _) = serve(&array()).await;
    let queries = [
        "",
        "slice=0",
        "slice=0:1",
        "slice=1",
        "slice=::-1",
        "slice=::2",
        "slice=:,0",
        "endian=big",
        "format=npy",
        "format=npy&endian=big",
        "format=json",
        "format=json&nan=null",
        "slice=0:0",
        "slice=:,0:0",
    ];
    let mut tags = HashSet::new();
    for query in queries {
        assert!(tags.insert(tag(&server, query).await), "{query}");
    }
    for (query, other) in
        [("", "slice=..."), ("slice=0", "select=[-8]"), ("slice=0:1", "slice=:1,:"), ("f=npy", "format=npy")]
    {
        assert_eq!(tag(&server, query).await, tag(&server, other).await, "{query} is {other}");
    }
}

#[tokio::test]
async fn an_etag_changes_only_with_the_chunks_of_its_selection() {
    for array in [array(), array().codecs([Shards::of(&[2, 2], &[Codec::Bytes { big: false }]).codec()])] {
        let (server, store) = serve(&array).await;
        let slice = "slice=:4,2:6";
        let before = tag(&server, slice).await;
        let other = array.clone().uniform(1);
        put(&store, "a/c/1/1", other.chunk(&other.model(), &[1, 1])).await;
        assert_eq!(tag(&server, slice).await, before, "a chunk that is not touched");
        put(&store, "a/c/0/1", other.chunk(&other.model(), &[0, 1])).await;
        let after = tag(&server, slice).await;
        assert_ne!(after, before, "a chunk that is touched");
        erase(&store, "a/c/0/0").await;
        let erased = tag(&server, slice).await;
        assert_ne!(erased, after, "a chunk that is erased");
        put(
            &store,
            "a/zarr.json",
            array.members(serde_json::json!({ "fill_value": 3 })).document().1.to_string(),
        )
        .await;
        assert_ne!(tag(&server, slice).await, erased, "the metadata");
    }
}

#[tokio::test]
async fn conditional_reads_are_honoured() {
    let (server, store) = serve(&array()).await;
    for url in ["/v1/data/m/a?slice=0", "/v1/data/m/a?slice=0&format=json", "/v1/chunk/m/a/c/0/0?f=npy"] {
        let whole = server.get(url).await;
        let etag = whole.header("etag");
        let ask = async |name, value: &str| {
            let answer = server.ask(Method::GET, url, &[(name, value)]).await;
            (answer.status.as_u16(), answer)
        };
        let several = format!("\"x\", W/{etag}");
        for (name, value, status) in [
            ("if-none-match", etag, 304),
            ("if-none-match", &several, 304),
            ("if-none-match", "*", 304),
            ("if-none-match", "\"x\"", 200),
            ("if-match", etag, 200),
            ("if-match", "*", 200),
            ("if-match", "\"x\"", 412),
            ("if-match", &format!("W/{etag}"), 412),
        ] {
            let (found, answer) = ask(name, value).await;
            assert_eq!(found, status, "{url} {name}: {value}");
            match status {
                304 => {
                    assert!(answer.body.is_empty());
                    for header in ["etag", "cache-control", "vary"] {
                        assert_eq!(answer.header(header), whole.header(header), "{url}");
                    }
                }
                412 => drop(answer.refuses(412, "precondition-failed", url)),
                _ => assert_eq!(answer.body, whole.body),
            }
        }
    }
    // After a change, the old tag no longer matches in either precondition.
    let old = tag(&server, "slice=0").await;
    let other = array().uniform(9);
    put(&store, "a/c/0/0", other.chunk(&other.model(), &[0, 0])).await;
    let url = "/v1/data/m/a?slice=0";
    assert_eq!(server.ask(Method::GET, url, &[("if-none-match", &old)]).await.status, StatusCode::OK);
    let failed = server.ask(Method::GET, url, &[("if-match", &old)]).await;
    assert_eq!(failed.status, StatusCode::PRECONDITION_FAILED);
}

#[tokio::test]
async fn byte_ranges_are_parts_of_the_representation_with_the_same_etag() {
    let (server, _) = serve(&array()).await;
    for url in [
        "/v1/data/m/a",
        "/v1/data/m/a?endian=big&slice=::-1",
        "/v1/data/m/a?format=npy",
        "/v1/chunk/m/a/c/1/0",
    ] {
        let whole = server.get(url).await;
        let size = whole.body.len();
        assert_eq!(whole.header("accept-ranges"), "bytes");
        for (range, bytes) in [
            ("bytes=0-0", 0..1),
            ("bytes=3-12", 3..13),
            ("bytes=5-", 5..size),
            ("bytes=-7", size - 7..size),
            ("bytes=0-99999", 0..size),
            ("bytes=-99999", 0..size),
        ] {
            for if_range in [None, Some(whole.header("etag"))] {
                let mut headers = vec![("range", range)];
                headers.extend(if_range.map(|tag| ("if-range", tag)));
                let part = server.ask(Method::GET, url, &headers).await;
                assert_eq!(part.status, StatusCode::PARTIAL_CONTENT, "{url} {range}");
                assert_eq!(part.body, whole.body[bytes.clone()], "{url} {range}");
                let content_range = format!("bytes {}-{}/{size}", bytes.start, bytes.end - 1);
                assert_eq!(part.header("content-range"), content_range);
                assert_eq!(part.header("content-length"), bytes.len().to_string());
                assert_eq!(part.header("etag"), whole.header("etag"));
            }
        }
        for headers in [
            [("range", "bytes=0-1"), ("if-range", "\"x\"")],
            [("range", "bytes=0-1"), ("if-range", "Sun, 06 Nov 1994 08:49:37 GMT")],
            [("range", "bytes=0-1,3-4"), ("accept", "*/*")],
            [("range", "bytes=9-2"), ("accept", "*/*")],
            [("range", "elements=0-1"), ("accept", "*/*")],
        ] {
            let answer = server.ask(Method::GET, url, &headers).await;
            assert_eq!((answer.status, &answer.body), (StatusCode::OK, &whole.body), "{url} {headers:?}");
        }
        for range in [format!("bytes={size}-"), "bytes=-0".to_owned(), format!("bytes={size}-{}", u64::MAX)] {
            let answer = server.ask(Method::GET, url, &[("range", &range)]).await;
            answer.refuses(416, "range-not-satisfiable", url);
            assert_eq!(answer.header("content-range"), format!("bytes */{size}"));
        }
        let etag = whole.header("etag");
        let unchanged =
            server.ask(Method::GET, url, &[("range", "bytes=0-1"), ("if-none-match", etag)]).await;
        assert_eq!(unchanged.status, StatusCode::NOT_MODIFIED, "the condition comes before the range");
    }
    let json = server.ask(Method::GET, "/v1/data/m/a?format=json", &[("range", "bytes=0-1")]).await;
    assert_eq!(json.status, StatusCode::OK, "JSON has no ranges");
}

/// Headers that differ between responses.
fn without_chance(answer: &Answer) -> Vec<(String, String)> {
    let chance = ["x-request-id", "server-timing", "cache-status", "date"];
    let headers = answer.headers.iter().filter(|(name, _)| !chance.contains(&name.as_str()));
    let mut headers: Vec<_> =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    headers.sort();
    headers
}

#[tokio::test]
async fn head_returns_the_headers_of_get_without_a_body() {
    let v2 = Format::V2 { compressor: Some(Codec::Zlib), fortran: true, big: true, separator: '.' };
    for array in [array(), array().format(v2)] {
        let (server, store) = serve(&array).await;
        put(&store, "g/.zgroup", r#"{"zarr_format": 2}"#).await;
        for url in [
            "/v1/data/m/a",
            "/v1/data/m/a?slice=0,::3&endian=big",
            "/v1/data/m/a?format=npy&slice=5:5",
            "/v1/data/m/a?format=json&slice=0,0:3",
            "/v1/chunk/m/a/c/1/1",
            "/v1/chunk/m/a/c/1/1?format=npy",
            "/v1/nodes/m/a",
            "/v1/nodes/m/g",
            "/v1/mounts",
        ] {
            let (get, head) = (server.get(url).await, server.ask(Method::HEAD, url, &[]).await);
            assert_eq!(get.status, StatusCode::OK, "{url}: {:?}", get.body);
            assert_eq!((head.status, head.body.len()), (get.status, 0), "{url}");
            assert_eq!(without_chance(&head), without_chance(&get), "{url}");
            assert_eq!(get.header("content-length"), get.body.len().to_string(), "{url}");
        }
    }
}

#[tokio::test]
async fn headers_give_the_shape_and_type_of_the_elements() {
    let names = serde_json::json!({ "dimension_names": ["y", "\u{e9}\u{1f600}"] });
    let (server, _) = serve(&array().members(names)).await;
    let answer = server.get("/v1/data/m/a?slice=2:5").await;
    assert_eq!(answer.header("array-shape"), "[3, 8]");
    assert_eq!(answer.header("array-data-type"), "uint16");
    assert_eq!(answer.header("array-dimension-names"), r#"["y","\u00e9\ud83d\ude00"]"#);
    let answer = server.get("/v1/data/m/a?slice=0").await;
    assert_eq!(
        answer.header("array-dimension-names"),
        r#"["\u00e9\ud83d\ude00"]"#,
        "an integer drops its name"
    );
    assert_eq!(answer.header("access-control-expose-headers"), "*", "a page of any origin reads all of them");
}

#[tokio::test]
async fn a_header_reports_cache_hits_and_misses() {
    const HIT: &str = "zarrd; hit";
    const MISS: &str = "zarrd; fwd=miss";
    let (server, _) = serve(&array()).await;
    for (slice, cache) in
        [("4:,4:", MISS), ("4:,4:", HIT), (":,7", "zarrd; fwd=partial"), (":,7", HIT), ("0:0", "")]
    {
        let answer = server.get(&format!("/v1/data/m/a?slice={slice}")).await;
        assert_eq!(answer.header("cache-status"), cache, "{slice}");
    }
}
