//! What `format=arrow` returns can be written back, for each type; and no stream makes the server fail or write what it must not.

use serde_json::{Value, json};
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::hierarchy::{memory, noise};
use crate::support::server::{Answer, Server, contents, put};

const ARROW: &str = "application/vnd.apache.arrow.stream";
const SHAPES: [&[u64]; 7] = [&[6], &[5, 2], &[2, 3, 2], &[], &[0], &[2, 0], &[3, 1]];

fn server(store: &SharedStore) -> Server {
    Server::build(Mount { writable: true, ..Mount::read_only("m", store.clone()) }).finish()
}

impl Server {
    async fn put_body(&self, path: &str, media_type: &str, body: impl Into<axum::body::Body>) -> Answer {
        self.request("PUT", &format!("/v1/data/m/{path}"), &[("content-type", media_type)], body).await
    }

    async fn as_arrow(&self, path: &str) -> Answer {
        let read = self.get(&format!("/v1/data/m/{path}?format=arrow")).await;
        assert_eq!(read.status, 200, "{path}: {read:?}");
        read
    }
}

#[test]
fn the_api_document_names_the_formats_that_bodies_may_have() {
    let document: Value = serde_json::from_str(&zarrd::web::openapi()).unwrap();
    let format = |path: &str, method: &str| {
        let parameters = document["paths"][path][method]["parameters"].as_array().unwrap();
        let format = parameters.iter().find(|parameter| parameter["name"] == "format").unwrap();
        format["description"].as_str().unwrap().to_owned()
    };
    for path in ["/v1/data/{mount}/{path}", "/v1/data/{mount}", "/v1/chunk/{mount}/{path}"] {
        let put = format(path, "put");
        assert!(put.contains("`json` or, except of an append, `arrow`") && put.contains("415"), "{put}");
        assert!(!put.contains("default") && !put.contains("csv"), "{put}");
    }
    let post = format("/v1/data/{mount}", "post");
    let (append, read) = post.split_once("Without `append`, the format of the response:").unwrap();
    assert!(append.contains("415") && !append.contains("csv"), "{post}");
    assert!(read.contains("- `bytes` (default)") && read.contains("- `csv`"), "{post}");
}

/// A document of v3.
fn v3(data_type: &Value, shape: &[u64], fill_value: &Value) -> (&'static str, Value) {
    let chunks: Vec<u64> = shape.iter().map(|length| (*length).clamp(1, 2)).collect();
    let serializer = match data_type.as_str() {
        Some("string") => json!({"name": "vlen-utf8"}),
        Some("variable_length_bytes") => json!({"name": "vlen-bytes"}),
        _ => json!({"name": "bytes", "configuration": {"endian": "little"}}),
    };
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": fill_value,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [serializer],
    });
    ("zarr.json", document)
}

/// A document of v2.
fn v2(dtype: &Value, shape: &[u64], filters: &Value) -> (&'static str, Value) {
    let chunks: Vec<u64> = shape.iter().map(|length| (*length).clamp(1, 2)).collect();
    let document = json!({
        "zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype, "compressor": null, "fill_value": null,
        "filters": filters, "order": "C",
    });
    (".zarray", document)
}

fn step(name: &str, unit: &str, scale_factor: u32) -> Value {
    json!({"name": name, "configuration": {"unit": unit, "scale_factor": scale_factor}})
}

/// Elements as `format=bytes` has them: the bytes of each, from random ones.
type Make = fn(&mut dyn Iterator<Item = u8>) -> Vec<u8>;

fn any<const N: usize>(noise: &mut dyn Iterator<Item = u8>) -> Vec<u8> {
    noise.take(N).collect()
}

fn bits<const N: usize, const MASK: u8>(noise: &mut dyn Iterator<Item = u8>) -> Vec<u8> {
    noise.take(N).map(|byte| byte & MASK).collect()
}

/// Signed numbers of so few bits.
fn signed<const BITS: u32>(noise: &mut dyn Iterator<Item = u8>) -> Vec<u8> {
    noise.take(1).map(|byte| ((byte << (8 - BITS)).cast_signed() >> (8 - BITS)).cast_unsigned()).collect()
}

/// A number of steps, or `NaT`.
fn time(noise: &mut dyn Iterator<Item = u8>) -> Vec<u8> {
    let [first, second]: [u8; 2] = [noise.next().unwrap(), noise.next().unwrap()];
    let steps = if first < 64 { i64::MIN } else { i64::from(second) * 1000 - 99_000 };
    steps.to_le_bytes().to_vec()
}

/// A number of `bfloat16` and of both halves of a complex one: not NaN, of which there are many.
fn bfloat<const N: usize>(noise: &mut dyn Iterator<Item = u8>) -> Vec<u8> {
    (0..N).flat_map(|_| [noise.next().unwrap(), noise.next().unwrap() & 0x3f]).collect()
}

fn utf32(noise: &mut dyn Iterator<Item = u8>) -> Vec<u8> {
    let length = usize::from(noise.next().unwrap() % 4);
    let letters =
        noise.take(length).map(|byte| u32::from(['a', 'é', '\u{1f30d}', '0'][usize::from(byte % 4)]));
    let mut bytes: Vec<u8> = letters.flat_map(u32::to_le_bytes).collect();
    bytes.resize(12, 0);
    bytes
}

fn text(noise: &mut dyn Iterator<Item = u8>) -> Vec<u8> {
    let length = usize::from(noise.next().unwrap() % 5);
    let text: String =
        noise.take(length).map(|byte| ['a', 'é', '\u{1f30d}', '0'][usize::from(byte % 4)]).collect();
    [&u32::try_from(text.len()).unwrap().to_le_bytes()[..], text.as_bytes()].concat()
}

fn binary(noise: &mut dyn Iterator<Item = u8>) -> Vec<u8> {
    let length = noise.next().unwrap() % 5;
    [vec![length, 0, 0, 0], noise.take(length.into()).collect()].concat()
}

fn lists(noise: &mut dyn Iterator<Item = u8>) -> Vec<u8> {
    let length = noise.next().unwrap() % 4;
    [vec![length * 2, 0, 0, 0], noise.take(usize::from(length) * 2).collect()].concat()
}

fn json_text(noise: &mut dyn Iterator<Item = u8>) -> Vec<u8> {
    let text = format!("[{},\"é\"]", noise.next().unwrap());
    [&u32::try_from(text.len()).unwrap().to_le_bytes()[..], text.as_bytes()].concat()
}

fn record(noise: &mut dyn Iterator<Item = u8>) -> Vec<u8> {
    [any::<2>(noise), bits::<1, 1>(noise), time(noise)].concat()
}

/// Each type that a response has: its name, its document, and elements.
fn types(shape: &[u64]) -> Vec<(String, (&'static str, Value), Make)> {
    let zero = json!(0);
    let numbers: [(&str, Make); 24] = [
        ("int2", signed::<2>),
        ("int4", signed::<4>),
        ("int8", any::<1>),
        ("int16", any::<2>),
        ("int32", any::<4>),
        ("int64", any::<8>),
        ("uint2", bits::<1, 3>),
        ("uint4", bits::<1, 15>),
        ("uint8", any::<1>),
        ("uint16", any::<2>),
        ("uint32", any::<4>),
        ("uint64", any::<8>),
        ("float16", any::<2>),
        ("float32", any::<4>),
        ("float64", any::<8>),
        ("bfloat16", bfloat::<1>),
        ("float8_e4m3", bits::<1, 0x5f>),
        ("float8_e5m2", bits::<1, 0x5f>),
        ("float8_e8m0fnu", bits::<1, 0x7f>),
        ("float6_e3m2fn", bits::<1, 0x3f>),
        ("float4_e2m1fn", bits::<1, 0x0f>),
        ("r8", any::<1>),
        ("r24", any::<3>),
        ("bool", bits::<1, 1>),
    ];
    let mut types: Vec<(String, (&'static str, Value), Make)> = Vec::new();
    let mut add = |name: &str, data_type: Value, fill: Value, make: Make| {
        types.push((name.to_owned(), v3(&data_type, shape, &fill), make));
    };
    for (name, make) in numbers {
        let fill = match name {
            "bool" => json!(false),
            "r8" => json!([0]),
            "r24" => json!([0, 0, 0]),
            "float8_e8m0fnu" => json!(1.0),
            _ => zero.clone(),
        };
        add(name, json!(name), fill, make);
    }
    add("complex64", json!("complex64"), json!([0, 0]), any::<8>);
    add("complex128", json!("complex128"), json!([0, 0]), any::<16>);
    add("complex_bfloat16", json!("complex_bfloat16"), json!([0, 0]), bfloat::<2>);
    for (unit, scale) in [("s", 1), ("ms", 1), ("us", 1), ("ns", 1), ("D", 1), ("h", 1), ("s", 10)] {
        add(&format!("datetime64 {scale} {unit}"), step("numpy.datetime64", unit, scale), json!("NaT"), time);
        add(
            &format!("timedelta64 {scale} {unit}"),
            step("numpy.timedelta64", unit, scale),
            json!("NaT"),
            time,
        );
    }
    let sized = |name: &str, bytes: u32| json!({"name": name, "configuration": {"length_bytes": bytes}});
    add("fixed_length_utf32", sized("fixed_length_utf32", 12), json!(""), utf32);
    add("null_terminated_bytes", sized("null_terminated_bytes", 3), json!(""), any::<3>);
    add("string", json!("string"), json!(""), text);
    add("bytes", json!("variable_length_bytes"), json!(""), binary);
    let seconds = step("numpy.datetime64", "s", 1);
    let fields = json!([
        {"name": "a", "data_type": "int16"}, {"name": "b", "data_type": "bool"}, {"name": "t", "data_type": seconds},
    ]);
    let structure = json!({"name": "struct", "configuration": {"fields": fields}});
    add("struct", structure, json!("AAAAAAAAAAAAAAA="), record);
    let nested = json!([["p", [["x", "<i2"], ["s", "|S2"]]], ["q", "|u1", [2, 2]], ["b", "|b1"]]);
    let nested_make: Make = |noise| [any::<8>(noise), bits::<1, 1>(noise)].concat();
    types.push(("struct of v2".to_owned(), v2(&nested, shape, &Value::Null), nested_make));
    let object = json!("|O");
    types.push((
        "vlen-array".to_owned(),
        v2(&object, shape, &json!([{"id": "vlen-array", "dtype": "<i2"}])),
        lists,
    ));
    types.push(("json2".to_owned(), v2(&object, shape, &json!([{"id": "json2"}])), json_text));
    types
}

#[tokio::test]
async fn what_a_response_has_can_be_written_back_for_each_type() {
    for shape in SHAPES {
        let store = memory();
        let server = server(&store);
        for (number, (name, (document, contents), make)) in types(shape).into_iter().enumerate() {
            let what = format!("{name} {shape:?}");
            for copy in ["from", "to"] {
                put(&store, &format!("{copy}{number}/{document}"), contents.to_string()).await;
            }
            let mut noise = noise(number as u64);
            let count: u64 = shape.iter().product();
            let elements: Vec<u8> = (0..count).flat_map(|_| make(&mut noise)).collect();
            let from = format!("from{number}");
            let written = server.put_body(&from, "application/octet-stream", elements.clone()).await;
            assert_eq!(written.status, 204, "{what}: {written:?}");
            let read = server.as_arrow(&from).await;
            let to = format!("to{number}");
            let written = server.put_body(&to, ARROW, read.body.clone()).await;
            assert_eq!(written.status, 204, "{what}: {written:?}");
            for format in ["bytes", "arrow"] {
                let [one, other] = [&from, &to].map(|path| format!("/v1/data/m/{path}?format={format}"));
                assert_eq!(server.get(&other).await.body, server.get(&one).await.body, "{what} as {format}");
            }
            // A part of it, named by the parameter.
            if let [rows, ..] = shape
                && *rows > 1
            {
                let part = server.get(&format!("/v1/data/m/{from}?slice=1:2&format=arrow")).await;
                let again = server.put_body(&format!("{to}?slice=1:2&format=arrow"), "", part.body).await;
                assert_eq!(again.status, 204, "{what}: {again:?}");
            }
        }
        assert_eq!(server.in_flight_bytes(), 0);
    }
}

#[tokio::test]
async fn a_stream_of_another_type_or_shape_is_refused_with_both() {
    let store = memory();
    let server = server(&store);
    for (name, data_type, shape) in [
        ("a", json!("int16"), vec![4, 2]),
        ("shorter", json!("int16"), vec![3, 2]),
        ("longer", json!("int16"), vec![5, 2]),
        ("wider", json!("int16"), vec![4, 3]),
        ("flat", json!("int16"), vec![8]),
        ("unsigned", json!("uint16"), vec![4, 2]),
        ("text", json!("string"), vec![4, 2]),
        ("days", step("numpy.datetime64", "s", 1), vec![4, 2]),
    ] {
        let fill = if name == "text" {
            json!("")
        } else if name == "days" {
            json!("NaT")
        } else {
            json!(0)
        };
        let (document, contents) = v3(&data_type, &shape, &fill);
        put(&store, &format!("{name}/{document}"), contents.to_string()).await;
    }
    let before = contents(&store).await;
    for (other, code) in [
        ("shorter", "shape-mismatch"),
        ("longer", "shape-mismatch"),
        ("wider", "shape-mismatch"),
        ("flat", "shape-mismatch"),
        ("unsigned", "data-type-mismatch"),
        ("text", "data-type-mismatch"),
        ("days", "data-type-mismatch"),
    ] {
        let stream = server.as_arrow(other).await.body;
        let refused = server.put_body("a", ARROW, stream).await;
        refused.is_problem(400, code, other);
        assert_eq!(refused.json()["written"], false, "{other}");
    }
    let stream = server.as_arrow("a").await.body;
    let appended = server.request("POST", "/v1/data/m/a?append=0", &[("content-type", ARROW)], stream).await;
    appended.is_problem(400, "invalid-request", "append");
    assert_eq!(contents(&store).await, before);
}

#[tokio::test]
async fn no_damaged_stream_makes_the_server_fail_or_writes_a_part() {
    let store = memory();
    let server = server(&store);
    let shape = &[5, 2];
    let chosen = [
        "int32",
        "bool",
        "string",
        "struct of v2",
        "vlen-array",
        "datetime64 1 s",
        "fixed_length_utf32",
        "complex64",
    ];
    for (name, (document, contents_of), make) in
        types(shape).into_iter().filter(|(name, ..)| chosen.contains(&&**name))
    {
        put(&store, &format!("a/{document}"), contents_of.to_string()).await;
        let mut noise = noise(7);
        let elements: Vec<u8> = (0..10).flat_map(|_| make(&mut noise)).collect();
        assert_eq!(server.put_body("a", "application/octet-stream", elements).await.status, 204, "{name}");
        let stream = server.as_arrow("a").await.body;
        let mut damaged: Vec<Vec<u8>> =
            (0..stream.len()).step_by(41).map(|end| stream[..end].to_vec()).collect();
        for at in (0..stream.len().saturating_sub(8)).step_by(12) {
            for forged in [&[0xff_u8; 8][..], &[0xff, 0xff, 0xff, 0x7f], &[1, 0, 0, 0]] {
                let mut copy = stream.to_vec();
                copy[at..at + forged.len()].copy_from_slice(forged);
                damaged.push(copy);
            }
        }
        for _ in 0..100 {
            let mut copy = stream.to_vec();
            for _ in 0..3 {
                let [low, high, value]: [u8; 3] =
                    [noise.next().unwrap(), noise.next().unwrap(), noise.next().unwrap()];
                let at = usize::from(u16::from_le_bytes([low, high])) % copy.len();
                copy[at] = value;
            }
            damaged.push(copy);
        }
        damaged.push([&stream[..], b"more"].concat());
        let mut refused = 0;
        for body in damaged {
            let before = contents(&store).await;
            let answer = server.put_body("a", ARROW, body).await;
            if answer.status == 204 {
                continue;
            }
            refused += 1;
            assert!(matches!(answer.status.as_u16(), 400 | 413), "{name}: {answer:?}");
            assert_eq!(answer.json()["written"], false, "{name}: {answer:?}");
            assert_eq!(contents(&store).await, before, "{name}");
        }
        assert!(refused > 100, "{name}: {refused}");
        assert_eq!(server.in_flight_bytes(), 0);
        for key in contents(&store).await.into_keys() {
            crate::support::server::erase(&store, &key).await;
        }
    }
}

#[tokio::test]
async fn a_short_stream_of_long_elements_is_refused_before_it_takes_their_memory() {
    let store = memory();
    let texts = json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 40_000}});
    for (path, length) in [("few", 10), ("many", 1000)] {
        let (name, document) = v3(&texts, &[length], &json!(""));
        put(&store, &format!("{path}/{name}"), document.to_string()).await;
    }
    let server = server(&store);
    let few = server.as_arrow("few").await.body;
    assert_eq!(server.put_body("few", ARROW, few).await.status, 204);
    let many = server.as_arrow("many").await.body;
    assert!(many.len() < 100_000, "the texts are empty");
    let before = contents(&store).await;
    let refused = server.put_body("many", ARROW, many).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["written"]), (413, &json!(false)), "{refused:?}");
    assert_eq!(contents(&store).await, before);
}
