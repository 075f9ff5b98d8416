//! Structs, strings, dates and similar types in every output format, compared with text written by hand.

use std::fmt::Write;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int16Type, Int32Type, TimestampSecondType, UInt8Type};
use arrow_array::{Array as _, RecordBatch};
use arrow_ipc::reader::StreamReader;
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd::render::FORMATS;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::hierarchy::memory;
use crate::support::server::{Answer, Server, put};

/// The three elements of `m/struct`, as they are answered: `a`, `p.x`, `p.y`, `q`, `s`.
const ITEM_BYTES: usize = 4 + 2 + 4 + 2 + 3;

fn item(number: u8, text: [u8; 3], big: bool) -> Vec<u8> {
    let y = f32::from(number) + 0.5;
    let a = i32::from(number) * -1000;
    let x = i16::from(number) * 256;
    let a = if big { a.to_be_bytes() } else { a.to_le_bytes() };
    let x = if big { x.to_be_bytes() } else { x.to_le_bytes() };
    let y = if big { y.to_be_bytes() } else { y.to_le_bytes() };
    [&a[..], &x, &y, &[number, number + 10], &text].concat()
}

fn items(big: bool) -> Vec<u8> {
    [item(1, *b"one", big), item(2, *b"a,b", big), item(3, *b"c\0\0", big)].concat()
}

async fn v2(store: &SharedStore, path: &str, dtype: Value, shape: &[u64], chunk: Vec<u8>, members: Value) {
    let mut document = json!({
        "zarr_format": 2, "shape": shape, "chunks": shape, "dtype": dtype, "compressor": null, "filters": null,
        "order": "C", "fill_value": null,
    });
    for (name, value) in members.as_object().unwrap() {
        document[name] = value.clone();
    }
    put(store, &format!("{path}/.zarray"), document.to_string()).await;
    put(store, &format!("{path}/{}", vec!["0"; shape.len()].join(".")), chunk).await;
}

async fn v3(store: &SharedStore, path: &str, data_type: Value, shape: &[u64], codec: Value, chunk: Vec<u8>) {
    let fill_value = if data_type == "string" { json!("") } else { json!(0) };
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": fill_value,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": shape } },
        "chunk_key_encoding": { "name": "default" }, "codecs": [codec],
    });
    let numbers: String = shape.iter().map(|_| "/0").collect();
    put(store, &format!("{path}/zarr.json"), document.to_string()).await;
    put(store, &format!("{path}/c{numbers}"), chunk).await;
}

/// A number and the elements, each behind its length.
fn vlen(elements: &[&[u8]]) -> Vec<u8> {
    let number = |length: usize| u32::try_from(length).unwrap().to_le_bytes();
    let mut chunk = number(elements.len()).to_vec();
    for element in elements {
        chunk.extend_from_slice(&number(element.len()));
        chunk.extend_from_slice(element);
    }
    chunk
}

const TEXTS: [&str; 4] = ["", "a \"b\"", "d\u{e9}j\u{e0}", "x,y\n"];

fn times(steps: &[i64]) -> Vec<u8> {
    steps.iter().flat_map(|steps| steps.to_le_bytes()).collect()
}

async fn hierarchy() -> SharedStore {
    let store = memory();
    let dtype = json!([["a", "<i4"], ["p", [["x", "<i2"], ["y", ">f4"]]], ["q", "|u1", [2]], ["s", "|S3"]]);
    // Stored with one field big-endian.
    let mut stored = items(false);
    for element in stored.chunks_mut(ITEM_BYTES) {
        element[6..10].reverse();
    }
    v2(&store, "struct", dtype, &[3], stored, json!({})).await;
    let texts = TEXTS.map(str::as_bytes);
    v3(&store, "texts", json!("string"), &[2, 2], json!("vlen-utf8"), vlen(&texts)).await;
    let filters = |name: &str| json!({ "filters": [{ "id": name }] });
    let bytes = vlen(&[b"\x00\xff", b"", b"ab"]);
    v2(&store, "bytes", json!("|O"), &[3], bytes, filters("vlen-bytes")).await;
    let arrays = json!({ "filters": [{ "id": "vlen-array", "dtype": "<i2" }] });
    v2(&store, "arrays", json!("|O"), &[2], vlen(&[&[1, 0, 2, 0], b""]), arrays).await;
    v2(&store, "zero", json!("|O"), &[1], vlen(&[b"a\0"]), filters("vlen-utf8")).await;
    let steps = times(&[1_709_210_096, i64::MIN]);
    v2(&store, "dates", json!("<M8[s]"), &[2], steps.clone(), json!({})).await;
    v2(&store, "spans", json!("<m8[s]"), &[2], steps, json!({})).await;
    v2(&store, "cube", json!("|u1"), &[2, 2, 2], (0..8).collect(), json!({})).await;
    let complex = [1.5_f32, -2.0].map(f32::to_le_bytes).concat();
    v2(&store, "complex", json!("<c8"), &[1], complex, json!({})).await;
    v2(&store, "unicode", json!("<U2"), &[1], vec![0xe9, 0, 0, 0, 0, 0, 0, 0], json!({})).await;
    v2(&store, "raw", json!("|V2"), &[2], vec![0, 1, 2, 0xff], json!({})).await;
    store
}

async fn server() -> Server {
    Server::of(hierarchy().await)
}

async fn ok(server: &Server, url: &str) -> Answer {
    let answer = server.get(&format!("/v1/data/m/{url}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{url}: {:?}", answer.body);
    assert_eq!(answer.header("content-length"), answer.body.len().to_string(), "{url}");
    answer
}

/// The rows, without the line of column names.
async fn csv(server: &Server, path: &str) -> String {
    let answer = ok(server, &format!("{path}?format=csv&header=absent")).await;
    assert_eq!(answer.header("content-type"), "text/csv; charset=utf-8; header=absent");
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// The dictionary and the elements of an npy file.
async fn npy(server: &Server, url: &str) -> (String, Vec<u8>) {
    let answer = ok(server, url).await;
    let end = 10 + usize::from(u16::from_le_bytes([answer.body[8], answer.body[9]]));
    (String::from_utf8(answer.body[10..end].trim_ascii_end().to_vec()).unwrap(), answer.body[end..].to_vec())
}

/// The only batch of an Arrow stream.
async fn arrow(server: &Server, url: &str) -> RecordBatch {
    let answer = ok(server, &format!("{url}format=arrow")).await;
    assert_eq!(answer.header("content-type"), "application/vnd.apache.arrow.stream");
    let mut batches: Vec<RecordBatch> =
        StreamReader::try_new(&answer.body[..], None).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(batches.len(), 1, "{url}");
    batches.remove(0)
}

#[tokio::test]
async fn structs_are_rendered_in_every_format() {
    let server = server().await;
    let answer = ok(&server, "struct").await;
    assert_eq!(answer.body, items(false));
    let name = "struct{a: int32, p: struct{x: int16, y: float32}, q: uint8[2], s: null_terminated_bytes[3]}";
    assert_eq!((answer.header("array-shape"), answer.header("array-data-type")), ("[3]", name));
    assert_eq!(ok(&server, "struct?endian=big").await.body, items(true));
    let (header, elements) = npy(&server, "struct?format=npy").await;
    let descr = "[('a', '<i4'), ('p', [('x', '<i2'), ('y', '<f4')]), ('q', '|u1', (2,)), ('s', '|S3')]";
    assert_eq!(header, format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (3,), }}"));
    assert_eq!(elements, items(false));
    assert_eq!(
        ok(&server, "struct?format=json").await.json(),
        json!([
            { "a": -1000, "p": { "x": 256, "y": 1.5 }, "q": [1, 11], "s": "one" },
            { "a": -2000, "p": { "x": 512, "y": 2.5 }, "q": [2, 12], "s": "a,b" },
            { "a": -3000, "p": { "x": 768, "y": 3.5 }, "q": [3, 13], "s": "c" },
        ])
    );
    let rows = "-1000,256,1.5,\"[1,11]\",one\r\n-2000,512,2.5,\"[2,12]\",\"a,b\"\r\n\
                -3000,768,3.5,\"[3,13]\",c\r\n";
    assert_eq!(csv(&server, "struct").await, rows);
    let batch = arrow(&server, "struct?").await;
    assert_eq!(
        batch.column_by_name("a").unwrap().as_primitive::<Int32Type>().values(),
        &[-1000, -2000, -3000]
    );
    let point = batch.column_by_name("p").unwrap().as_struct();
    assert_eq!(point.column_by_name("y").unwrap().as_primitive::<Float32Type>().values(), &[1.5, 2.5, 3.5]);
    let second = batch.column_by_name("q").unwrap().as_fixed_size_list().value(1);
    assert_eq!(second.as_primitive::<UInt8Type>().values(), &[2, 12]);
    let texts = batch.column_by_name("s").unwrap().as_binary::<i32>();
    assert_eq!(texts.iter().flatten().collect::<Vec<_>>(), [b"one" as &[u8], b"a,b", b"c"]);
}

#[tokio::test]
async fn a_single_field_is_rendered_as_its_own_elements_in_every_format() {
    let server = server().await;
    let answer = ok(&server, "struct?fields=p.x").await;
    assert_eq!(answer.body[..], [0, 1, 0, 2, 0, 3]);
    assert_eq!((answer.header("array-shape"), answer.header("array-data-type")), ("[3]", "int16"));
    assert_eq!(ok(&server, "struct?fields=p.x&endian=big").await.body[..], [1, 0, 2, 0, 3, 0]);
    assert_eq!(ok(&server, "struct?fields=s&format=json").await.json(), json!(["one", "a,b", "c"]));
    assert_eq!(csv(&server, "struct").await.lines().count(), 3);
    let batch = arrow(&server, "struct?fields=p.x&").await;
    assert_eq!(
        batch.column_by_name("values").unwrap().as_primitive::<Int16Type>().values(),
        &[256, 512, 768]
    );

    let answer = ok(&server, "struct?fields=q&slice=::-1").await;
    assert_eq!(answer.body[..], [3, 13, 2, 12, 1, 11]);
    assert_eq!((answer.header("array-shape"), answer.header("array-data-type")), ("[3, 2]", "uint8"));
    let (header, _) = npy(&server, "struct?fields=q&format=npy").await;
    assert_eq!(header, "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), }");
    let columns = ok(&server, "struct?fields=q&format=csv").await.body;
    assert_eq!(columns, "0,1\r\n1,11\r\n2,12\r\n3,13\r\n");
}

#[tokio::test]
async fn the_first_line_of_csv_names_the_columns() {
    let server = server().await;
    for (url, line) in [
        ("struct?", "a,p.x,p.y,q,s"),
        ("struct?fields=s,a&", "s,a"),
        ("struct?fields=p.x&", "p.x"),
        ("dates?", "dates"),
        ("dates?slice=1&", "dates"),
        ("texts?", "0,1"),
        ("texts?slice=1,::-1&", "texts"),
        ("texts?slice=:,::-1&", "1,0"),
    ] {
        let answer = ok(&server, &format!("{url}format=csv")).await;
        assert_eq!(answer.header("content-type"), "text/csv; charset=utf-8; header=present", "{url}");
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        let rest = text.strip_prefix(&format!("{line}\r\n")).unwrap_or_else(|| panic!("{url}: {text}"));
        for absent in ["absent", "no"] {
            let without = ok(&server, &format!("{url}format=csv&header={absent}")).await;
            assert_eq!(without.body, rest, "{url}");
            assert_ne!(without.header("etag"), answer.header("etag"), "{url}");
        }
    }
}

#[tokio::test]
async fn downloads_have_a_file_name_and_an_extension() {
    let server = server().await;
    for (url, name) in [
        ("/v1/data/m/struct", "struct.bin"),
        ("/v1/data/m/struct?format=npy", "struct.npy"),
        ("/v1/data/m/struct?format=json", "struct.json"),
        ("/v1/data/m/struct?format=csv", "struct.csv"),
        ("/v1/data/m/struct?format=arrow", "struct.arrow"),
        ("/v1/chunk/m/struct/c/0?format=npy", "struct.c.0.npy"),
    ] {
        for _ in 0..3 {
            let answer = server.get(url).await;
            assert_eq!(answer.header("content-disposition"), format!("inline; filename=\"{name}\""), "{url}");
        }
    }
    let part = server.ask(Method::GET, "/v1/data/m/struct", &[("range", "bytes=0-1")]).await;
    assert_eq!(part.header("content-disposition"), "inline; filename=\"struct.bin\"");
    let refused = server.get("/v1/data/m/struct?slice=9").await;
    assert_eq!(refused.header("content-disposition"), "");
}

#[tokio::test]
async fn several_fields_are_a_struct_in_the_requested_order() {
    let server = server().await;
    let answer = ok(&server, "struct?fields=s,p.y,a&slice=1").await;
    let expected = [b"a,b" as &[u8], &2.5_f32.to_le_bytes(), &(-2000_i32).to_le_bytes()].concat();
    assert_eq!(answer.body, expected);
    let name = "struct{s: null_terminated_bytes[3], p.y: float32, a: int32}";
    assert_eq!((answer.header("array-shape"), answer.header("array-data-type")), ("[]", name));
    let rows = ok(&server, "struct?fields=q,a&format=csv").await.body;
    assert_eq!(rows, "q,a\r\n\"[1,11]\",-1000\r\n\"[2,12]\",-2000\r\n\"[3,13]\",-3000\r\n");
    let chunk = server.get("/v1/chunk/m/struct/c/0?fields=s,p.y,a").await;
    assert_eq!(chunk.body.len(), 3 * (3 + 4 + 4));
    assert_eq!(chunk.body[11..22], expected);
}

#[tokio::test]
async fn byte_ranges_of_fields_are_parts_of_the_full_response() {
    let server = server().await;
    for query in
        ["fields=p.y", "fields=q,p,a&endian=big", "fields=s&format=npy", "endian=big", "fields=a&slice=::-2"]
    {
        let url = format!("/v1/data/m/struct?{query}");
        let whole = server.get(&url).await;
        let length = whole.body.len();
        for first in 0..length {
            for last in [first, (first + 5).min(length - 1), length - 1] {
                let part =
                    server.ask(Method::GET, &url, &[("range", &format!("bytes={first}-{last}"))]).await;
                assert_eq!(part.status, StatusCode::PARTIAL_CONTENT, "{url}");
                assert_eq!(part.header("content-range"), format!("bytes {first}-{last}/{length}"));
                assert_eq!(part.body, whole.body[first..=last], "{url} {first}-{last}");
            }
        }
    }
}

#[tokio::test]
async fn every_format_has_its_own_etag() {
    let server = server().await;
    let mut tags = Vec::new();
    for query in
        ["", "fields=a", "fields=s", "fields=a,s", "fields=s,a", "format=csv", "format=arrow", "format=npy"]
    {
        let answer = ok(&server, &format!("struct?{query}")).await;
        let tag = answer.header("etag").to_owned();
        let again =
            server.ask(Method::GET, &format!("/v1/data/m/struct?{query}"), &[("if-none-match", &tag)]).await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED, "{query}");
        assert_eq!(again.header("array-data-type"), answer.header("array-data-type"), "{query}");
        assert!(!tags.contains(&tag), "{query}");
        tags.push(tag);
    }
}

#[tokio::test]
async fn unknown_fields_are_refused_with_the_list_of_fields() {
    let server = server().await;
    for fields in ["b", "p.z", "", "a,b", "a.b", "q.x"] {
        let answer = server.get(&format!("/v1/data/m/struct?fields={fields}")).await;
        let detail = answer.refuses(400, "invalid-request", fields);
        assert!(detail.contains("there are: a, p, q, s"), "{fields}: {detail}");
    }
    let twice = server.get("/v1/data/m/struct?fields=a,a").await.refuses(400, "invalid-request", "a,a");
    assert!(twice.contains("two fields `a`"), "{twice}");
    for path in ["dates", "texts", "raw"] {
        let detail =
            server.get(&format!("/v1/data/m/{path}?fields=a")).await.refuses(400, "invalid-request", path);
        assert!(detail.contains("have no fields"), "{detail}");
    }
}

#[tokio::test]
async fn strings_are_rendered_in_every_format() {
    let server = server().await;
    let answer = ok(&server, "texts").await;
    assert_eq!(answer.body, vlen(&TEXTS.map(str::as_bytes))[4..]);
    assert_eq!((answer.header("array-shape"), answer.header("array-data-type")), ("[2, 2]", "string"));
    assert_eq!(
        ok(&server, "texts?format=json").await.json(),
        json!([[TEXTS[0], TEXTS[1]], [TEXTS[2], TEXTS[3]]])
    );
    assert_eq!(csv(&server, "texts").await, "\"\",\"a \"\"b\"\"\"\r\nd\u{e9}j\u{e0},\"x,y\n\"\r\n");
    for (endian, mark) in [("little", '<'), ("big", '>')] {
        let (header, elements) = npy(&server, &format!("texts?format=npy&endian={endian}")).await;
        assert_eq!(header, format!("{{'descr': '{mark}U5', 'fortran_order': False, 'shape': (2, 2), }}"));
        let number = |character: char| match endian {
            "big" => u32::from(character).to_be_bytes(),
            _ => u32::from(character).to_le_bytes(),
        };
        let filled =
            |text: &str| text.chars().chain("\0\0\0\0\0".chars()).take(5).map(number).collect::<Vec<_>>();
        assert_eq!(elements, TEXTS.map(|text| filled(text).concat()).concat());
    }
    let column =
        arrow(&server, "texts?").await.column(0).as_fixed_size_list().values().as_string::<i32>().clone();
    assert_eq!(column.iter().flatten().collect::<Vec<_>>(), TEXTS);
}

#[tokio::test]
async fn variable_length_bytes_and_arrays_are_rendered_in_every_capable_format() {
    let server = server().await;
    assert_eq!(ok(&server, "bytes").await.body, vlen(&[b"\x00\xff", b"", b"ab"])[4..]);
    assert_eq!(ok(&server, "bytes?format=json").await.json(), json!([[0, 255], [], [97, 98]]));
    assert_eq!(csv(&server, "bytes").await, "00ff\r\n\"\"\r\n6162\r\n");
    let (header, elements) = npy(&server, "bytes?format=npy").await;
    assert_eq!(header, "{'descr': '|S2', 'fortran_order': False, 'shape': (3,), }");
    assert_eq!(elements, b"\x00\xff\0\0ab");
    let column = arrow(&server, "bytes?").await.column(0).as_binary::<i32>().clone();
    assert_eq!(column.iter().flatten().collect::<Vec<_>>(), [b"\x00\xff" as &[u8], b"", b"ab"]);

    assert_eq!(ok(&server, "arrays").await.body, vlen(&[&[1, 0, 2, 0], b""])[4..]);
    assert_eq!(ok(&server, "arrays?format=json").await.json(), json!([[1, 2], []]));
    assert_eq!(csv(&server, "arrays").await, "\"[1,2]\"\r\n[]\r\n");
    let column = arrow(&server, "arrays?").await.column(0).as_list::<i32>().clone();
    assert_eq!(column.value(0).as_primitive::<Int16Type>().values(), &[1, 2]);
    assert!(column.value(1).is_empty());
}

#[tokio::test]
async fn dates_and_durations_are_rendered_in_every_format() {
    let server = server().await;
    let steps = times(&[1_709_210_096, i64::MIN]);
    for (path, kind, json, rows) in [
        ("dates", "M", json!(["2024-02-29T12:34:56", "NaT"]), "2024-02-29T12:34:56\r\nNaT\r\n"),
        ("spans", "m", json!([1_709_210_096, "NaT"]), "1709210096\r\nNaT\r\n"),
    ] {
        assert_eq!(ok(&server, path).await.body, steps);
        assert_eq!(ok(&server, &format!("{path}?format=json")).await.json(), json);
        assert_eq!(csv(&server, path).await, rows);
        let (header, elements) = npy(&server, &format!("{path}?format=npy")).await;
        assert_eq!(header, format!("{{'descr': '<{kind}8[s]', 'fortran_order': False, 'shape': (2,), }}"));
        assert_eq!(elements, steps);
    }
    let dates = arrow(&server, "dates?").await.column(0).as_primitive::<TimestampSecondType>().clone();
    assert_eq!(dates.iter().collect::<Vec<_>>(), [Some(1_709_210_096), None]);
    let spans = arrow(&server, "spans?").await;
    assert_eq!(spans.column(0).data_type().to_string(), "Duration(s)");
    assert!(spans.column(0).is_null(1));
}

#[tokio::test]
async fn elements_of_other_types_are_rendered_as_csv_and_arrow() {
    let server = server().await;
    assert_eq!(csv(&server, "complex").await, "1.5-2.0j\r\n");
    assert_eq!(csv(&server, "unicode").await, "\u{e9}\r\n");
    assert_eq!(csv(&server, "raw").await, "0001\r\n02ff\r\n");
    let pair = arrow(&server, "complex?").await.column(0).as_fixed_size_list().value(0);
    assert_eq!(pair.as_primitive::<Float32Type>().values(), &[1.5, -2.0]);
    assert_eq!(arrow(&server, "unicode?").await.column(0).as_string::<i32>().value(0), "\u{e9}");
    assert_eq!(arrow(&server, "raw?").await.column(0).as_fixed_size_binary().value(1), [2, 0xff]);
    let cube = arrow(&server, "cube?slice=...,::-1&").await;
    assert_eq!(
        (cube.num_rows(), cube.schema().metadata()["zarr.shape"].clone()),
        (2, "[2, 2, 2]".to_owned())
    );
    let second = cube.column(0).as_fixed_size_list().value(1);
    assert_eq!(second.as_primitive::<UInt8Type>().values(), &[5, 4, 7, 6]);
}

#[tokio::test]
async fn a_type_that_a_format_cannot_express_is_refused_with_advice() {
    let server = server().await;
    for (url, advice) in [
        ("cube?format=csv", "`slice`"),
        ("arrays?format=npy", "`format=arrow`"),
        ("zero?format=npy", "`format=bytes`"),
    ] {
        let detail = server.get(&format!("/v1/data/m/{url}")).await.refuses(400, "invalid-request", url);
        assert!(detail.contains(advice), "{url}: {detail}");
    }
    ok(&server, "cube?format=csv&slice=0").await;
}

#[tokio::test]
async fn head_has_the_headers_of_get() {
    let server = server().await;
    for path in ["struct", "struct?fields=a,s", "texts", "dates", "bytes"] {
        for format in ["bytes", "npy", "json", "csv", "arrow"] {
            let mark = if path.contains('?') { '&' } else { '?' };
            let url = format!("/v1/data/m/{path}{mark}format={format}");
            let (get, head) = (server.get(&url).await, server.ask(Method::HEAD, &url, &[]).await);
            assert_eq!((get.status, head.status), (StatusCode::OK, StatusCode::OK), "{url}");
            assert!(head.body.is_empty(), "{url}");
            for name in [
                "content-type",
                "content-length",
                "etag",
                "array-shape",
                "array-data-type",
                "accept-ranges",
                "vary",
                "cache-control",
            ] {
                assert_eq!(get.header(name), head.header(name), "{url}: {name}");
            }
            assert_eq!(get.header("content-length"), get.body.len().to_string(), "{url}");
        }
    }
}

#[tokio::test]
async fn a_response_that_grows_over_the_limit_is_refused() {
    let store = memory();
    let text = "\u{1}".repeat(200);
    v3(&store, "long", json!("string"), &[2], json!("vlen-utf8"), vlen(&[text.as_bytes(), b""])).await;
    let mut server = Server::build(Mount::read_only("m", store));
    // Of the text alone there is not too much, written out there is.
    server.http.max_buffered_response_size = 500;
    let server = server.finish();
    for format in ["json", "npy", "arrow"] {
        let answer = server.get(&format!("/v1/data/m/long?format={format}")).await;
        answer.refuses(413, "too-large", format);
    }
    assert_eq!(server.get("/v1/data/m/long?format=bytes").await.status, StatusCode::OK);
    assert_eq!(server.get("/v1/data/m/long?format=json&slice=1").await.status, StatusCode::OK);
}

#[tokio::test]
async fn formats_are_negotiated_by_media_type() {
    let server = server().await;
    for (media_type, chosen) in [
        ("text/csv", "text/csv; charset=utf-8; header=present"),
        ("application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.stream"),
        ("application/json", "application/json"),
        ("application/x-npy", "application/x-npy"),
    ] {
        let answer = server.ask(Method::GET, "/v1/data/m/dates", &[("accept", media_type)]).await;
        assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, chosen));
    }
}

#[tokio::test]
async fn long_type_names_are_shortened_in_headers_and_complete_in_nodes() {
    let store = memory();
    v2(
        &store,
        "names",
        json!([["\u{e9}\u{1f600}", "|u1"], ["\n\u{7f}", "|u1"]]),
        &[1],
        vec![1, 2],
        json!({}),
    )
    .await;
    let wide: Vec<Value> = (0..1000).map(|number| json!([format!("field {number}"), "|u1"])).collect();
    v2(&store, "wide", json!(wide), &[1], vec![7; 1000], json!({})).await;
    let server = Server::of(store);
    let answer = ok(&server, "names").await;
    let name = r"struct{\u00e9\ud83d\ude00: uint8, \u000a\u007f: uint8}";
    assert_eq!(answer.header("array-data-type"), name);
    assert_eq!(ok(&server, "names?fields=%C3%A9%F0%9F%98%80").await.body[..], [1]);
    assert_eq!(ok(&server, "wide").await.header("array-data-type"), "struct");
    let fields =
        &server.get("/v1/nodes/m/wide").await.json()["metadata"]["data_type"]["configuration"]["fields"];
    assert_eq!(fields.as_array().unwrap().len(), 1000);
    assert_eq!(fields[999], json!({ "name": "field 999", "data_type": "uint8" }));
}

#[tokio::test]
async fn rows_without_columns_are_counted() {
    let store = memory();
    put(&store, ".zarray", array_v2_document(&[3, 2, 2])).await;
    let server = Server::of(store);
    for (slice, rows) in [(":,:,5:", 3), (":,5:,:", 3), ("5:,:,:", 0), (":2,:,5:", 2)] {
        let answer = server.get(&format!("/v1/data/m?slice={slice}&format=arrow")).await;
        assert_eq!(answer.status, StatusCode::OK);
        let reader = StreamReader::try_new(&answer.body[..], None).unwrap();
        let found: usize = reader.map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(found, rows, "{slice}");
    }
}

/// A `.zarray` of bytes without chunks.
fn array_v2_document(shape: &[u64]) -> String {
    json!({
        "zarr_format": 2, "shape": shape, "chunks": shape, "dtype": "|u1", "compressor": null, "filters": null,
        "order": "C", "fill_value": 0,
    })
    .to_string()
}

#[test]
fn the_documentation_has_every_format() {
    const BEGIN: &str = "<!-- made by tests/it/formats.rs: UPDATE=1 cargo test --test it formats -->\n";
    const END: &str = "<!-- end -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/http-api/slices.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut table = "\n| format | media type | what it is |\n|---|---|---|\n".to_owned();
    for (at, format) in FORMATS.iter().enumerate() {
        let default = if at == 0 { " (default)" } else { "" };
        writeln!(table, "| `{}`{default} | `{}` | {} |", format.name, format.media_type, format.description)
            .unwrap();
    }
    table.push('\n');
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(written, table, "UPDATE=1 rewrites the table");
    }
}
