//! Tests of COPY and MOVE.

use super::{Headers, Server};

const VALUES: &[(&str, &[u8])] = &[
    ("key", b"key"),
    ("other", b"other"),
    ("dir/0", b"0"),
    ("dir/sub/1", b"1"),
    ("dirt/0", b"dirt"),
    ("taken/x", b"x"),
];

fn all(server: &Server) -> Vec<String> {
    let keys = [
        "key",
        "other",
        "new",
        "dir",
        "dir/0",
        "dir/sub/1",
        "dir/x",
        "dirt/0",
        "taken",
        "taken/x",
        "taken/0",
    ];
    let more = ["taken/sub/1", "new/0", "new/sub/1", "other/0", "other/sub/1", "dir/taken/x"];
    let keys = keys.iter().chain(&more).filter_map(|key| {
        let value = server.store.value(key)?;
        Some(format!("{key}={}", str::from_utf8(&value).unwrap()))
    });
    keys.collect()
}

/// The added and the removed keys. A changed value counts as both.
fn changes(before: &[String], after: &[String]) -> String {
    let gone = before.iter().filter(|key| !after.contains(key)).map(|key| format!("-{key}"));
    let new = after.iter().filter(|key| !before.contains(key)).map(|key| format!("+{key}"));
    gone.chain(new).collect::<Vec<_>>().join(" ")
}

const NO: Headers<'_> = &[];
const KEEP: Headers<'_> = &[("overwrite", "F")];

#[tokio::test]
async fn keys_and_prefixes_are_copied_and_moved_as_webdav_requires() {
    for (verb, from, to, headers, status, changed) in [
        ("COPY", "key", "new", NO, 201, "+new=key"),
        ("COPY", "key", "new/", NO, 201, "+new=key"),
        ("COPY", "key", "other", NO, 204, "-other=other +other=key"),
        ("COPY", "key", "other", KEEP, 412, ""),
        ("COPY", "key", "new", KEEP, 201, "+new=key"),
        ("COPY", "key", "key", NO, 403, ""),
        ("COPY", "key", "key/", NO, 403, ""),
        ("COPY", "none", "new", NO, 404, ""),
        ("COPY", "key/", "new", NO, 404, ""),
        ("COPY", "key", "", NO, 403, ""),
        ("MOVE", "key", "new", NO, 201, "-key=key +new=key"),
        ("MOVE", "key", "other", NO, 204, "-key=key -other=other +other=key"),
        ("MOVE", "key", "other", KEEP, 412, ""),
        ("MOVE", "key", "key", NO, 403, ""),
        ("MOVE", "none", "new", NO, 404, ""),
        // Over a prefix, and out of the prefix that is to be replaced.
        ("COPY", "key", "taken", NO, 204, "-taken/x=x +taken=key"),
        ("COPY", "key", "taken", KEEP, 412, ""),
        ("COPY", "dir/0", "dir", NO, 403, ""),
        ("MOVE", "dir/0", "dir", NO, 403, ""),
        ("MOVE", "dir/0", "dir/x", NO, 201, "-dir/0=0 +dir/x=0"),
        // Prefixes.
        ("COPY", "dir", "new", NO, 201, "+new/0=0 +new/sub/1=1"),
        ("COPY", "dir/", "new", NO, 201, "+new/0=0 +new/sub/1=1"),
        ("COPY", "dir/", "new/", KEEP, 201, "+new/0=0 +new/sub/1=1"),
        ("COPY", "dir/", "taken/", NO, 204, "-taken/x=x +taken/0=0 +taken/sub/1=1"),
        ("COPY", "dir/", "taken/", KEEP, 412, ""),
        ("COPY", "dir/", "other", NO, 204, "-other=other +other/0=0 +other/sub/1=1"),
        ("COPY", "dir/", "other", KEEP, 412, ""),
        ("COPY", "dir/", "dir", NO, 403, ""),
        ("COPY", "dir/", "dir/sub/deeper/", NO, 403, ""),
        ("COPY", "dir/sub/", "dir/", NO, 403, ""),
        ("COPY", "", "new/", NO, 403, ""),
        ("COPY", "dir/", "", NO, 403, ""),
        ("COPY", "none/", "new/", NO, 404, ""),
        ("COPY", "dir/", "new/", &[("depth", "0")], 201, ""),
        ("COPY", "dir/", "taken/", &[("depth", "0")], 204, ""),
        ("COPY", "dir/", "taken/", &[("depth", "0"), ("overwrite", "F")], 412, ""),
        ("COPY", "dir/", "new/", &[("depth", "1")], 400, ""),
        ("MOVE", "dir/", "new/", NO, 201, "-dir/0=0 -dir/sub/1=1 +new/0=0 +new/sub/1=1"),
        ("MOVE", "dir", "taken", NO, 204, "-dir/0=0 -dir/sub/1=1 -taken/x=x +taken/0=0 +taken/sub/1=1"),
        ("MOVE", "dir/", "taken", KEEP, 412, ""),
        ("MOVE", "dir/", "dir/sub/", NO, 403, ""),
        ("MOVE", "dir/", "new/", &[("depth", "0")], 400, ""),
        ("MOVE", "taken/", "dir/taken/", NO, 201, "-taken/x=x +dir/taken/x=x"),
        // Conditions are about the source.
        ("COPY", "key", "new", &[("if-match", "\"v1\"")], 201, "+new=key"),
        ("COPY", "key", "new", &[("if-match", "\"v9\"")], 412, ""),
        ("MOVE", "key", "new", &[("if-none-match", "\"v1\"")], 412, ""),
        (
            "MOVE",
            "key",
            "new",
            &[("if-unmodified-since", "Sun, 09 Sep 2001 01:46:41 GMT")],
            201,
            "-key=key +new=key",
        ),
        ("COPY", "dir/", "new", &[("if-match", "*")], 412, ""),
        // Invalid headers and destinations.
        ("COPY", "key", "new", &[("overwrite", "X")], 400, ""),
        ("COPY", "key", "new", &[("depth", "9")], 400, ""),
        ("COPY", "key", "../key", NO, 400, ""),
        ("COPY", "key", "a%2fb", NO, 400, ""),
    ] {
        for host in ["", "http://Data.Example:80"] {
            let server = Server::new(VALUES);
            let before = all(&server);
            let destination = format!("{host}/store/m/{to}");
            let mut headers = headers.to_vec();
            headers.extend([("destination", destination.as_str()), ("host", "data.example")]);
            let answer = server.send(verb, &format!("/store/m/{from}"), &headers).await;
            let case = format!("{verb} {from} {to} {headers:?}");
            assert_eq!(answer.status.as_u16(), status, "{case}: {answer:?}");
            assert_eq!(changes(&before, &all(&server)), changed, "{case}");
        }
    }
}

#[tokio::test]
async fn a_destination_on_another_server_is_502_and_an_invalid_one_is_400() {
    let server = Server::new(VALUES);
    for (destination, status) in [
        ("http://other.example/store/m/new", 502),
        ("https://data.example:444/store/m/new", 502),
        ("/store/w/new", 502),
        ("/store/mm/new", 502),
        ("/v1/data/m/new", 502),
        ("/", 502),
        ("new", 400),
        ("/store/m/%zz", 400),
        ("/store/m/a b", 400),
    ] {
        let headers = [("destination", destination), ("host", "data.example")];
        let answer = server.send("MOVE", "/store/m/key", &headers).await;
        assert_eq!(answer.status.as_u16(), status, "{destination}");
    }
    assert_eq!(server.send("MOVE", "/store/m/key", &[]).await.status.as_u16(), 400);
    assert_eq!(server.store.take_asked(), Vec::<&str>::new());
}

#[tokio::test]
async fn prefixes_are_moved_and_replaced_only_where_they_may_be_erased() {
    for (verb, from, to, status) in [
        ("COPY", "key", "other", 204),
        ("COPY", "dir/", "new/", 201),
        ("MOVE", "key", "new", 201),
        ("COPY", "dir/", "taken/", 403),
        ("COPY", "key", "taken", 403),
        ("MOVE", "dir/", "new/", 405),
        ("MOVE", "dir", "new", 405),
    ] {
        let server = Server::new(VALUES);
        let before = all(&server);
        let destination = format!("/store/w/{to}");
        let answer = server.send(verb, &format!("/store/w/{from}"), &[("destination", &destination)]).await;
        assert_eq!(answer.status.as_u16(), status, "{verb} {from} {to}");
        assert_eq!(all(&server) == before, status >= 400, "{verb} {from} {to}");
        if status == 405 {
            assert!(!answer.header("allow").contains("MOVE") && answer.header("allow").contains("COPY"));
        }
    }
}

#[tokio::test]
async fn a_value_that_fails_midway_is_neither_stored_nor_erased() {
    for (from, to, after) in
        [("key", "new", 0), ("key", "new", 2), ("key", "other", 2), ("dir/", "new/", 0), ("dir/", "new/", 1)]
    {
        for verb in ["COPY", "MOVE"] {
            let server = Server::new(VALUES);
            let before = all(&server);
            *server.store.cut.lock().unwrap() = Some((after, crate::store::StoreError::WrongLength));
            let destination = format!("/store/m/{to}");
            let answer =
                server.send(verb, &format!("/store/m/{from}"), &[("destination", &destination)]).await;
            assert_eq!(answer.status.as_u16(), 502, "{verb} {from} {to} {after}");
            assert_eq!(all(&server), before, "{verb} {from} {to} {after}");
        }
    }
}

#[tokio::test]
async fn a_failed_listing_ends_a_transfer_in_an_error() {
    for verb in ["COPY", "MOVE"] {
        let server = Server::new(VALUES);
        *server.store.list_cut.lock().unwrap() = Some(1);
        let answer = server.send(verb, "/store/m/dir/", &[("destination", "/store/m/taken/")]).await;
        assert_eq!((answer.status.as_u16(), &*answer.problem()), (502, "backend-failed"));
        // Keys that the listing did not return were neither copied nor erased.
        assert!(server.store.value("dir/sub/1").is_some() && server.store.value("taken/sub/1").is_none());
    }
}

#[tokio::test]
async fn a_value_that_changes_while_it_is_moved_is_not_lost() {
    for from in ["key", "dir/sub/"] {
        let server = Server::new(VALUES);
        *server.store.raced.lock().unwrap() = Some("newer".into());
        let answer =
            server.send("MOVE", &format!("/store/m/{from}"), &[("destination", "/store/m/new")]).await;
        assert_eq!((answer.status.as_u16(), &*answer.problem()), (503, "overloaded"), "{from}");
        let kept = server.store.value(if from == "key" { "key" } else { "dir/sub/1" });
        assert_eq!(kept.unwrap(), "newer");
    }
    // A condition that held at the check and no longer holds when the value is read.
    let server = Server::new(VALUES);
    *server.store.flips.lock().unwrap() = 1;
    let headers = [("destination", "/store/m/new"), ("if-match", "\"v1\"")];
    assert_eq!(server.send("MOVE", "/store/m/key", &headers).await.status.as_u16(), 412);
    assert!(server.store.value("new").is_none() && server.store.value("key").is_some());
}

#[tokio::test]
async fn every_key_of_a_long_prefix_is_moved() {
    let server = Server::new(&[("dirt", b""), ("dis/0", b"")]);
    for number in 0..2_000 {
        server.store.insert(&format!("dir/{number:04}"), format!("{number}").into());
    }
    let answer = server.send("MOVE", "/store/m/dir/", &[("destination", "/store/m/new/")]).await;
    assert_eq!(answer.status.as_u16(), 201, "{answer:?}");
    for number in 0..2_000 {
        assert_eq!(server.store.value(&format!("new/{number:04}")).unwrap(), format!("{number}"));
        assert!(server.store.value(&format!("dir/{number:04}")).is_none());
    }
    assert!(server.store.value("dirt").is_some() && server.store.value("dis/0").is_some());
}
