//! The tables of `docs/src/support.md`: which data types and codecs are read and written in which version of the format.
//!
//! Every mark is verified here: a document with the type or codec is opened, a chunk is encoded by it, and the
//! server's response is compared. Fixtures and real clients check the exact bytes.

use std::path::Path;

use axum::http::StatusCode;
use serde_json::{Value, json};
use zarrd::chunk::{ChunkKeyEncoding, Elements, VarSlice};
use zarrd::codec::{CodecChain, CodecLimits, v2_codec};
use zarrd::metadata::v3::V3Node;
use zarrd::metadata::{ArrayMetadata, DataType, MetadataLimits, SmallFloat, v1, v2, v3};

use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

/// A line of a table, for each version what is special about a document that has it, or a list of such; `Null` if there
/// is none.
struct Row {
    name: &'static str,
    v1: Value,
    v2: Value,
    v3: Value,
    /// The text that a refusal must contain, for deliberately unsupported features.
    refused: Option<&'static str>,
}

fn row(name: &'static str, v1: Value, v2: Value, v3: Value) -> Row {
    Row { name, v1, v2, v3, refused: None }
}

/// Types of a fixed size, each by what v3 calls it and the type string that older versions have for it, if any.
fn plain(name: &'static str, types: &[(Value, &str)]) -> Row {
    let bytes = configured("bytes", json!({"endian": "little"}));
    let v3 = types.iter().map(|(data_type, _)| json!({"data_type": data_type, "codecs": [bytes]})).collect();
    let old: Vec<Value> = types
        .iter()
        .filter(|(_, typestr)| !typestr.is_empty())
        .map(|(_, typestr)| json!({"dtype": typestr}))
        .collect();
    let old = if old.is_empty() { Value::Null } else { Value::Array(old) };
    row(name, old.clone(), old, v3)
}

fn merged(mut one: Value, other: &Value) -> Value {
    for (name, value) in other.as_object().unwrap() {
        one[name] = value.clone();
    }
    one
}

fn configured(name: &str, configuration: Value) -> Value {
    let mut object = json!({"name": name});
    object["configuration"] = configuration;
    object
}

fn data_types() -> Vec<Row> {
    let seconds = json!({"unit": "s", "scale_factor": 1});
    let length = json!({"length_bytes": 8});
    let fields = json!({"fields": [
        {"name": "a", "data_type": "int16"},
        {"name": "b", "data_type": configured("struct", json!({"fields": [{"name": "x", "data_type": "float32"}]}))},
    ]});
    let subarray = json!({"dtype": [["a", ">i2"], ["b", [["x", "<f4", [2, 2]]]]]});
    let object = |filter: Value| json!({"dtype": "|O", "filters": [filter]});
    let vlen = |data_type: &str, codec: &str| json!({"data_type": data_type, "codecs": [codec]});
    let named = |names: &[(&str, &'static str)]| -> Vec<(Value, &'static str)> {
        names.iter().map(|(name, typestr)| (json!(name), *typestr)).collect()
    };
    let small = SmallFloat::all().map(|float| (json!(float.name()), float.name())).collect::<Vec<_>>();
    let complex = SmallFloat::all().map(|float| (json!(format!("complex_{}", float.name())), ""));
    let complex =
        [(json!("complex_float16"), ""), (json!("complex_bfloat16"), "")].into_iter().chain(complex);
    let ints = [("int8", "|i1"), ("int16", "<i2"), ("int32", ">i4"), ("int64", "<i8")];
    let uints = [("uint8", "|u1"), ("uint16", "<u2"), ("uint32", ">u4"), ("uint64", "<u8")];
    let floats = [("float16", "<f2"), ("float32", ">f4"), ("float64", "<f8")];
    let mut rows = vec![
        plain("bool", &named(&[("bool", "|b1")])),
        plain("int8, int16, int32, int64", &named(&ints)),
        plain("uint8, uint16, uint32, uint64", &named(&uints)),
        plain(
            "int2, int4, uint2, uint4",
            &named(&[("int2", "int2"), ("int4", "int4"), ("uint2", "uint2"), ("uint4", "uint4")]),
        ),
        plain("float16, float32, float64", &named(&floats)),
        plain("bfloat16", &named(&[("bfloat16", "bfloat16")])),
        plain("the eight float8 types, the two float6 types, float4_e2m1fn", &small),
        plain("complex64, complex128", &named(&[("complex64", "<c8"), ("complex128", ">c16")])),
        plain("complex numbers of the smaller floats", &complex.collect::<Vec<_>>()),
        plain(
            "datetime64, any unit and step",
            &[(configured("numpy.datetime64", seconds.clone()), "<M8[25s]")],
        ),
        plain("timedelta64, any unit and step", &[(configured("numpy.timedelta64", seconds), ">m8[s]")]),
        plain(
            "raw bits, raw bytes (`V`, `r<bits>`)",
            &[(json!("r24"), "|V3"), (configured("raw_bytes", length.clone()), "|V8")],
        ),
        plain("text of bytes (`S`)", &[(configured("null_terminated_bytes", length.clone()), "|S8")]),
        plain("text of characters (`U`)", &[(configured("fixed_length_utf32", length), "<U2")]),
    ];
    rows.extend([
        row("string", Value::Null, object(json!({"id": "vlen-utf8"})), vlen("string", "vlen-utf8")),
        row("bytes", Value::Null, object(json!({"id": "vlen-bytes"})), vlen("bytes", "vlen-bytes")),
        row(
            "arrays of any length",
            Value::Null,
            object(json!({"id": "vlen-array", "dtype": "<i2"})),
            Value::Null,
        ),
        row("JSON values", Value::Null, object(json!({"id": "json2"})), Value::Null),
        Row {
            v3: json!({"data_type": configured("struct", fields), "codecs": ["bytes"]}),
            ..row("struct, nested", subarray.clone(), subarray.clone(), Value::Null)
        },
        row("struct with subarrays", subarray.clone(), subarray, Value::Null),
        Row {
            refused: Some("pickle"),
            ..row("pickled objects", Value::Null, object(json!({"id": "pickle"})), Value::Null)
        },
    ]);
    rows
}

/// A codec on bytes that v2 has as filter or compressor and v3 under a name of its own.
fn on_bytes(name: &'static str, v1: bool, v2: bool, v3: &Value) -> Row {
    let id = name.split(' ').next().unwrap();
    let v1 = if v1 { json!({"compression": id}) } else { Value::Null };
    let v2 = if v2 { json!({"compressor": {"id": id}}) } else { Value::Null };
    row(name, v1, v2, json!({"codecs": ["bytes", v3]}))
}

/// A filter on elements of v2, which v3 has under a name of its own.
fn filter(name: &'static str, dtype: &str, configuration: Value) -> Row {
    let mut v2 = configuration.clone();
    v2["id"] = json!(name);
    let data_type = DataType::from_typestr(dtype).unwrap().0.to_metadata();
    let little = configured("bytes", json!({"endian": "little"}));
    let codec = configured(&format!("numcodecs.{name}"), configuration);
    let v3 = json!({"data_type": data_type, "codecs": [codec, little]});
    row(name, Value::Null, json!({"dtype": dtype, "filters": [v2]}), v3)
}

fn v3_only(name: &'static str, v3: Value) -> Row {
    row(name, Value::Null, Value::Null, v3)
}

/// The codec that numcodecs has under this name, without options.
fn numcodecs(id: &str) -> Value {
    configured(&format!("numcodecs.{id}"), json!({}))
}

fn bytes_in(endian: &str) -> Value {
    configured("bytes", json!({"endian": endian}))
}

/// Array-to-bytes codecs.
fn codecs_from_elements_to_bytes() -> Vec<Row> {
    let object = |filter: Value| json!({"dtype": "|O", "filters": [filter]});
    let shards = json!({
        "chunk_shape": [1], "codecs": ["bytes"], "index_codecs": [bytes_in("little"), "crc32c"],
    });
    let n5 = json!({"codecs": [configured("transpose", json!({"order": [0]})), bytes_in("big")]});
    vec![
        row(
            "bytes, either order",
            json!({"dtype": ">i2"}),
            json!({"dtype": ">i2"}),
            json!({"data_type": "int16", "codecs": [bytes_in("big")]}),
        ),
        v3_only("sharding_indexed", json!({"codecs": [configured("sharding_indexed", shards)]})),
        row(
            "vlen-utf8",
            Value::Null,
            object(json!({"id": "vlen-utf8"})),
            json!({"data_type": "string", "codecs": ["vlen-utf8"]}),
        ),
        row(
            "vlen-bytes",
            Value::Null,
            object(json!({"id": "vlen-bytes"})),
            json!({"data_type": "bytes", "codecs": ["vlen-bytes"]}),
        ),
        row("vlen-array", Value::Null, object(json!({"id": "vlen-array", "dtype": "<i2"})), Value::Null),
        row(
            "json2",
            Value::Null,
            object(json!({"id": "json2"})),
            json!({"data_type": "string", "codecs": [numcodecs("json2")]}),
        ),
        v3_only("packbits (Zarr's)", json!({"data_type": "int4", "codecs": ["packbits"]})),
        v3_only("n5_default", json!({"data_type": "int16", "codecs": [configured("n5_default", n5)]})),
        row(
            "pcodec",
            Value::Null,
            json!({"dtype": "<i4", "compressor": {"id": "pcodec"}}),
            json!({"data_type": "int32", "codecs": [numcodecs("pcodec")]}),
        ),
        row(
            "zfpy",
            Value::Null,
            json!({"dtype": "<f4", "compressor": {"id": "zfpy"}}),
            json!({"data_type": "float32", "codecs": [numcodecs("zfpy")]}),
        ),
        v3_only(
            "zfp",
            json!({
                "data_type": "float32", "codecs": [configured("zfp", json!({"mode": "reversible"}))],
            }),
        ),
    ]
}

/// Array-to-array codecs.
fn codecs_on_elements() -> Vec<Row> {
    let before = |name: &'static str, codec: Value| {
        v3_only(name, json!({"data_type": "int16", "codecs": [codec, bytes_in("little")]}))
    };
    let fortran = json!({"order": "F", "shape": [2, 1], "chunks": [2, 1]});
    let transposed = json!({
        "shape": [2, 1], "chunk_grid": configured("regular", json!({"chunk_shape": [2, 1]})),
        "codecs": [configured("transpose", json!({"order": [1, 0]})), "bytes"],
    });
    let labels = json!({"labels": ["\u{1}"], "dtype": "<U1", "astype": "|u1"});
    vec![
        row("transpose (order F)", fortran.clone(), fortran, transposed),
        filter("astype", "<i4", json!({"encode_dtype": "<i2", "decode_dtype": "<i4"})),
        filter("bitround", "<f4", json!({"keepbits": 9})),
        Row { v3: Value::Null, ..filter("categorize", "<U1", labels) },
        filter("delta", "<i4", json!({"dtype": "<i4"})),
        filter("fixedscaleoffset", "<f8", json!({"offset": 0, "scale": 1, "dtype": "<f8"})),
        filter("packbits", "|b1", json!({})),
        filter("quantize", "<f4", json!({"digits": 3, "dtype": "<f4"})),
        before("cast_value", configured("cast_value", json!({"data_type": "int8"}))),
        before("reshape", configured("reshape", json!({"shape": [1, 2]}))),
        before("scale_offset", configured("scale_offset", json!({"offset": 1, "scale": 2}))),
    ]
}

/// Bytes-to-bytes codecs.
fn codecs_on_bytes() -> Vec<Row> {
    let shuffle = json!({"elementsize": 2});
    let conditional = json!({"codecs": ["crc32c"], "header_bits": 8});
    vec![
        on_bytes("blosc", true, true, &json!("blosc")),
        on_bytes("bz2", true, true, &numcodecs("bz2")),
        on_bytes("gzip", true, true, &json!("gzip")),
        on_bytes("lz4", true, true, &numcodecs("lz4")),
        on_bytes("lzma", true, true, &numcodecs("lzma")),
        on_bytes("zlib", true, true, &numcodecs("zlib")),
        on_bytes("zstd", true, true, &json!("zstd")),
        row(
            "shuffle",
            Value::Null,
            json!({"filters": [{"id": "shuffle", "elementsize": 2}]}),
            json!({"codecs": ["bytes", configured("numcodecs.shuffle", shuffle)]}),
        ),
        on_bytes("base64", false, true, &numcodecs("base64")),
        on_bytes("conditional", false, false, &configured("conditional", conditional)),
        on_bytes("adler32", false, true, &numcodecs("adler32")),
        on_bytes("crc32", false, true, &numcodecs("crc32")),
        on_bytes("crc32c", false, true, &json!("crc32c")),
        on_bytes("fletcher32", false, true, &numcodecs("fletcher32")),
        on_bytes("jenkins_lookup3", false, true, &numcodecs("jenkins_lookup3")),
    ]
}

/// Reading these would run code of the document, or require guesses.
fn refused_codecs() -> Vec<Row> {
    let refused = |name: &'static str| Row {
        refused: Some(name),
        ..row(name, Value::Null, json!({"dtype": "|O", "filters": [{"id": name}]}), Value::Null)
    };
    vec![refused("msgpack2"), refused("pickle")]
}

fn codecs() -> Vec<Row> {
    [codecs_from_elements_to_bytes(), codecs_on_elements(), codecs_on_bytes(), refused_codecs()]
        .into_iter()
        .flatten()
        .collect()
}

/// A version of the format.
struct Version {
    /// The name of the document.
    name: &'static str,
    /// A document of two elements in one chunk, to which a row's members are added.
    document: Value,
    parse: fn(&[u8]) -> ArrayMetadata,
    /// Whether elements are encoded as well: v1 is not written any more.
    written: bool,
}

fn versions() -> [Version; 3] {
    let old = json!({"shape": [2], "chunks": [2], "dtype": "|u1", "fill_value": null, "order": "C"});
    let v1 = json!({"zarr_format": 1, "compression": null, "compression_opts": null});
    let v2 = json!({"zarr_format": 2, "compressor": null, "filters": null});
    [
        Version {
            name: "meta",
            document: merged(old.clone(), &v1),
            parse: |document| {
                v1::parse_array(document, Some(b"{}"), v2_codec, &limits_of()).unwrap().unwrap()
            },
            written: false,
        },
        Version {
            name: ".zarray",
            document: merged(old, &v2),
            parse: |document| v2::parse_array(document, None, v2_codec, &limits_of()).unwrap(),
            written: true,
        },
        Version {
            name: "zarr.json",
            document: json!({
                "zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "uint8", "fill_value": null,
                "chunk_grid": configured("regular", json!({"chunk_shape": [2]})),
                "chunk_key_encoding": "default", "codecs": ["bytes"],
            }),
            parse: |document| match v3::parse(document, &limits_of()).unwrap() {
                V3Node::Array(array) => array,
                V3Node::Group(_) => panic!("a group"),
            },
            written: true,
        },
    ]
}

fn limits_of() -> MetadataLimits {
    MetadataLimits::default()
}

/// Two elements that every type has: of a fixed size, a one, then a zero.
fn elements(data_type: &DataType) -> (Elements, Vec<u8>) {
    let texts: [&[u8]; 2] = match data_type {
        DataType::Json => [b"1", br#"["a"]"#],
        variable if variable.is_variable() => [b"ab", b""],
        fixed => {
            let mut items = vec![0; 2 * fixed.element_bytes()];
            match fixed {
                // A number that rounding codecs keep.
                DataType::Float32 => items[..4].copy_from_slice(&1_f32.to_le_bytes()),
                DataType::Float64 => items[..8].copy_from_slice(&1_f64.to_le_bytes()),
                _ => items[0] = 1,
            }
            return (Elements::fixed(items.clone().into()), items);
        }
    };
    let heap = texts.concat();
    let first = u32::try_from(texts[0].len()).unwrap();
    let spans = [
        VarSlice { offset: 0, length: first },
        VarSlice { offset: first, length: u32::try_from(texts[1].len()).unwrap() },
    ];
    let items: Vec<u8> = spans.iter().flat_map(|span| span.to_item()).collect();
    let packed =
        texts.iter().flat_map(|text| [&u32::try_from(text.len()).unwrap().to_le_bytes(), *text].concat());
    (Elements::variable(items.into(), heap.into()), packed.collect())
}

/// The mark of a row in a version: the operations that were verified.
async fn mark(row: &Row, version: &Version, members: &Value) -> &'static str {
    if members.is_null() {
        return "–";
    }
    let store = memory();
    let server = Server::of(store.clone());
    let number = &version.document["zarr_format"];
    let what = format!("{} in v{number}", row.name);
    let document = merged(version.document.clone(), members).to_string();
    put(&store, &format!("a/{}", version.name), document.clone()).await;
    put(&store, "a/attrs", "{}").await;
    if let Some(named) = row.refused {
        let detail = server.get("/v1/data/m/a").await.refuses(501, "unsupported", &what);
        assert!(detail.contains(named), "{what}: {detail}");
        return "no";
    }
    let array = (version.parse)(document.as_bytes());
    let limits = CodecLimits::default();
    let chain = CodecChain::bind(&array.codecs, &array.data_type, &array.shape, &array.fill_value, &limits);
    let chain = chain.unwrap_or_else(|error| panic!("{what}: {error}"));
    let (elements, expected) = elements(&array.data_type);
    let encoded = chain.encode(elements).unwrap_or_else(|error| panic!("{what}: {error}"));
    let chunk = ChunkKeyEncoding::new(array.chunk_key_encoding).encode(&vec![0; array.shape.len()]);
    put(&store, &format!("a/{chunk}"), encoded.to_vec()).await;
    let answer = server.get("/v1/data/m/a?format=bytes").await;
    assert_eq!(
        (answer.status, &answer.body[..]),
        (StatusCode::OK, &expected[..]),
        "{what}: {:?}",
        answer.body
    );
    if version.written { "read, encode" } else { "read" }
}

async fn table(title: &str, rows: Vec<Row>) -> String {
    let mut lines = vec![format!("| {title} | v1 | v2 | v3 |"), "|---|---|---|---|".to_owned()];
    for row in rows {
        let mut marks = Vec::new();
        for (version, members) in versions().iter().zip([&row.v1, &row.v2, &row.v3]) {
            let all = members.as_array().map_or(std::slice::from_ref(members), Vec::as_slice);
            let mut seen = Vec::new();
            for members in all {
                seen.push(mark(&row, version, members).await);
            }
            assert!(seen.iter().all(|mark| mark == &seen[0]), "{}", row.name);
            marks.push(seen[0]);
        }
        lines.push(format!("| {} | {} |", row.name, marks.join(" | ")));
    }
    lines.join("\n") + "\n"
}

#[tokio::test]
async fn the_support_tables_match_the_code() {
    const BEGIN: &str = "<!-- made by tests/it/supported.rs: UPDATE=1 cargo test --test it supported -->\n";
    const END: &str = "<!-- end -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/support.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let tables =
        format!("\n{}\n{}\n", table("data type", data_types()).await, table("codec", codecs()).await);
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{tables}{END}{after}")).unwrap();
    } else {
        assert_eq!(written, tables, "UPDATE=1 rewrites the tables");
    }
}
