//! DAP4: metadata, values in chunks with checksums, selections, and errors within a response.

use axum::http::{Method, StatusCode};
use serde_json::json;

use crate::access::{access, grant, known, token};
use crate::support::data_types::data_type;
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Answer, Server, put};
use zarrd::services::Mount;
use zarrd::store::SharedStore;

/// A group with `air` over `time` and `x`, and in the group `deep` an array over the same `time`.
async fn climate() -> SharedStore {
    let store = memory();
    let group = |title: &str| {
        json!({ "zarr_format": 3, "node_type": "group", "attributes": { "title": title } }).to_string()
    };
    put(&store, "g/zarr.json", group("a <b> & \u{e9}")).await;
    put(&store, "g/deep/zarr.json", group("deep")).await;
    let names = |names: &[&str]| json!({ "dimension_names": names });
    let array = |shape: &[usize], kind: &'static str| Array::of(shape).data_type(data_type(kind));
    array(&[6, 5], "int16").chunks(&[4, 2]).members(names(&["time", "x"])).store(&store, "g/air").await;
    array(&[6], "int64").chunks(&[4]).members(names(&["time"])).store(&store, "g/time").await;
    array(&[6], "float64").chunks(&[6]).members(names(&["time"])).store(&store, "g/deep/one").await;
    array(&[5], "complex64").chunks(&[5]).store(&store, "g/complex").await;
    store
}

async fn ok(server: &Server, url: &str) -> Answer {
    let answer = server.get(&format!("/dap/m/{url}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
    assert_eq!(answer.header("xdap"), "4.0", "{url}");
    answer
}

/// The flags of each chunk of a response, the metadata in the first, and the content of the others together.
fn chunks(answer: &Answer) -> (Vec<u8>, String, Vec<u8>) {
    let (mut rest, mut flags, mut contents) = (&answer.body[..], Vec::new(), Vec::new());
    while !rest.is_empty() {
        let length = u32::from_be_bytes([0, rest[1], rest[2], rest[3]]) as usize;
        flags.push(rest[0]);
        contents.push(rest[4..4 + length].to_vec());
        rest = &rest[4 + length..];
    }
    let dmr = String::from_utf8(contents.remove(0)).unwrap();
    (flags, dmr, contents.concat())
}

/// The elements of an array as plain bytes.
async fn elements(server: &Server, path: &str, slice: &str) -> Vec<u8> {
    server.get(&format!("/v1/data/m/{path}?format=bytes&slice={slice}")).await.body.to_vec()
}

fn with_checksum(mut values: Vec<u8>) -> Vec<u8> {
    let sum = zarrd::codec::crc32(&values);
    values.extend(sum.to_le_bytes());
    values
}

#[tokio::test]
async fn metadata_has_the_groups_and_the_dimensions_that_they_share() {
    let server = Server::of(climate().await);
    let answer = ok(&server, "g.dmr.xml").await;
    assert_eq!(answer.header("content-type"), "application/vnd.opendap.dap4.dataset-metadata+xml");
    let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<Dataset xmlns="http://xml.opendap.org/ns/DAP/4.0#" name="g" dapVersion="4.0" dmrVersion="1.0">
  <Dimension name="time" size="6"/>
  <Dimension name="x" size="5"/>
  <Int64 name="time">
    <Dim name="/time"/>
  </Int64>
  <Int16 name="air">
    <Dim name="/time"/><Dim name="/x"/>
    <Map name="/time"/>
  </Int16>
  <Attribute name="title" type="String"><Value>a &lt;b&gt; &amp; &#233;</Value></Attribute>
  <Group name="deep">
    <Float64 name="one">
      <Dim name="/time"/>
      <Map name="/time"/>
    </Float64>
    <Attribute name="title" type="String"><Value>deep</Value></Attribute>
  </Group>
</Dataset>
"#;
    assert_eq!(String::from_utf8(answer.body.to_vec()).unwrap(), expected);
    assert_eq!(ok(&server, "g.dmr").await.body, answer.body);
    let tag = answer.header("etag");
    let same = server.ask(Method::GET, "/dap/m/g.dmr", &[("if-none-match", tag)]).await;
    assert_eq!(same.status, StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn values_are_little_endian_with_a_checksum_behind_each_variable_in_the_order_of_the_dataset() {
    let server = Server::of(climate().await);
    let (flags, dmr, values) = chunks(&ok(&server, "g.dap").await);
    assert_eq!((flags[0], *flags.last().unwrap()), (4, 5));
    assert_eq!(dmr.as_bytes(), &ok(&server, "g.dmr").await.body[..]);
    let mut expected = Vec::new();
    for path in ["g/time", "g/air", "g/deep/one"] {
        expected.extend(with_checksum(elements(&server, path, "...").await));
    }
    assert_eq!(values, expected);

    let query = "dap4.checksum=false&dap4.ce=/deep/one%5B1:2:5%5D;/air[][3]";
    let (flags, dmr, values) = chunks(&ok(&server, &format!("g.dap?{query}")).await);
    assert_eq!((flags[0], *flags.last().unwrap()), (12, 13));
    assert!(dmr.contains("<Dim size=\"6\"/><Dim size=\"1\"/>"), "{dmr}");
    let of_air = elements(&server, "g/air", ":,3:4").await;
    let expected = [of_air, elements(&server, "g/deep/one", "1::2").await].concat();
    assert_eq!(values, expected);
    let other = ok(&server, "g.dap?dap4.checksum=false&dap4.ce=/air[][3];/deep/one[1:2:5]").await;
    assert_eq!(chunks(&other).2, expected);

    let answer = ok(&server, "g.dap?dap4.ce=/time").await;
    let headers = [("if-none-match", answer.header("etag"))];
    let same = server.ask(Method::GET, "/dap/m/g.dap?dap4.ce=/time", &headers).await;
    assert_eq!((same.status, same.body.len()), (StatusCode::NOT_MODIFIED, 0));
    let head = server.ask(Method::HEAD, "/dap/m/g.dap?dap4.ce=/time", &[]).await;
    assert_eq!((head.status, head.header("etag")), (StatusCode::OK, answer.header("etag")));
}

#[tokio::test]
async fn a_text_that_is_not_utf_8_is_written_as_in_json() {
    let store = climate().await;
    let texts = [&b"ab\0"[..], b"\xe9t\\", b"\\x\0", "\u{e9}\0".as_bytes()].concat();
    let kind = r#"{"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}"#;
    let document = format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": {kind}, "fill_value": "", "codecs": [{{"name": "bytes"}}],
        "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [4]}}}}, "chunk_key_encoding": {{"name": "default"}}}}"#
    );
    put(&store, "g/names/zarr.json", document).await;
    put(&store, "g/names/c/0", texts).await;
    let server = Server::of(store);
    let (_, dmr, values) = chunks(&ok(&server, "g.dap?dap4.ce=/names&dap4.checksum=false").await);
    assert!(dmr.contains("<String name=\"names\">"), "{dmr}");
    let expected: Vec<u8> = ["ab", r"\xe9t\\", r"\x", "\u{e9}"]
        .iter()
        .flat_map(|text| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat())
        .collect();
    assert_eq!(values, expected, "{}", String::from_utf8_lossy(&values));
}

#[tokio::test]
async fn a_response_that_breaks_ends_with_an_error_and_one_that_cannot_begin_has_its_status() {
    let store = memory();
    put(&store, "g/zarr.json", json!({ "zarr_format": 3, "node_type": "group" }).to_string()).await;
    Array::of(&[8]).chunks(&[4]).store(&store, "g/a").await;
    Array::of(&[8]).chunks(&[4]).store(&store, "g/b").await;
    let server = Server::of(store.clone());
    assert_eq!(ok(&server, "g.dap").await.status, StatusCode::OK);
    put(&store, "g/b/c/0", "x").await;
    let (flags, _, content) = chunks(&ok(&server, "g.dap").await);
    assert_eq!(flags.last(), Some(&7));
    let text = String::from_utf8_lossy(&content).into_owned();
    assert!(text.contains("<Error") && text.contains("httpcode=\"500\""), "{text}");
    put(&store, "g/a/c/0", "x").await;
    let broken = server.get("/dap/m/g.dap").await;
    assert_eq!(broken.status, StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test]
async fn errors_are_documents_that_say_what_would_be_right() {
    let server = Server::of(climate().await);
    for (url, status, expected) in [
        ("/dap/m/none.dmr", 404, ""),
        ("/dap/none/g.dmr.xml", 404, "there is no mount"),
        ("/dap/m/g.dap?dap4.ce=/none", 400, "there is: /time, /air, /deep/one"),
        ("/dap/m/g.dap?dap4.ce=/air[0:9][0]", 400, "the indices 0 to 5"),
        ("/dap/m/g.dap?dap4.ce=/air[0]", 400, "2 dimensions"),
        ("/dap/m/g.dmr?dap4.ce=/air[", 400, "hyperslab"),
        ("/dap/m/g.dap?dap4.ce=/time|time%3E3", 400, "filters"),
        ("/dap/m/g.dap?dap4.function=f()", 400, "dap4.checksum"),
    ] {
        let answer = server.get(url).await;
        assert_eq!(answer.status.as_u16(), status, "{url}: {:?}", answer.body);
        assert_eq!(answer.header("content-type"), "application/vnd.opendap.dap4.error+xml", "{url}");
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(text.contains(&format!("httpcode=\"{status}\"")) && text.contains(expected), "{url}: {text}");
    }
}

#[tokio::test]
async fn groups_and_coordinates_that_the_caller_may_not_read_are_as_if_they_were_not_there() {
    let server = Server::build(Mount::read_only("m", climate().await)).finish();
    let tokens = json!({
        "part": known("part", json!([grant("m", "g/deep", &["read", "list"])])),
        "all": known("all", json!([grant("m", "", &["read", "list"])])),
    });
    server.set_access(access(json!({ "tokens": tokens }), &[], &std::sync::Arc::default()));
    for (holder, has_time) in [("part", false), ("all", true), ("part", false)] {
        let bearer = format!("Bearer {}", token(holder));
        let headers = [("authorization", bearer.as_str())];
        let answer = server.ask(Method::GET, "/dap/m/g/deep.dmr", &headers).await;
        assert_eq!(answer.status, StatusCode::OK, "{holder}: {:?}", answer.body);
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        assert_eq!(text.contains("<Int64 name=\"time\">"), has_time, "{holder}: {text}");
    }
}
