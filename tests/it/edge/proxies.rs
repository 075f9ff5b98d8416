//! Proxies in front of the server: forwarded client information, and path prefixes.

use axum::http::Method;
use serde_json::Value;
use zarrd::services::Mount;

use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Answer, Server, put};

/// Something of each kind, at a base, with proxies that are trusted; `m` is the store at the root of `data.example`.
async fn server(base: &str, trusted: &[&str]) -> Server {
    let store = memory();
    Array::of(&[8, 8]).chunks(&[4, 4]).store(&store, "a").await;
    put(&store, "zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    put(&store, "b/text", "0123456789").await;
    let hosts = vec!["data.example".to_owned()];
    let mount = Mount { writable: true, hosts, ..Mount::read_only("m", store) };
    let mut builder = Server::build(mount);
    base.clone_into(&mut builder.http.base_path);
    builder.http.trusted_proxies = trusted.iter().map(|text| text.parse().unwrap()).collect();
    builder.finish()
}

/// All texts in a document that are absolute paths.
fn paths(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if text.starts_with('/') => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(paths).collect(),
        Value::Object(members) => members.values().flat_map(paths).collect(),
        _ => vec![],
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Vec<&'a str> {
    text.split(before).skip(1).map(|rest| rest.split(after).next().unwrap()).collect()
}

/// Checks every link that answers hold, as a client sees them that asks below `base`; the server may want the paths
/// without it, as `inner` makes them, and headers.
async fn links_hold(
    server: &Server,
    base: &str,
    inner: impl Fn(&str) -> String,
    headers: &[(&'static str, &str)],
) {
    let ask = async |method: &str, path: &str, more: &[(&'static str, &str)]| -> Answer {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        server.ask(method, &inner(path), &[headers, more].concat()).await
    };
    let mut found = Vec::new();
    for path in ["/", "/v1/mounts", "/v1/nodes/m", "/v1/nodes/m/a"] {
        let links = paths(&ask("GET", &format!("{base}{path}"), &[]).await.json());
        assert!(!links.is_empty(), "{path}");
        found.extend(links);
    }
    for page in ["/", "/view/m/", "/view/m/a"] {
        let page = ask("GET", &format!("{base}{page}"), &[("accept", "text/html")]).await;
        let page = std::str::from_utf8(&page.body).unwrap();
        for attribute in ["href=\"", "src=\""] {
            // Links within the page, and those to sites of others.
            let links = between(page, attribute, "\"").into_iter();
            let links = links.filter(|link| !link.starts_with('#') && !link.starts_with("http"));
            found.extend(links.map(|link| link.replace("&amp;", "&")));
        }
    }
    let listed = ask("PROPFIND", &format!("{base}/store/m/"), &[("depth", "infinity")]).await;
    found.extend(
        between(std::str::from_utf8(&listed.body).unwrap(), "<D:href>", "<").iter().map(ToString::to_string),
    );
    assert!(found.len() > 20, "{found:?}");
    for link in found.iter().filter(|link| link.as_str() != "/") {
        assert!(link.starts_with(&format!("{base}/")), "{link}");
        if !link.contains("/v1/chunk/") && !link.ends_with("/v1/data/m/") {
            assert_eq!(ask("GET", link, &[]).await.status, 200, "{link}");
        }
    }
    let listing = ask("GET", &format!("{base}/store/m/b/"), &[]).await;
    let title = format!("<title>Index of {base}/store/m/b/</title>");
    assert!(String::from_utf8_lossy(&listing.body).contains(&title), "{listing:?}");
    assert_eq!(ask("GET", &format!("{base}/docs"), &[]).await.header("location"), format!("{base}/docs/"));
    assert_eq!(ask("GET", &format!("{base}/store/m/b"), &[]).await.header("location"), "./b/");
    let document = ask("GET", &format!("{base}/openapi.json"), &[]).await.json();
    assert_eq!(document["servers"][0]["url"], base);
    let text = format!("{base}/store/m/b/text");
    for (to, status) in [
        (format!("{base}/store/m/b/copy"), 201),
        (format!("http://own:8000{base}/store/m/b/again"), 201),
        ("/store/m/b/copy".to_owned(), 502),
        (format!("{base}s/store/m/b/copy"), 502),
    ] {
        let copied = ask("COPY", &text, &[("host", "own:8000"), ("destination", &to)]).await;
        assert_eq!(copied.status, status, "{to}");
    }
}

#[tokio::test]
async fn a_base_path_prefixes_every_link() {
    let server = server("/zarr", &[]).await;
    links_hold(&server, "/zarr", str::to_owned, &[]).await;
    assert_eq!(server.get("/zarr").await.status, 200);
    for url in [
        "/",
        "/healthz",
        "/store/m/zarr.json",
        "/v1/data/m/a",
        "/zarrs/healthz",
        "/ZARR/healthz",
        "//zarr/healthz",
        "/docs/",
    ] {
        server.get(url).await.refuses(404, "not-found", url);
    }
    // By the fast path, and by the router.
    for url in ["/zarr/store/m/b/text", "/zarr/store/m//b/text", "/zarr/v1/data/m/a", "/zarr/healthz"] {
        assert_eq!(server.get(url).await.status, 200, "{url}");
    }
}

#[tokio::test]
async fn a_prefix_stripped_by_a_proxy_prefixes_every_link() {
    let inner = |path: &str| path.strip_prefix("/outer").unwrap_or(path).to_owned();
    let server = server("", &["127.0.0.1"]).await;
    links_hold(&server, "/outer", inner, &[("x-forwarded-prefix", "/outer")]).await;
    let both = self::server("/zarr", &["127.0.0.1"]).await;
    links_hold(&both, "/outer/zarr", inner, &[("x-forwarded-prefix", "/outer")]).await;
}

#[tokio::test]
async fn untrusted_clients_cannot_change_links_or_hosts() {
    let server = server("", &["10.0.0.0/8"]).await;
    let headers = [
        ("x-forwarded-prefix", "/evil"),
        ("x-forwarded-host", "data.example"),
        ("forwarded", "for=10.0.0.1;host=data.example"),
        ("host", "own"),
    ];
    let document = server.ask(Method::GET, "/", &headers).await.json();
    assert_eq!(document["mounts"], "/v1/mounts");
}

#[tokio::test]
async fn the_host_that_a_trusted_proxy_forwards_selects_the_mount_and_the_destination() {
    let server = server("/zarr", &["127.0.0.1/32"]).await;
    for headers in [
        [("host", "own:8000"), ("x-forwarded-host", "DATA.example:443")],
        [("host", "own:8000"), ("forwarded", "for=192.0.2.1;host=data.example")],
        [("host", "data.example"), ("x-forwarded-proto", "https")],
    ] {
        // At the root of its host, nothing stands before the paths of a mount.
        let answer = server.ask(Method::GET, "/b/text", &headers).await;
        assert_eq!((answer.status.as_u16(), &*answer.body), (200, &b"0123456789"[..]), "{headers:?}");
        let copied = [&headers[..], &[("destination", "https://data.example/b/copy")]].concat();
        let copied = server.ask(Method::from_bytes(b"COPY").unwrap(), "/b/text", &copied).await;
        // The port that was named is the one of https.
        assert!([201, 204].contains(&copied.status.as_u16()), "{headers:?}: {}", copied.status);
    }
    let headers = [("host", "own:8000"), ("x-forwarded-host", "public.example")];
    for (destination, status) in
        [("https://public.example/zarr/store/m/x", 201), ("http://own:8000/zarr/store/m/x", 502)]
    {
        let headers = [&headers[..], &[("destination", destination)]].concat();
        let copied = server.ask(Method::from_bytes(b"COPY").unwrap(), "/zarr/store/m/b/text", &headers).await;
        assert_eq!(copied.status, status, "{destination}");
    }
}
