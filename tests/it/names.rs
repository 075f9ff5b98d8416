//! Names are compared byte for byte, whole segments at a time, and values are served as they are stored.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use zarrd::services::Mount;
use zarrd::store::{SharedStore, StoreOptions, open};

use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, contents, cpu, put};

const GROUP: &str = r#"{"zarr_format": 3, "node_type": "group"}"#;

/// A store in memory and one of files, both writable.
fn stores(folder: &tempfile::TempDir) -> [SharedStore; 2] {
    let options = StoreOptions { writable: true, ..StoreOptions::default() };
    [memory(), open(folder.path().to_str().unwrap(), &options, &cpu()).unwrap()]
}

fn writable(store: &SharedStore) -> Server {
    let mount = Mount::read_only("m", store.clone());
    Server::build(Mount { writable: true, allow_prefix_delete: true, ..mount }).finish()
}

/// A path with every byte escaped that can be.
fn escaped(path: &str) -> String {
    path.split('/')
        .map(|name| utf8_percent_encode(name, NON_ALPHANUMERIC).to_string())
        .collect::<Vec<_>>()
        .join("/")
}

async fn keys(server: &Server, prefix: &str) -> Vec<String> {
    let listing = server.get(&format!("/store/m/{prefix}?recursive&format=json")).await.json();
    listing["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["key"].as_str().unwrap().to_owned())
        .collect()
}

async fn children(server: &Server, path: &str) -> Vec<String> {
    let node = server.get(&format!("/v1/nodes/m/{path}")).await.json();
    let children = node["children"].as_array().unwrap().iter();
    let mut names: Vec<String> = children.map(|child| child["name"].as_str().unwrap().to_owned()).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn a_node_is_not_part_of_one_whose_name_is_a_string_prefix() {
    let folder = tempfile::tempdir().unwrap();
    for store in stores(&folder) {
        let names = ["foo", "foo-two", "foo.bar", "foo0", "foobar"];
        put(&store, "zarr.json", GROUP).await;
        for name in names {
            put(&store, &format!("{name}/zarr.json"), GROUP).await;
            put(&store, &format!("{name}/x/zarr.json"), GROUP).await;
        }
        let server = writable(&store);
        assert_eq!(children(&server, "").await, names);
        assert_eq!(children(&server, "foo").await, ["x"]);
        assert_eq!(keys(&server, "foo/").await, ["foo/x/zarr.json", "foo/zarr.json"]);
        let consolidated = server.get("/store/m/foo/zarr.json?consolidated").await.json();
        let named: Vec<&String> =
            consolidated["consolidated_metadata"]["metadata"].as_object().unwrap().keys().collect();
        assert_eq!(named, ["x"]);
        server.get("/v1/nodes/m/fo").await.refuses(404, "not-found", "fo");

        let erased = server.ask(Method::DELETE, "/store/m/foo/", &[]).await;
        assert!(erased.status.is_success(), "{erased:?}");
        assert_eq!(children(&server, "").await, names[1..]);
        assert_eq!(keys(&server, "").await.len(), 1 + 2 * (names.len() - 1));
    }
}

#[tokio::test]
async fn visually_similar_names_are_different() {
    // Case; composed and decomposed; a wide letter; a sign that resembles a slash; spaces; signs that URLs know.
    let names = [
        "A",
        "a",
        "\u{e9}",
        "e\u{301}",
        "\u{ff41}",
        "a\u{2215}b",
        "a b",
        " a",
        "a+b",
        "a%20b",
        "a?b",
        "a#b",
        "a&b",
    ];
    let folder = tempfile::tempdir().unwrap();
    for store in stores(&folder) {
        put(&store, "zarr.json", GROUP).await;
        let server = writable(&store);
        for (number, name) in names.iter().enumerate() {
            let url = escaped(name);
            let array = Array::of(&[1]).uniform(u8::try_from(number).unwrap());
            for (key, value) in [
                ("zarr.json", array.document().1.to_string().into_bytes()),
                ("c/0", array.chunk(&array.model(), &[0])),
            ] {
                let request = Request::put(format!("/store/m/{url}/{key}")).body(Body::from(value)).unwrap();
                assert_eq!(server.send(request).await.status, StatusCode::CREATED, "{name}");
            }
        }
        for (number, name) in names.iter().enumerate() {
            let expected = [u8::try_from(number).unwrap(); 2];
            assert_eq!(
                server.elements(&format!("m/{}", escaped(name)), "").await.as_ref(),
                expected,
                "{name}"
            );
        }
        let mut sorted: Vec<String> = names.map(str::to_owned).to_vec();
        sorted.sort_unstable();
        assert_eq!(children(&server, "").await, sorted);
        for missing in ["\u{c9}", "E\u{301}", "B", "a  b", "a%2520b", "\u{ff21}", "a/b"] {
            let url = format!("/v1/nodes/m/{}", escaped(missing));
            server.get(&url).await.refuses(404, "not-found", missing);
        }
        // Decoded once: this names the array `a%20b`, and not `a b`.
        assert_eq!(server.elements("m/a%2520b", "").await.as_ref(), [9, 9]);
        assert_eq!(server.elements("m/a%20b", "").await.as_ref(), [6, 6]);
    }
}

#[tokio::test]
async fn names_that_resemble_path_traversal_are_ordinary() {
    let folder = tempfile::tempdir().unwrap();
    for store in stores(&folder) {
        let odd = [
            "a1/0..0",
            "...foo",
            "c.1.2",
            "foo..",
            "-1",
            "~",
            "a\\..\\b",
            "C:",
            "\\\\host\\x",
            "<b>",
            "'\"`$(x)",
        ];
        for key in odd {
            put(&store, key, key).await;
        }
        let server = writable(&store);
        for key in odd {
            assert_eq!(server.get(&format!("/store/m/{}", escaped(key))).await.body, key);
        }
        let mut sorted = odd.map(str::to_owned).to_vec();
        sorted.sort_unstable();
        assert_eq!(keys(&server, "").await, sorted);
    }
}

#[tokio::test]
async fn names_too_long_for_a_store_are_missing_or_refused_without_failure() {
    let folder = tempfile::tempdir().unwrap();
    for store in stores(&folder) {
        let server = writable(&store);
        for (path, statuses) in [
            ("n".repeat(256), [404, 404]),
            ("n".repeat(1024 - "/zarr.json".len() + 1), [400, 404]),
            ("n".repeat(1025), [400, 404]),
            (["d"; 64].join("/"), [400, 404]),
            (["d"; 65].join("/"), [400, 404]),
            ("%C3%A9".repeat(600), [400, 404]),
        ] {
            for url in [
                format!("/store/m/{path}/zarr.json"),
                format!("/v1/nodes/m/{path}"),
                format!("/v1/data/m/{path}"),
            ] {
                let status = server.get(&url).await.status.as_u16();
                assert!(statuses.contains(&status), "{status}: {url}");
            }
        }
        assert_eq!(
            server.get(&format!("/store/m/{}", "n".repeat(9000))).await.status,
            StatusCode::URI_TOO_LONG
        );
    }
}

#[tokio::test]
async fn directories_deeper_than_the_key_limit_end_listings_without_breaking_them() {
    let folder = tempfile::tempdir().unwrap();
    let [_, store] = stores(&folder);
    let mut directory = folder.path().to_owned();
    for _ in 0..300 {
        std::fs::write(directory.join("zarr.json"), GROUP).unwrap();
        directory.push("d");
        std::fs::create_dir(&directory).unwrap();
    }
    // Nothing but directories.
    std::fs::create_dir_all(folder.path().join(["e"; 300].join("/"))).unwrap();
    let server = writable(&store);
    // A key has 64 segments at most.
    assert_eq!(keys(&server, "").await.len(), 64);
    assert_eq!(children(&server, "").await, ["d"]);
    assert_eq!(children(&server, &["d"; 62].join("/")).await, ["d"]);
    assert_eq!(children(&server, &["d"; 63].join("/")).await, Vec::<String>::new());
    let consolidated = server.get("/store/m/zarr.json?consolidated").await.json();
    assert_eq!(consolidated["consolidated_metadata"]["metadata"].as_object().unwrap().len(), 63);
}

#[tokio::test]
async fn request_content_is_echoed_as_text_and_never_as_html() {
    let folder = tempfile::tempdir().unwrap();
    let [_, store] = stores(&folder);
    put(&store, "zarr.json", GROUP).await;
    put(&store, "bad/zarr.json", r#"{"zarr_format": 3, "<script>": 1}"#).await;
    let server = writable(&store);
    let script = escaped("<script>alert(1)</script>");
    for url in [
        format!("/store/m/{script}"),
        format!("/v1/data/m/{script}"),
        format!("/v1/data/m?slice={script}"),
        format!("/v1/data/m?{script}=1"),
        format!("/store/{script}/x"),
        "/v1/nodes/m/bad".to_owned(),
    ] {
        let answer = server.get(&url).await;
        assert!(answer.status.is_client_error() || answer.status.is_server_error(), "{url}");
        answer.code();
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{url}");
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(!text.contains(folder.path().to_str().unwrap()), "{url}: {text}");
        assert!(serde_json::from_str::<Value>(&text).is_ok());
    }
}

#[tokio::test]
async fn chunks_are_served_unchanged_whatever_encodings_the_client_accepts() {
    let gzip = compressed(b"what the array's codec made");
    let store = memory();
    put(&store, "a/c/0", gzip.clone()).await;
    put(&store, "a/c/1.gz", gzip.clone()).await;
    let server = Server::of(store);
    for key in ["a/c/0", "a/c/1.gz"] {
        for accepted in ["gzip", "br, gzip, zstd", "identity;q=0, *", ""] {
            for range in ["", "bytes=0-9", "bytes=-9999"] {
                let headers: Vec<_> = [("accept-encoding", accepted), ("range", range)]
                    .into_iter()
                    .filter(|(_, value)| !value.is_empty())
                    .collect();
                let answer = server.ask(Method::GET, &format!("/store/m/{key}"), &headers).await;
                let expected = if range == "bytes=0-9" { &gzip[..10] } else { &gzip[..] };
                assert_eq!(answer.body, expected, "{key} {accepted} {range}");
                assert_eq!(answer.header("content-encoding"), "", "{key} {accepted} {range}");
                assert_eq!(answer.header("content-length"), expected.len().to_string());
            }
        }
    }
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_write_to_a_path_with_an_escaped_slash_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for store in stores(&folder) {
        let server = writable(&store);
        let array = r#"{"shape": [4, 4], "data_type": "uint8", "chunks": [2, 2], "codecs": "raw"}"#;
        let json = [("content-type", "application/json")];
        assert_eq!(server.request("PUT", "/v1/nodes/m/g/a", &json, array).await.status, 201);
        let before = contents(&store).await;
        for slash in ["%2f", "%2F", "%2f/"] {
            let path = format!("g{slash}a");
            for (method, url, body) in [
                ("PUT", format!("/v1/nodes/m/b{slash}c"), array),
                ("PUT", format!("/v1/nodes/m/{path}"), array),
                ("PUT", format!("/v1/nodes/m/b{slash}c?copy=g/a"), ""),
                ("PATCH", format!("/v1/nodes/m/{path}"), r#"{"attributes": {"n": 1}}"#),
                ("DELETE", format!("/v1/nodes/m/{path}"), ""),
                ("PUT", format!("/v1/data/m/{path}"), "7"),
                ("PUT", format!("/v1/data/m/b{slash}c?create&format=npy"), ""),
                ("POST", format!("/v1/data/m/{path}?append=0"), "[7]"),
                ("PUT", format!("/v1/chunk/m/{path}/c/0"), "7"),
                ("PUT", format!("/v1/chunk/m/g/a{slash}c{slash}0"), "7"),
            ] {
                let refused = server.request(method, &url, &json, body).await;
                assert_eq!(refused.status, 400, "{method} {url}: {refused:?}");
                let problem = refused.json();
                assert_eq!(problem["written"], false, "{method} {url}");
                assert!(problem["detail"].as_str().unwrap().contains("escaped `/`"), "{problem}");
            }
            for url in ["/v1/partial/m", "/v1/erase/m", "/v1/batch/m"] {
                let url = format!("{url}{slash}g");
                let refused = server.request("POST", &url, &json, r#"{"keys": ["g/a/zarr.json"]}"#).await;
                assert!(matches!(refused.status.as_u16(), 400 | 404), "{url}: {refused:?}");
            }
        }
        assert_eq!(contents(&store).await, before);
        // A read has a slash in either spelling: clients escape the values that they fill into templates of URLs.
        for route in ["nodes", "data", "stats", "image", "legend", "chunk"] {
            let end = if route == "chunk" { "/c/0/0" } else { "" };
            let read = server.get(&format!("/v1/{route}/m/g%2Fa{end}?")).await;
            let plain = server.get(&format!("/v1/{route}/m/g/a{end}?")).await;
            assert_eq!((plain.status.as_u16(), read.status.as_u16()), (200, 200), "{route}: {read:?}");
            assert_eq!(read.body, plain.body, "{route}");
        }
    }
}
