//! Tests of PROPFIND and MKCOL.

use axum::body::Body;
use bytes::Bytes;

use super::{Answer, Server};

const VALUES: &[(&str, &[u8])] = &[
    ("a/c/0", b"0"),
    ("a/c/1/x", b"1"),
    ("a/zarr.json", b"{}"),
    ("ab", b"ab"),
    ("both", b""),
    ("both/0", b""),
];

/// The entries of a response, in order: the href, and the size of a key.
fn responses(answer: &Answer) -> Vec<(String, Option<u64>)> {
    assert_eq!(answer.status.as_u16(), 207, "{answer:?}");
    assert_eq!(answer.header("content-type"), "application/xml; charset=utf-8");
    let text = answer.text();
    assert!(
        text.starts_with("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n")
    );
    assert!(text.ends_with("</D:multistatus>\n"), "{text}");
    let inside = |text: &str, tag: &str| {
        let (_, rest) = text.split_once(&format!("<D:{tag}>"))?;
        Some(rest.split_once(&format!("</D:{tag}>")).unwrap().0.to_owned())
    };
    text.split("<D:response>")
        .skip(1)
        .map(|response| {
            assert_eq!(response.matches("<D:propstat>").count(), 1);
            assert_eq!(inside(response, "status").unwrap(), "HTTP/1.1 200 OK");
            assert!(inside(response, "getlastmodified").unwrap().ends_with(" GMT"));
            let href = inside(response, "href").unwrap();
            let is_prefix = response.contains("<D:resourcetype><D:collection/></D:resourcetype>");
            assert!(is_prefix || response.contains("<D:resourcetype/>"));
            assert_eq!(is_prefix, href.ends_with('/'), "{href}");
            let size = inside(response, "getcontentlength").map(|size| size.parse().unwrap());
            assert_eq!(size.is_none(), is_prefix);
            assert_eq!(inside(response, "getetag").is_none(), is_prefix);
            assert_eq!(inside(response, "getcontenttype").is_none(), is_prefix);
            (href, size)
        })
        .collect()
}

#[tokio::test]
async fn propfind_lists_what_each_depth_names_in_at_most_two_backend_calls() {
    let server = Server::new(VALUES);
    let all = [
        "/",
        "/a/",
        "/a/c/",
        "/a/c/0",
        "/a/c/1/",
        "/a/c/1/x",
        "/a/zarr.json",
        "/ab",
        "/both",
        "/both/",
        "/both/0",
    ];
    let below_a = ["/a/", "/a/c/", "/a/c/0", "/a/c/1/", "/a/c/1/x", "/a/zarr.json"];
    for (path, depth, hrefs, asked) in [
        ("/", Some("0"), &["/"][..], &[][..]),
        ("/", Some("1"), &["/", "/a/", "/ab", "/both", "/both/"][..], &["list_dir"][..]),
        ("/", Some("infinity"), &all[..], &["list_prefix"][..]),
        ("/", None, &all[..], &["list_prefix"][..]),
        ("/a", Some("0"), &["/a/"][..], &["head", "list_prefix"][..]),
        ("/a/", Some("0"), &["/a/"][..], &["list_prefix"][..]),
        ("/a", Some("1"), &["/a/", "/a/c/", "/a/zarr.json"][..], &["head", "list_dir"][..]),
        ("/a/", Some("1"), &["/a/", "/a/c/", "/a/zarr.json"][..], &["list_dir"][..]),
        ("/a/", Some("Infinity"), &below_a[..], &["list_prefix"][..]),
        ("/a", None, &below_a[..], &["head", "list_prefix"][..]),
        ("/ab", Some("0"), &["/ab"][..], &["head"][..]),
        ("/ab", Some("1"), &["/ab"][..], &["head"][..]),
        ("/ab", None, &["/ab"][..], &["head"][..]),
        ("/both", Some("1"), &["/both"][..], &["head"][..]),
        ("/both/", Some("1"), &["/both/", "/both/0"][..], &["list_dir"][..]),
    ] {
        let headers: Vec<_> = depth.map(|depth| ("depth", depth)).into_iter().collect();
        let answer = server.send("PROPFIND", &format!("/store/m{path}"), &headers).await;
        let found: Vec<String> = responses(&answer).into_iter().map(|(href, _)| href).collect();
        let expected: Vec<String> = hrefs.iter().map(|href| format!("/store/m{href}")).collect();
        assert_eq!(found, expected, "{path} {depth:?}");
        assert_eq!(server.store.take_asked(), asked, "{path} {depth:?}");
    }
    let key = responses(&server.send("PROPFIND", "/store/r/a/zarr.json", &[]).await);
    assert_eq!(key, [("/store/r/a/zarr.json".to_owned(), Some(2))]);
}

#[tokio::test]
async fn a_missing_prefix_is_404_and_the_root_always_exists() {
    let server = Server::new(VALUES);
    for depth in ["0", "1", "infinity"] {
        for path in ["none", "none/", "ab/", "a/c/0/", "b", "both/0/"] {
            let answer = server.send("PROPFIND", &format!("/store/m/{path}"), &[("depth", depth)]).await;
            assert_eq!((answer.status.as_u16(), &*answer.problem()), (404, "not-found"), "{path} {depth}");
        }
        for path in ["/store/m", "/store/m/"] {
            let answer = Server::new(&[]).send("PROPFIND", path, &[("depth", depth)]).await;
            assert_eq!(responses(&answer), [("/store/m/".to_owned(), None)]);
        }
    }
    for (path, headers, status) in [
        ("/store/none/", &[][..], 404),
        ("/store/m/..", &[][..], 400),
        ("/store/m/a", &[("depth", "2")][..], 400),
        ("/store/m/a", &[("depth", "")][..], 400),
    ] {
        assert_eq!(server.send("PROPFIND", path, headers).await.status.as_u16(), status, "{path}");
    }
}

#[tokio::test]
async fn well_formed_bodies_have_the_same_response_and_others_are_refused() {
    let server = Server::new(VALUES);
    let expected = server.send("PROPFIND", "/store/m/a/", &[]).await.body;
    let long = format!("<a>{}</a>", " ".repeat(64 << 10));
    for (body, status) in [
        ("<?xml version=\"1.0\"?><D:propfind xmlns:D=\"DAV:\"><D:allprop/></D:propfind>", 207),
        ("<propfind xmlns=\"DAV:\"><propname/></propfind>", 207),
        ("<propfind xmlns=\"DAV:\"><prop><x:y xmlns:x=\"urn:x\"/></prop></propfind>", 207),
        (" \r\n", 207),
        ("<propfind", 400),
        ("<a></b>", 400),
        ("<a/><b/>", 400),
        ("<x:a/>", 400),
        ("<!DOCTYPE a [<!ENTITY x 'x'>]><a>&x;</a>", 400),
        ("{}", 400),
        (&long, 413),
    ] {
        let answer = server.send_body("PROPFIND", "/store/m/a/", &[], Body::from(body.to_owned())).await;
        assert_eq!(answer.status.as_u16(), status, "{}", body.get(..40).unwrap_or(body));
        if status == 207 {
            assert_eq!(answer.body, expected);
        }
    }
}

#[tokio::test]
async fn a_failed_propfind_is_never_returned_as_a_shorter_one() {
    let server = Server::new(VALUES);
    for (cut, path) in [(2, "/store/m/"), (0, "/store/m/"), (0, "/store/m/a")] {
        *server.store.list_cut.lock().unwrap() = Some(cut);
        let failed = server.send("PROPFIND", path, &[]).await;
        assert_eq!((failed.status.as_u16(), failed.problem().as_str()), (502, "backend-failed"));
    }
}

#[tokio::test]
async fn mkcol_succeeds_for_an_unused_name_and_stores_nothing() {
    let server = Server::new(VALUES);
    for (path, body, status) in [
        ("new", "", 201),
        ("new/", "", 201),
        ("no/such/parent/", "", 201),
        ("ab", "", 405),
        ("ab/", "", 405),
        ("a", "", 405),
        ("a/", "", 405),
        ("a/c/1/", "", 405),
        ("", "", 405),
        ("new", "<x/>", 415),
    ] {
        let url = format!("/store/w/{path}");
        let answer =
            server.send_body("MKCOL", &url, &[], Body::from(Bytes::from_static(body.as_bytes()))).await;
        assert_eq!(answer.status.as_u16(), status, "{path} {body}");
    }
    assert_eq!(server.send("PROPFIND", "/store/w/new/", &[("depth", "0")]).await.status.as_u16(), 404);
    assert!(!server.store.take_asked().contains(&"set"));
}

#[tokio::test]
async fn options_report_the_webdav_class() {
    let server = Server::new(&[]);
    for url in ["/store/m", "/store/m/", "/store/m/a", "/store/r/a/"] {
        let answer = server.send("OPTIONS", url, &[]).await;
        assert_eq!((answer.status.as_u16(), answer.header("dav")), (204, "1"), "{url}");
    }
    assert_eq!(server.store.take_asked(), Vec::<&str>::new());
}

#[tokio::test]
async fn pages_of_other_origins_may_list_and_write_only_with_permission() {
    for (writes, methods, destination) in [
        (false, "GET, HEAD, OPTIONS, PROPFIND", false),
        (true, "GET, HEAD, OPTIONS, PROPFIND, PUT, PATCH, DELETE, MKCOL, COPY, MOVE", true),
    ] {
        let mut options = crate::http::HttpOptions::default();
        options.cors.allow_writes = writes;
        let server = Server::with_options(&[], options);
        let answer = server.send("OPTIONS", "/store/m/a", &[("origin", "https://viewer.example")]).await;
        assert_eq!(answer.header("access-control-allow-methods"), methods);
        let headers: Vec<&str> = answer.header("access-control-allow-headers").split(", ").collect();
        assert!(headers.contains(&"Depth") && headers.contains(&"Range"));
        assert_eq!(headers.contains(&"Destination") && headers.contains(&"Overwrite"), destination);
    }
}
