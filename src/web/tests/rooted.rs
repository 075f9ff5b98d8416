//! Tests of a mount at the root path of a host or a listener of its own.

use super::{Answer, Headers, Server, TestStore};
use crate::http::HttpOptions;
use crate::services::{AppState, ArrayEngine, Mount};
use crate::web::Endpoint;

const VALUES: &[(&str, &[u8])] = &[
    ("healthz", b"a key"),
    ("docs", b"another"),
    ("store/m/x", b"deep"),
    ("v1/mounts", b"no mounts"),
    ("openapi.json", b"{}"),
    ("a b/\u{e9}.json", b"{}"),
];

/// A store under the name `m`, at the root of two hosts and of a router of its own.
struct Sites {
    by_name: Server,
    rooted: Server,
}

fn sites() -> Sites {
    let store = TestStore::with(VALUES);
    let hosts = vec!["Data.Example".to_owned(), "[::1]".to_owned()];
    let mount =
        Mount { writable: true, allow_prefix_delete: true, hosts, ..Mount::read_only("m", store.clone()) };
    let other = Mount::read_only("n", TestStore::new());
    let state = AppState::new([mount, other], ArrayEngine::uncached(), HttpOptions::default()).unwrap();
    assert!(Endpoint::for_mount(&state, "none").is_none());
    let server = |site| Server { store: store.clone(), state: state.clone(), site };
    Sites {
        by_name: server(Endpoint::whole(state.clone())),
        rooted: server(Endpoint::for_mount(&state, "m").unwrap()),
    }
}

impl Sites {
    /// Sends a request by every way to the root: the responses must be equal.
    async fn ask(&self, method: &str, path: &str, headers: Headers<'_>) -> Answer {
        let answer = self.rooted.send(method, path, headers).await;
        for host in ["data.example", "DATA.example:8443", "data.example.", "[::1]:80"] {
            let mut headers = headers.to_vec();
            headers.push(("host", host));
            let by_host = self.by_name.send(method, path, &headers).await;
            assert_eq!(by_host.status, answer.status, "{method} {path} {host}");
            if answer.status.is_success() {
                assert_eq!(by_host.body, answer.body, "{method} {path} {host}");
            }
        }
        let url = format!("http://data.example{path}");
        assert_eq!(self.by_name.send(method, &url, headers).await.status, answer.status, "{url}");
        answer
    }
}

#[tokio::test]
async fn at_the_root_every_path_is_a_key_or_a_prefix() {
    let sites = sites();
    for (path, body) in [
        ("/healthz", "a key"),
        ("//healthz", "a key"),
        ("/docs", "another"),
        ("/store/m/x", "deep"),
        ("/v1/mounts", "no mounts"),
        ("/openapi.json", "{}"),
        ("/a%20b/%C3%A9.json", "{}"),
    ] {
        let answer = sites.ask("GET", path, &[]).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, body), "{path}");
        assert!(!answer.header("x-request-id").is_empty());
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        let head = sites.ask("HEAD", path, &[]).await;
        assert_eq!(head.header("content-length"), answer.header("content-length"), "{path}");
    }
    for path in ["/readyz", "/store/n/", "/store/m/", "/explore/x", "/metrics"] {
        let expected = if path == "/store/m/" { 200 } else { 404 };
        assert_eq!(sites.ask("GET", path, &[]).await.status.as_u16(), expected, "{path}");
    }
    for path in ["/..", "/a%2fb", "/%00"] {
        assert_eq!(sites.ask("GET", path, &[]).await.status.as_u16(), 400, "{path}");
    }
}

#[tokio::test]
async fn other_hosts_get_all_routes() {
    let sites = sites();
    for host in [
        "",
        "other.example",
        "data.example.evil",
        "xdata.example",
        "data",
        "127.0.0.1",
        "::1",
        "data.example@x",
    ] {
        let answer = sites.by_name.send("GET", "/healthz", &[("host", host)]).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, "{\"status\":\"ok\"}"), "{host}");
        let answer = sites.by_name.send("GET", "/store/m/healthz", &[("host", host)]).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, "a key"), "{host}");
    }
    let none = sites.by_name.send("GET", "/healthz", &[]).await;
    assert_eq!(none.text(), "{\"status\":\"ok\"}");
}

#[tokio::test]
async fn listings_at_the_root_show_requested_paths() {
    let sites = sites();
    let html = sites.ask("GET", "/", &[]).await;
    assert!(html.text().contains("<title>Index of /</title>"), "{}", html.text());
    assert!(html.text().contains("\n<a href=\"store/\">store/</a>\n"), "{}", html.text());
    let html = sites.ask("GET", "/a%20b/", &[]).await;
    assert!(html.text().contains("<title>Index of /a%20b/</title>"), "{}", html.text());
    let json = sites.ask("GET", "/store/?format=json&recursive", &[]).await.json();
    assert_eq!(json["keys"][0]["key"], "store/m/x");
    let redirect = sites.ask("GET", "/store/m?x=1", &[]).await;
    assert_eq!((redirect.status.as_u16(), redirect.header("location")), (301, "./m/?x=1"));
    for (path, depth, hrefs) in [
        ("/", "0", &["/"][..]),
        ("/a%20b", "1", &["/a%20b/", "/a%20b/%C3%A9.json"][..]),
        ("/store/", "infinity", &["/store/", "/store/m/", "/store/m/x"][..]),
    ] {
        let answer = sites.ask("PROPFIND", path, &[("depth", depth)]).await;
        let found: Vec<&str> = answer.text().split("<D:href>").skip(1).collect();
        let found: Vec<&str> = found.iter().map(|text| text.split_once('<').unwrap().0).collect();
        assert_eq!(found, hrefs, "{path}");
    }
}

#[tokio::test]
async fn values_are_written_copied_moved_and_erased_at_the_root() {
    let sites = sites();
    for server in [&sites.rooted, &sites.by_name] {
        let host = ("host", "data.example");
        assert_eq!(server.put("/new/0", &[host], "value").await.status.as_u16(), 201);
        for (method, path, destination, status) in [
            ("COPY", "/new/0", "/new/1", 201),
            ("COPY", "/new/0", "http://DATA.example/new/1", 204),
            ("MOVE", "/new/", "/store/m/new", 201),
            ("MOVE", "/store/m/new/1", "/newer", 201),
            ("COPY", "/newer", "http://other.example/x", 502),
        ] {
            let answer = server.send(method, path, &[host, ("destination", destination)]).await;
            assert_eq!(answer.status.as_u16(), status, "{method} {path} {destination}");
        }
        assert_eq!(server.store.value("newer").unwrap(), "value");
        for path in ["/newer", "/store/m/new/"] {
            assert_eq!(server.send("DELETE", path, &[host]).await.status.as_u16(), 204);
        }
        assert_eq!(server.store.value("store/m/new/0"), None);
        let options = server.send("OPTIONS", "/healthz", &[host]).await;
        assert_eq!((options.header("dav"), options.header("allow").contains("MOVE")), ("1", true));
    }
}

#[tokio::test]
async fn limits_and_problems_are_the_same_at_the_root() {
    let sites = sites();
    let long = format!("/{}", "x".repeat(8192));
    assert_eq!(sites.ask("GET", &long, &[]).await.status.as_u16(), 414);
    assert_eq!(sites.ask("TRACE", "/", &[]).await.status.as_u16(), 405);
    assert_eq!(sites.ask("GET", "/none", &[]).await.problem(), "not-found");
    assert_eq!(sites.ask("PUT", "/a%20b/", &[]).await.problem(), "not-allowed");
    *sites.rooted.store.panics.lock().unwrap() = true;
    let answer = sites.ask("HEAD", "/healthz", &[]).await;
    assert_eq!(answer.status.as_u16(), 500);
}
