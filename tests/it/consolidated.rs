//! Consolidated metadata: a stored copy names the children of groups and nothing else; a built one says what the
//! documents say now.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use futures::future::join_all;
use serde_json::{Value, json};
use zarrd::cpu::{ComputePool, ComputePoolOptions};
use zarrd::hierarchy::{Hierarchy, HierarchyError};
use zarrd::http::Peer;
use zarrd::key::NodePath;
use zarrd::metadata::MetadataLimits;
use zarrd::services::Mount;
use zarrd::store::{BudgetExceeded, MemoryBudget, SharedStore};

use crate::support::counting::Counting;
use crate::support::hierarchy::{Array, Format, memory};
use crate::support::server::{Server, erase, put};
use crate::support::unlistable::Unlistable;

const GROUP: &str = r#"{"zarr_format": 3, "node_type": "group"}"#;
const ZGROUP: &str = r#"{"zarr_format": 2}"#;

/// A v3 group with such copies.
fn group_with(copies: &Value) -> String {
    let inline = json!({ "metadata": copies, "kind": "inline", "must_understand": false });
    json!({ "consolidated_metadata": inline, "node_type": "group", "zarr_format": 3 }).to_string()
}

fn zmetadata(copies: &Value) -> String {
    json!({ "zarr_consolidated_format": 1, "metadata": copies }).to_string()
}

async fn node(server: &Server, path: &str) -> Value {
    let answer = server.get(&format!("/v1/nodes/{path}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {:?}", answer.body);
    answer.json()
}

/// The names and kinds of a group's children.
async fn children(server: &Server, path: &str) -> Vec<(String, String)> {
    let found = node(server, path).await;
    let text = |value: &Value| value.as_str().unwrap_or("broken").to_owned();
    let child = |child: &Value| (text(&child["name"]), text(&child["node_type"]));
    found["children"].as_array().unwrap().iter().map(child).collect()
}

fn named(children: &[(&str, &str)]) -> Vec<(String, String)> {
    children.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect()
}

fn v2_array(shape: &[usize]) -> Array {
    Array::of(shape).format(Format::V2 { compressor: None, fortran: false, big: false, separator: '.' })
}

#[tokio::test]
async fn a_store_that_cannot_list_has_the_children_in_consolidated_metadata() {
    let store = memory();
    let copies = json!({
        "g/b": { "node_type": "array" }, "a": { "node_type": "array", "consolidated_metadata": null },
        "g": { "node_type": "group", "consolidated_metadata": { "kind": "inline", "metadata": { "wrong": {} } } },
        "gone": { "node_type": "group" },
    });
    put(&store, "v3/zarr.json", group_with(&copies)).await;
    put(&store, "v3/g/zarr.json", GROUP).await;
    Array::of(&[2]).store(&store, "v3/a").await;
    put(&store, "v2/.zgroup", ZGROUP).await;
    let copies = json!({ ".zgroup": {}, "g/.zgroup": {}, "g/b/.zarray": {}, "a/.zarray": {}, "gone/.zgroup": {}, "a/.zattrs": {} });
    put(&store, "v2/.zmetadata", zmetadata(&copies)).await;
    put(&store, "v2/g/.zgroup", ZGROUP).await;
    put(&store, "plain/.zgroup", ZGROUP).await;
    v2_array(&[2]).store(&store, "v2/a").await;
    let server = Server::of(Unlistable::new(store));
    for root in ["m/v3", "m/v2"] {
        let expected = named(&[("a", "array"), ("g", "group"), ("gone", "group")]);
        assert_eq!(children(&server, root).await, expected, "{root}");
        assert_eq!(node(&server, root).await["consolidated"], true);
        // The group below has no copies of its own: those of the group above name its children.
        assert_eq!(children(&server, &format!("{root}/g")).await, named(&[("b", "array")]), "{root}");
        assert_eq!(node(&server, &format!("{root}/g")).await["consolidated"], false);
        assert_eq!(server.elements(&format!("{root}/a"), "").await.as_ref(), [1, 0, 2, 0]);
        server.get(&format!("/v1/nodes/{root}/gone")).await.refuses(404, "not-found", "stale");
        server.get(&format!("/v1/data/{root}/g/b")).await.refuses(404, "not-found", "stale");
    }
    assert_eq!(node(&server, "m/plain").await["children"], Value::Null, "unknown");
    assert_eq!(node(&server, "m/plain").await["consolidated"], false);
}

#[tokio::test]
async fn names_with_two_underscores_are_reserved_in_v3_and_ordinary_in_v2() {
    let store = memory();
    put(&store, "v2/.zgroup", ZGROUP).await;
    put(&store, "v2/__categories/.zgroup", ZGROUP).await;
    v2_array(&[2]).store(&store, "v2/__categories/__a").await;
    put(&store, "v3/zarr.json", GROUP).await;
    put(&store, "v3/__reserved/zarr.json", GROUP).await;
    // A node of v3 in a group of v2 stays reserved.
    put(&store, "v2/__reserved/zarr.json", GROUP).await;
    let copies = json!({ ".zgroup": {}, "__categories/.zgroup": {}, "__categories/__a/.zarray": {} });
    for (server, is_stored) in
        [(Server::of(store.clone()), false), (Server::of(Unlistable::new(store.clone())), true)]
    {
        if is_stored {
            put(&store, "v2/.zmetadata", zmetadata(&copies)).await;
            let copies = json!({ "__reserved": { "node_type": "group" } });
            put(&store, "v3/zarr.json", group_with(&copies)).await;
        }
        assert_eq!(
            children(&server, "m/v2").await,
            named(&[("__categories", "group")]),
            "stored: {is_stored}"
        );
        assert_eq!(children(&server, "m/v2/__categories").await, named(&[("__a", "array")]));
        assert_eq!(children(&server, "m/v3").await, []);
        let views = ["store/m", "plain/m", "unshard/m", "rechunk/m/auto/raw"];
        for view in views.iter().filter(|_| !is_stored) {
            let made = server.get(&format!("/{view}/v2/.zmetadata?consolidated")).await.json();
            assert!(made["metadata"]["__categories/__a/.zarray"].is_object(), "{view}: {made}");
            let made = server.get(&format!("/{view}/v3/zarr.json?consolidated")).await.json();
            assert_eq!(made["consolidated_metadata"]["metadata"], json!({}), "{view}");
        }
    }
}

#[tokio::test]
async fn stale_consolidated_metadata_does_not_make_a_listing_wrong() {
    for format in [2, 3] {
        let store = memory();
        let (marker, document) = if format == 2 { (".zgroup", ZGROUP) } else { ("zarr.json", GROUP) };
        for child in ["known", "new", "other"] {
            put(&store, &format!("{child}/{marker}"), document).await;
        }
        if format == 2 {
            put(&store, ".zgroup", ZGROUP).await;
            let copies = json!({ "known/.zgroup": {}, "other/.zgroup": {}, "gone/.zarray": {} });
            put(&store, ".zmetadata", zmetadata(&copies)).await;
        } else {
            let kind = json!({ "node_type": "group" });
            let copies = json!({ "known": kind, "other": kind, "gone": { "node_type": "array" } });
            put(&store, "zarr.json", group_with(&copies)).await;
        }
        let counting = Counting::new(store);
        let server = Server::of(counting.clone());
        let expected = named(&[("known", "group"), ("new", "group"), ("other", "group")]);
        assert_eq!(children(&server, "m").await, expected);
        // The group's own document, its copies, and the one node that these do not know.
        assert_eq!(counting.documents(), 3, "v{format}");
    }
}

#[tokio::test]
async fn stored_documents_take_precedence_over_consolidated_copies() {
    let store = memory();
    let copy =
        json!({ "shape": [99], "zarr_format": 3, "node_type": "array", "attributes": { "stale": true } });
    put(&store, "zarr.json", group_with(&json!({ "a": copy }))).await;
    Array::of(&[2]).store(&store, "a").await;
    let server = Server::of(Unlistable::new(store));
    let found = node(&server, "m/a").await;
    assert_eq!((&found["metadata"]["shape"], &found["metadata"]["attributes"]), (&json!([2]), &json!({})));
}

#[tokio::test]
async fn invalid_names_in_consolidated_metadata_are_ignored() {
    let names = ["../up", "..", "/etc/passwd", "a/../../b", "a//b", "nul\0", "", "a/", "./a", "__zarr", "ok"];
    let inline: Value =
        names.map(|name| (name.to_owned(), json!({ "node_type": "group" }))).into_iter().collect();
    let v2: Value = names.map(|name| (format!("{name}/.zgroup"), json!({}))).into_iter().collect();
    // Names with two underscores are reserved in v3 alone.
    for (key, marker, document, found) in [
        ("zarr.json", "zarr.json", group_with(&inline), &[("ok", "group")][..]),
        (".zmetadata", ".zgroup", zmetadata(&v2), &[("__zarr", "group"), ("ok", "group")]),
    ] {
        let store = memory();
        put(&store, marker, if marker == ".zgroup" { ZGROUP } else { GROUP }).await;
        put(&store, key, document.clone()).await;
        let blind = Server::of(Unlistable::new(store.clone()));
        assert_eq!(children(&blind, "m").await, named(found), "{key}");
        assert_eq!(children(&Server::of(store.clone()), "m").await, named(&[]), "{key}");
        assert_eq!(blind.get(&format!("/store/m/{key}")).await.body, document);
    }
}

#[tokio::test]
async fn unreadable_consolidated_metadata_is_treated_as_absent() {
    let long = format!("{}{}", zmetadata(&json!({ "x/.zarray": {} })), " ".repeat(3000));
    let deep = format!(r#"{{"zarr_consolidated_format": 1, "metadata": {}"#, "[".repeat(1500));
    for broken in [
        "",
        "{",
        "[]",
        &deep,
        r#"{"metadata": 1}"#,
        r#"{"zarr_consolidated_format": 2, "metadata": {}}"#,
        &long,
    ] {
        let store = memory();
        put(&store, ".zgroup", ZGROUP).await;
        put(&store, ".zmetadata", broken.to_owned()).await;
        put(&store, "a/.zgroup", ZGROUP).await;
        let mut server = Server::build(Mount::read_only("m", store));
        server.metadata.consolidated_bytes = 2000;
        let server = server.finish();
        assert_eq!(children(&server, "m").await, named(&[("a", "group")]), "{broken}");
        assert_eq!(node(&server, "m").await["consolidated"], false, "{broken}");
    }
    for inline in ["null", "1", "{}", "[]", r#"{"kind":"inline"}"#, r#"{"kind":"inline","metadata":[]}"#] {
        let store = memory();
        let document = format!(r#"{{"zarr_format":3,"node_type":"group","consolidated_metadata":{inline}}}"#);
        put(&store, "zarr.json", document).await;
        put(&store, "a/zarr.json", GROUP).await;
        let server = Server::of(store);
        if inline == "1" || inline == "[]" {
            server.get("/v1/nodes/m").await.refuses(501, "unsupported", inline);
            continue;
        }
        assert_eq!(children(&server, "m").await, named(&[("a", "group")]), "{inline}");
        assert_eq!(node(&server, "m").await["consolidated"], false, "{inline}");
    }
}

#[tokio::test]
async fn children_are_served_below_a_root_without_a_document() {
    let store = memory();
    v2_array(&[2]).store(&store, "a").await;
    put(&store, ".zmetadata", zmetadata(&json!({ "a/.zarray": {} }))).await;
    let server = Server::of(store);
    server.get("/v1/nodes/m").await.refuses(404, "not-found", "no root");
    assert_eq!(server.elements("m/a", "").await.as_ref(), [1, 0, 2, 0]);
    assert_eq!(server.get("/store/m/.zmetadata").await.status, StatusCode::OK);
}

#[tokio::test]
async fn consolidated_metadata_may_exceed_the_length_limit_of_documents() {
    let store = memory();
    let copies: Value = (0..200)
        .map(|number| {
            (format!("a{number:03}"), json!({ "node_type": "array", "attributes": { "x": "y".repeat(100) } }))
        })
        .collect();
    let document = group_with(&copies);
    put(&store, "zarr.json", document.clone()).await;
    put(
        &store,
        "long/zarr.json",
        Array::of(&[2]).members(json!({ "attributes": { "x": "y".repeat(3000) } })).document().1.to_string(),
    )
    .await;
    let mut server = Server::build(Mount::read_only("m", Unlistable::new(store)));
    server.metadata.document_bytes = 2000;
    let server = server.finish();
    assert!(document.len() > 20_000);
    assert_eq!(children(&server, "m").await.len(), 200);
    server.get("/v1/nodes/m/long").await.refuses(500, "invalid-metadata", "too long");
}

/// A hierarchy of both formats, with all that is no node in it.
async fn both_formats() -> SharedStore {
    let store = memory();
    put(&store, "v3/zarr.json", r#"{"node_type": "group", "zarr_format": 3, "attributes": {"a": 1.50}}"#)
        .await;
    put(&store, "v3/g/zarr.json", group_with(&json!({ "stale": { "node_type": "array" } }))).await;
    put(&store, "v3/g-h/zarr.json", GROUP).await;
    let nan = r#"{"zarr_format": 3, "node_type": "group", "attributes": {"big": 123456789012345678901234567890,
        "nan": NaN, "twice": 1, "twice": 2, "text": "NaN"}}"#;
    put(&store, "v3/g/deep/zarr.json", nan).await;
    Array::of(&[20]).chunks(&[1]).store(&store, "v3/g/a \u{e9}").await;
    put(&store, "v3/implicit/x/zarr.json", GROUP).await;
    put(&store, "v3/__reserved/zarr.json", GROUP).await;
    put(&store, "v3/old/.zgroup", ZGROUP).await;
    put(&store, "v3/notes.txt", "stray").await;
    put(&store, "v2/.zgroup", ZGROUP).await;
    put(&store, "v2/.zattrs", r#"{"b": [NaN, 1e400]}"#).await;
    put(&store, "v2/g/.zgroup", ZGROUP).await;
    v2_array(&[3]).store(&store, "v2/g/a").await;
    put(&store, "v2/g/a/.zattrs", r#"{"_ARRAY_DIMENSIONS": ["x"]}"#).await;
    put(&store, "v2/new/zarr.json", GROUP).await;
    put(&store, "v2/attributes-alone/.zattrs", "{}").await;
    store
}

#[tokio::test]
async fn consolidated_metadata_is_built_from_the_documents_of_all_nodes() {
    let store = both_formats().await;
    let array = Array::of(&[20]).chunks(&[1]).document().1;
    let zarray = v2_array(&[3]).document().1;
    let server = Server::of(store);

    let made = server.get("/store/m/v3/zarr.json?consolidated").await;
    assert_eq!((made.status, made.header("content-type")), (StatusCode::OK, "application/json"));
    let deep = r#"{"zarr_format":3,"node_type":"group","attributes":{"big":123456789012345678901234567890,"nan":"NaN","twice":2,"text":"NaN"}}"#;
    let plain = r#"{"zarr_format":3,"node_type":"group"}"#;
    let group = r#"{"node_type":"group","zarr_format":3}"#;
    let members = format!(r#"{{"g":{group},"g-h":{plain},"g/a é":{array},"g/deep":{deep}}}"#);
    let inline = format!(r#"{{"kind":"inline","must_understand":false,"metadata":{members}}}"#);
    let expected = format!(
        r#"{{"node_type":"group","zarr_format":3,"attributes":{{"a":1.50}},"consolidated_metadata":{inline}}}"#
    );
    assert_eq!(String::from_utf8_lossy(&made.body), expected);

    let made = server.get("/store/m/v2/.zmetadata?consolidated=1").await;
    let members = format!(
        r#"{{".zattrs":{{"b":["NaN",1e+400]}},".zgroup":{{"zarr_format":2}},"g/.zgroup":{{"zarr_format":2}},"g/a/.zarray":{zarray},"g/a/.zattrs":{{"_ARRAY_DIMENSIONS":["x"]}}}}"#
    );
    let expected = format!(r#"{{"zarr_consolidated_format":1,"metadata":{members}}}"#);
    assert_eq!(String::from_utf8_lossy(&made.body), expected);

    // A group below: paths are relative to it, and its own copies are not used.
    let made = server.get("/store/m/v3/g/zarr.json?consolidated").await.json();
    let names: Vec<&String> = made["consolidated_metadata"]["metadata"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["a \u{e9}", "deep"]);
}

#[tokio::test]
async fn stored_documents_are_served_unchanged_unless_consolidation_is_requested() {
    let store = both_formats().await;
    let stale = zmetadata(&json!({ "gone/.zarray": {} }));
    put(&store, "v2/.zmetadata", stale.clone()).await;
    let server = Server::of(store);
    for query in ["", "?consolidated=false", "?consolidated=0", "?other=1"] {
        assert_eq!(server.get(&format!("/store/m/v2/.zmetadata{query}")).await.body, stale, "{query}");
        assert_eq!(server.get(&format!("/store/m/v3/g-h/zarr.json{query}")).await.body, GROUP, "{query}");
    }
    let made = server.get("/store/m/v2/.zmetadata?consolidated").await.json();
    assert!(
        made["metadata"]["gone/.zarray"].is_null() && made["metadata"]["g/.zgroup"].is_object(),
        "built again"
    );
    // Nodes other than groups have nothing to consolidate.
    let array = server.get("/store/m/v3/g/a%20%C3%A9/zarr.json").await;
    assert_eq!(server.get("/store/m/v3/g/a%20%C3%A9/zarr.json?consolidated").await.body, array.body);
    for key in
        ["v3/.zmetadata", "v2/zarr.json", "nowhere/.zmetadata", "nowhere/zarr.json", "v2/g/a/.zmetadata"]
    {
        server.get(&format!("/store/m/{key}?consolidated")).await.refuses(404, "not-found", key);
    }
    let twice = server.get("/store/m/v3/zarr.json?consolidated&consolidated").await;
    twice.refuses(400, "invalid-request", "twice");
}

#[tokio::test]
async fn a_mount_can_add_consolidated_metadata_to_groups_without_it() {
    let store = both_formats().await;
    let mount = Mount { consolidated: true, ..Mount::read_only("m", store.clone()) };
    let server = Server::build(mount).finish();
    let plain = Server::of(store.clone());
    for key in ["v3/zarr.json", "v2/.zmetadata", "v3/g-h/zarr.json"] {
        let asked = plain.get(&format!("/store/m/{key}?consolidated")).await;
        let given = server.get(&format!("/store/m/{key}")).await;
        assert_eq!((given.status, &given.body), (StatusCode::OK, &asked.body), "{key}");
        let stored = plain.get(&format!("/store/m/{key}")).await;
        let raw = server.get(&format!("/store/m/{key}?consolidated=false")).await;
        assert_eq!((raw.status, raw.body.is_empty()), (stored.status, stored.body.is_empty()), "{key}");
    }
    // The stored documents stay unchanged.
    for key in ["v3/g/zarr.json", "v3/g/a%20%C3%A9/zarr.json", "v2/.zgroup", "v2/g/a/.zarray"] {
        let stored = plain.get(&format!("/store/m/{key}")).await;
        assert_eq!(server.get(&format!("/store/m/{key}")).await.body, stored.body, "{key}");
    }
    let stored = zmetadata(&json!({}));
    put(&store, "v2/.zmetadata", stored.clone()).await;
    assert_eq!(server.get("/store/m/v2/.zmetadata").await.body, stored);
    server.get("/store/m/v3/.zmetadata").await.refuses(404, "not-found", "no v2 group");
}

#[tokio::test]
async fn the_etag_of_consolidated_metadata_changes_with_every_document_below() {
    let store = both_formats().await;
    let server = Server::of(store.clone());
    for (url, changed, text) in [
        ("/store/m/v3/zarr.json?consolidated", "v3/g/deep/zarr.json", GROUP),
        ("/store/m/v2/.zmetadata?consolidated", "v2/g/a/.zattrs", "{}"),
    ] {
        let first = server.get(url).await;
        let tag = first.header("etag").to_owned();
        assert!(tag.starts_with('"'), "{tag}");
        let again = server.ask(Method::GET, url, &[("if-none-match", &tag)]).await;
        assert_eq!((again.status, again.header("etag")), (StatusCode::NOT_MODIFIED, tag.as_str()));
        let head = server.ask(Method::HEAD, url, &[]).await;
        assert_eq!((head.status, head.header("etag")), (StatusCode::OK, tag.as_str()));
        assert_eq!(head.header("content-length"), first.body.len().to_string());
        put(&store, changed, text).await;
        let other = server.ask(Method::GET, url, &[("if-none-match", &tag)]).await;
        assert_eq!(other.status, StatusCode::OK, "{url}");
        server.ask(Method::GET, url, &[("if-match", &tag)]).await.refuses(412, "precondition-failed", url);
    }
}

#[tokio::test]
async fn consolidated_metadata_over_the_limit_is_413_with_advice() {
    let store = both_formats().await;
    for (limits, says) in [
        (MetadataLimits { consolidated_nodes: 3, ..MetadataLimits::default() }, "more than 3 nodes"),
        (MetadataLimits { consolidated_bytes: 300, ..MetadataLimits::default() }, "more than 300 bytes"),
    ] {
        let mount = Mount { consolidated: true, ..Mount::read_only("m", store.clone()) };
        let mut server = Server::build(mount);
        server.metadata = limits;
        let server = server.finish();
        let detail = server.get("/store/m/v3/zarr.json?consolidated").await.refuses(413, "too-large", says);
        assert!(detail.contains(says) && detail.contains("a group below it"), "{detail}");
        // Without the parameter, the stored document is returned.
        assert!(server.get("/store/m/v3/zarr.json").await.json()["consolidated_metadata"].is_null());
        assert!(server.get("/store/m/v3/g-h/zarr.json").await.json()["consolidated_metadata"].is_object());
    }
}

#[tokio::test]
async fn building_consolidated_metadata_without_listing_is_refused_with_the_reason() {
    let store = both_formats().await;
    let mount = Mount { consolidated: true, ..Mount::read_only("m", Unlistable::new(store)) };
    let server = Server::build(mount).finish();
    for key in ["v3/zarr.json", "v2/.zmetadata"] {
        let detail =
            server.get(&format!("/store/m/{key}?consolidated")).await.refuses(501, "unsupported", key);
        assert!(detail.contains("cannot list"), "{detail}");
    }
    assert_eq!(server.get("/store/m/v3/zarr.json").await.status, StatusCode::OK);
    server.get("/store/m/v2/.zmetadata").await.refuses(404, "not-found", "not stored");
}

#[tokio::test]
async fn consolidated_metadata_is_complete_or_not_built() {
    for broken in ["{", "[]", r#"{"zarr_format": 3}"#, r#"{"a": 1, "a": 1, "node_type": "group"}"#] {
        let store = both_formats().await;
        put(&store, "v3/g/broken/zarr.json", broken).await;
        let mount = Mount { consolidated: true, ..Mount::read_only("m", store) };
        let server = Server::build(mount).finish();
        let answer = server.get("/store/m/v3/zarr.json?consolidated").await;
        let detail = answer.refuses(500, "invalid-metadata", broken);
        assert!(detail.contains("v3/g/broken/zarr.json"), "{detail}");
        assert!(server.get("/store/m/v3/zarr.json").await.json()["consolidated_metadata"].is_null());
    }
}

#[tokio::test]
async fn erased_nodes_disappear_from_built_consolidated_metadata() {
    let store = both_formats().await;
    let server = Server::of(store.clone());
    erase(&store, "v3/g/deep/zarr.json").await;
    let made = server.get("/store/m/v3/g/zarr.json?consolidated").await.json();
    assert_eq!(made["consolidated_metadata"]["metadata"].as_object().unwrap().len(), 1);
}

/// A group with nodes below it, and attributes that give its consolidated metadata this length in bytes.
async fn long_hierarchy(bytes: usize) -> SharedStore {
    let store = memory();
    put(&store, "zarr.json", GROUP).await;
    for number in 0..16 {
        let attributes = json!({ "text": "x".repeat(bytes / 16) });
        let group = json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes });
        put(&store, &format!("g{number}/zarr.json"), group.to_string()).await;
    }
    store
}

#[tokio::test]
async fn concurrent_requests_build_consolidated_metadata_once() {
    let counting = Counting::new(long_hierarchy(1 << 20).await);
    let server = Server::of(Arc::clone(&counting) as SharedStore);
    let all = (0..20).map(|_| server.get("/store/m/zarr.json?consolidated"));
    let given = futures::future::join_all(all).await;
    assert!(given.iter().all(|answer| answer.status == StatusCode::OK && answer.body == given[0].body));
    // Once for the first, and once for all that arrived during its build.
    assert_eq!(counting.documents(), 2 * 17);
}

#[tokio::test]
async fn consolidated_metadata_counts_as_in_flight_once_until_its_last_reader_is_done() {
    let long = 4 << 20;
    let mut server = Server::build(Mount::read_only("m", long_hierarchy(long).await));
    server.http.admission_timeout = Duration::from_millis(1);
    let server = server.finish();
    let (site, before) = (server.site(), server.in_flight_bytes());
    let ask = || {
        let request = Request::builder().uri("/store/m/zarr.json?consolidated").body(Body::empty());
        site.handle(request.unwrap(), Peer::LOOPBACK)
    };
    let answers = futures::future::join_all((0..4).map(|_| ask())).await;
    assert!(answers.iter().all(|answer| answer.status() == StatusCode::OK));
    // Two builds, of which the second serves three responses, and the charge of each stream.
    let (held, long) = (server.in_flight_bytes() - before, long as u64);
    assert!((2 * long - (4 << 20)..3 * long).contains(&held) && held >= long, "{held}");
    drop(answers);
    assert_eq!(server.in_flight_bytes(), before);
}

#[tokio::test]
async fn consolidated_metadata_over_the_budget_is_413_and_over_the_free_part_503() {
    let mut server = Server::build(Mount::read_only("m", long_hierarchy(2 << 20).await));
    (server.http.inflight_size, server.http.streamed_response_size) = (4 << 20, 64 << 10);
    let server = server.finish();
    let problem = server.get("/store/m/zarr.json?consolidated").await;
    let detail = problem.refuses(413, "too-large", "with its copies longer than one request can have");
    assert!(detail.contains("a group below it") && detail.contains("http.inflight_size"), "{detail}");
    assert_eq!(server.in_flight_bytes(), 0);
    // What fits alone does not fit beside another whose client reads nothing.
    let mut server = Server::build(Mount::read_only("m", long_hierarchy(2 << 20).await));
    (server.http.inflight_size, server.http.streamed_response_size) = (6 << 20, 64 << 10);
    let server = server.finish();
    let ask = || {
        let request = Request::builder().uri("/store/m/zarr.json?consolidated").body(Body::empty());
        server.send_from(request.unwrap(), Peer::LOOPBACK)
    };
    let request = Request::builder().uri("/store/m/zarr.json?consolidated").body(Body::empty());
    let held = server.site().handle(request.unwrap(), Peer::LOOPBACK).await;
    assert_eq!(held.status(), StatusCode::OK);
    ask().await.refuses(503, "overloaded", "another is held");
    drop(held);
    assert_eq!(ask().await.status, StatusCode::OK);
    assert_eq!(server.in_flight_bytes(), 0);
}

/// A budget of this many bytes for each consumer.
#[derive(Debug)]
struct Each(u64);

impl MemoryBudget for Each {
    fn reserve(&self, bytes: u64) -> Result<(), BudgetExceeded> {
        if bytes > self.0 { Err(BudgetExceeded::Now) } else { Ok(()) }
    }

    fn release(&self, _bytes: u64) {}

    fn client(&self) -> u64 {
        self.0
    }
}

#[tokio::test]
async fn a_build_of_consolidated_metadata_over_its_budget_does_not_block_others() {
    let store = memory();
    // Long enough to be read on another thread, so that all have asked before the first is done.
    let group =
        json!({ "zarr_format": 3, "node_type": "group", "attributes": { "text": "x".repeat(1 << 16) } });
    put(&store, "zarr.json", group.to_string()).await;
    put(&store, "g/zarr.json", group.to_string()).await;
    let cpu = ComputePool::new(ComputePoolOptions::default()).unwrap();
    let hierarchy = Hierarchy::new(store, MetadataLimits::default(), cpu);
    let root = NodePath::parse("").unwrap();
    let ask = |bytes: u64| hierarchy.build_inline(&root, true, false, Arc::new(Each(bytes)));
    // All others ask while the first makes it: those without budget are next, and one follows that builds it for all.
    let made = join_all([u64::MAX, 0, 0, u64::MAX, 0, u64::MAX].map(ask)).await;
    for (caller, made) in made.into_iter().enumerate() {
        match (caller, made) {
            (0 | 3.., Ok(Some(made))) => assert!(made.text.starts_with(b"{"), "caller {caller}"),
            (1 | 2, Err(HierarchyError::BudgetExhausted { .. })) => {}
            (caller, made) => panic!("caller {caller}: {made:?}"),
        }
    }
}
