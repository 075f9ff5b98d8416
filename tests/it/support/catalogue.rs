//! Arrays of every type and codec that the library writes, for other readers to judge.

use std::sync::LazyLock;

use serde_json::{Value, json};
use zarrd::metadata::SmallFloat;

use super::encoded::Encoded;

/// The shape of every array, and of its chunks, of which those at the end overhang it. A shard has 2 × 3 × 4 inner
/// chunks, whose edges are all the same: where something is turned before shards, zarr-python wants them to divide a
/// shard as if nothing was.
const SHAPE: [usize; 3] = [7, 8, 9];
const CHUNKS: [usize; 3] = [4, 6, 8];
const INNER: [usize; 3] = [2, 2, 2];

fn codec(name: &str, configuration: &Value) -> Value {
    json!({ "name": name, "configuration": configuration })
}

fn bytes(endian: &str) -> Value {
    codec("bytes", &json!({ "endian": endian }))
}

/// The array-to-bytes codec of the type, in the byte order if it has one.
fn serializer(data_type: &Value, endian: &str) -> Value {
    match data_type.as_str() {
        Some("string") => json!({ "name": "vlen-utf8" }),
        Some("bytes") => json!({ "name": "vlen-bytes" }),
        _ => bytes(endian),
    }
}

fn transpose(order: [usize; 3]) -> Value {
    codec("transpose", &json!({ "order": order }))
}

fn sharded(inner: [usize; 3], codecs: &Value, index_codecs: &Value, location: &str) -> Value {
    let configuration = json!({
        "chunk_shape": inner, "codecs": codecs, "index_codecs": index_codecs, "index_location": location,
    });
    codec("sharding_indexed", &configuration)
}

fn in_v3(name: &str, data_type: &Value, fill_value: &Value, codecs: &Value) -> Encoded {
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": SHAPE, "data_type": data_type,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": CHUNKS } },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "codecs": codecs, "fill_value": fill_value, "attributes": {},
    });
    Encoded::new(name, ("zarr.json", document))
}

fn in_v2(name: &str, dtype: &Value, fill_value: &Value, members: &Value) -> Encoded {
    let mut document = json!({
        "zarr_format": 2, "shape": SHAPE, "chunks": CHUNKS, "dtype": dtype, "fill_value": fill_value,
        "order": "C", "filters": null, "compressor": null, "dimension_separator": ".",
    });
    for (member, value) in members.as_object().unwrap() {
        document[member] = value.clone();
    }
    Encoded::new(name, (".zarray", document))
}

/// Data types of v3, with a fill value of each.
fn data_types() -> Vec<(Value, Value)> {
    let with = |name: &str, configuration: Value| json!({ "name": name, "configuration": configuration });
    let fields = json!([
        { "name": "a", "data_type": "int16" },
        { "name": "b", "data_type": "float64" },
        { "name": "c", "data_type": with("fixed_length_utf32", json!({ "length_bytes": 8 })) },
    ]);
    let mut all = vec![
        (json!("bool"), json!(true)),
        (json!("int2"), json!(-1)),
        (json!("int4"), json!(-5)),
        (json!("int8"), json!(-3)),
        (json!("int16"), json!(-300)),
        (json!("int32"), json!(-70000)),
        (json!("int64"), json!(i64::MIN)),
        (json!("uint2"), json!(2)),
        (json!("uint4"), json!(9)),
        (json!("uint8"), json!(7)),
        (json!("uint16"), json!(513)),
        (json!("uint32"), json!(70000)),
        (json!("uint64"), json!(u64::MAX)),
        (json!("float16"), json!("-Infinity")),
        (json!("bfloat16"), json!("0x3fc0")),
        (json!("float32"), json!("0x7fc00001")),
        (json!("float64"), json!(-0.0)),
        (json!("complex64"), json!([-0.0, "NaN"])),
        (json!("complex128"), json!(["Infinity", "0xfff8000000000123"])),
        (json!("complex_float16"), json!(["0x3e00", "0x8000"])),
        (json!("complex_bfloat16"), json!(["0x3fc0", "0x8000"])),
        (json!("r24"), json!([1, 2, 3])),
        (json!("string"), json!("fill é")),
        (json!("bytes"), json!("/wAB")),
        (with("numpy.datetime64", json!({ "unit": "ms", "scale_factor": 10 })), json!("NaT")),
        (with("numpy.timedelta64", json!({ "unit": "D", "scale_factor": 1 })), json!(-12)),
        (with("fixed_length_utf32", json!({ "length_bytes": 12 })), json!("é漢")),
        (with("null_terminated_bytes", json!({ "length_bytes": 5 })), json!("YWI=")),
        (with("struct", json!({ "fields": fields })), json!("AQACAwQFBgcICWEAAAAAAAAA")),
    ];
    for float in SmallFloat::all() {
        all.push((json!(float.name()), json!("0x05")));
        all.push((json!(format!("complex_{}", float.name())), json!(["0x05", "0x03"])));
    }
    all
}

fn type_name(data_type: &Value) -> &str {
    data_type.as_str().or(data_type["name"].as_str()).unwrap()
}

/// Every type plainly, in shards, and with the elements in another order and the other byte order.
fn every_type() -> Vec<Encoded> {
    let big_index = json!([bytes("big")]);
    let index = json!([bytes("little"), { "name": "crc32c" }]);
    let mut all = Vec::new();
    for (data_type, fill) in data_types() {
        let name = type_name(&data_type);
        let gzip = codec("gzip", &json!({ "level": 1 }));
        let plain = json!([serializer(&data_type, "little"), gzip]);
        let zstd = codec("zstd", &json!({ "level": 3, "checksum": true }));
        let inner = json!([transpose([1, 2, 0]), serializer(&data_type, "big"), zstd, { "name": "crc32c" }]);
        let at_start = sharded(INNER, &inner, &big_index, "start");
        let nested = sharded([1, 2, 4], &json!([serializer(&data_type, "little")]), &index, "end");
        let nested = sharded([2, 6, 4], &json!([nested]), &index, "start");
        for (what, codecs) in [
            ("plain", plain),
            ("turned", json!([transpose([2, 0, 1]), serializer(&data_type, "big")])),
            ("shards", json!([transpose([1, 2, 0]), at_start])),
            ("nested", json!([nested])),
        ] {
            all.push(in_v3(&format!("{name}-{what}"), &data_type, &fill, &codecs));
        }
    }
    all
}

/// `packbits` of v3, for all bits and for some bits only.
fn packed_bits() -> Vec<Encoded> {
    let index = json!([bytes("little")]);
    let mut all = Vec::new();
    for (data_type, fill) in data_types() {
        let name = type_name(&data_type);
        let unpacked = ["r24", "string", "bytes", "struct", "null_terminated_bytes", "fixed_length_utf32"];
        if unpacked.contains(&name) {
            continue;
        }
        for padding in ["none", "first_byte", "last_byte"] {
            let packbits = codec("packbits", &json!({ "padding_encoding": padding }));
            let codecs = json!([transpose([2, 0, 1]), packbits, { "name": "crc32c" }]);
            all.push(in_v3(&format!("{name}-packbits-{padding}"), &data_type, &fill, &codecs));
        }
        let packbits = json!([codec("packbits", &json!({})), codec("gzip", &json!({ "level": 1 }))]);
        let codecs = json!([sharded(INNER, &packbits, &index, "start")]);
        all.push(in_v3(&format!("{name}-packbits-shards"), &data_type, &fill, &codecs));
    }
    for (name, fill, first, last) in [
        ("int4", 1, 0, 2),
        ("uint4", 4, 2, 3),
        ("uint2", 2, 1, 1),
        ("uint8", 8, 3, 6),
        ("int16", -8, 3, 11),
        ("int64", 5, 0, 33),
        ("uint32", 16, 4, 31),
    ] {
        let packbits = codec("packbits", &json!({ "first_bit": first, "last_bit": last }));
        let name = format!("{name}-packbits-{first}-{last}");
        let data_type = json!(name.split('-').next());
        all.push(in_v3(&name, &data_type, &json!(fill), &json!([packbits])).rounded());
    }
    all
}

/// Every codec of v3 except those of [`every_type`], each before and after codecs it combines with.
fn every_codec() -> Vec<Encoded> {
    let mut all = Vec::new();
    let mut behind = vec![
        codec("gzip", &json!({ "level": 0 })),
        codec("gzip", &json!({ "level": 9 })),
        codec("zstd", &json!({ "level": -5, "checksum": false })),
        codec("numcodecs.zstd", &json!({ "level": 22 })),
        codec("numcodecs.gzip", &json!({ "level": 2 })),
        codec("numcodecs.zlib", &json!({ "level": 1 })),
        codec("numcodecs.bz2", &json!({ "level": 1 })),
        codec("numcodecs.lz4", &json!({ "acceleration": 1 })),
        codec("numcodecs.lzma", &json!({ "format": 1, "check": -1, "preset": null, "filters": null })),
        codec("numcodecs.adler32", &json!({ "location": "start" })),
        codec("numcodecs.crc32", &json!({ "location": "end" })),
        codec("numcodecs.crc32c", &json!({ "location": "start" })),
        codec("numcodecs.fletcher32", &json!({})),
        codec("numcodecs.jenkins_lookup3", &json!({ "initval": 5 })),
        codec("numcodecs.shuffle", &json!({ "elementsize": 4 })),
    ];
    for cname in ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"] {
        for shuffle in ["noshuffle", "shuffle", "bitshuffle"] {
            let configuration =
                json!({ "cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": 4, "blocksize": 0 });
            behind.push(codec("blosc", &configuration));
        }
    }
    for (number, codec) in behind.iter().enumerate() {
        let name = format!("{}-{number}", type_name(codec));
        let codecs = json!([bytes("little"), codec]);
        all.push(in_v3(&name, &json!("int32"), &json!(3), &codecs));
        let inner = json!([bytes("big"), codec, { "name": "crc32c" }]);
        let codecs =
            json!([sharded(INNER, &inner, &json!([bytes("big"), { "name": "crc32c" }]), "end"), codec]);
        all.push(in_v3(&format!("{name}-shards"), &json!("float32"), &json!(0.5), &codecs));
    }
    all
}

/// The codecs from arrays to arrays.
fn every_filter() -> Vec<Encoded> {
    let little = |name: &str, data_type: &str, fill: Value, configuration: Value| {
        let codecs = json!([codec(name, &configuration), bytes("little")]);
        in_v3(&format!("{name}-{data_type}"), &json!(data_type), &fill, &codecs).rounded()
    };
    vec![
        little("bitround", "float32", json!(0), json!({ "keepbits": 7 })),
        little("bitround", "float64", json!(1), json!({ "keepbits": 20 })),
        little("numcodecs.bitround", "float16", json!(0), json!({ "keepbits": 3 })),
        little("numcodecs.delta", "int32", json!(0), json!({ "dtype": "<i4", "astype": "<i4" })),
        little("numcodecs.delta", "uint8", json!(0), json!({ "dtype": "|u1", "astype": "|u1" })),
        little(
            "numcodecs.astype",
            "int16",
            json!(0),
            json!({ "encode_dtype": "<i8", "decode_dtype": "<i2" }),
        ),
        little("numcodecs.packbits", "bool", json!(false), json!({})),
        {
            let scaled = json!({ "scale": 2, "offset": 100, "dtype": "<i4", "astype": "<i4" });
            let codecs =
                json!([transpose([2, 0, 1]), codec("numcodecs.fixedscaleoffset", &scaled), bytes("little")]);
            in_v3("numcodecs.fixedscaleoffset-int32", &json!("int32"), &json!(0), &codecs).rounded()
        },
    ]
}

/// Arrays of v2: types, orders, filters, compressors.
fn every_v2() -> Vec<Encoded> {
    let zlib = json!({ "id": "zlib", "level": 1 });
    let plain = json!({ "compressor": zlib });
    let turned = json!({ "compressor": zlib, "order": "F", "dimension_separator": "/" });
    let structure = json!([["a", "<i2"], ["b", ">f8"], ["c", "<U2"]]);
    let mut all = Vec::new();
    for (dtype, fill) in [
        (json!("|b1"), json!(true)),
        (json!("|i1"), json!(-3)),
        (json!("<i2"), json!(null)),
        (json!(">i4"), json!(-70000)),
        (json!("<i8"), json!(5)),
        (json!("|u1"), json!(0)),
        (json!(">u2"), json!(513)),
        (json!("<u8"), json!(u64::MAX)),
        (json!("<f2"), json!("NaN")),
        (json!(">f4"), json!("-Infinity")),
        (json!("<f8"), json!(-0.0)),
        (json!("<c8"), json!([1.5, "NaN"])),
        (json!(">c16"), json!([0.0, 2.0])),
        (json!("|S5"), json!("YWI=")),
        (json!("<U3"), json!("é漢")),
        (json!(">U3"), json!("")),
        (json!("|V3"), json!("AQID")),
        (json!("<M8[ns]"), json!("NaT")),
        (json!(">m8[s]"), json!(-12)),
        (structure, json!("AQAAAAAAAAAAAAAAAAAAAAAA")),
    ] {
        let name = match &dtype {
            Value::String(name) => name.replace(['<', '|'], "").replace('>', "big-").replace(['[', ']'], "-"),
            _ => "struct".to_owned(),
        };
        all.push(in_v2(&format!("v2-{name}-plain"), &dtype, &fill, &plain));
        all.push(in_v2(&format!("v2-{name}-turned"), &dtype, &fill, &turned));
    }
    for id in ["vlen-utf8", "vlen-bytes"] {
        let fill = if id == "vlen-utf8" { json!("é") } else { json!("YWI=") };
        for (what, order) in [("plain", "C"), ("turned", "F")] {
            let members = json!({ "filters": [{ "id": id }], "compressor": zlib, "order": order });
            all.push(in_v2(&format!("v2-{id}-{what}"), &json!("|O"), &fill, &members));
        }
    }
    for (number, compressor) in [
        json!({ "id": "gzip", "level": 1 }),
        json!({ "id": "zstd", "level": 1, "checksum": true }),
        json!({ "id": "bz2", "level": 1 }),
        json!({ "id": "lz4", "acceleration": 1 }),
        json!({ "id": "lzma", "format": 1, "check": -1, "preset": null, "filters": null }),
        json!({ "id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0 }),
        json!({ "id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 2, "blocksize": 0 }),
        json!({ "id": "blosc", "cname": "blosclz", "clevel": 9, "shuffle": -1, "blocksize": 256 }),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("v2-{}-{number}", compressor["id"].as_str().unwrap());
        let members = json!({ "compressor": compressor, "order": if number % 2 == 0 { "C" } else { "F" } });
        all.push(in_v2(&name, &json!("<i4"), &json!(3), &members));
    }
    for (number, (dtype, filter)) in [
        ("<i4", json!({ "id": "delta", "dtype": "<i4", "astype": "<i4" })),
        (">u2", json!({ "id": "delta", "dtype": ">u2", "astype": ">u2" })),
        ("<i2", json!({ "id": "astype", "encode_dtype": "<i8", "decode_dtype": "<i2" })),
        ("|b1", json!({ "id": "packbits" })),
        ("<f4", json!({ "id": "bitround", "keepbits": 5 })),
        (
            "<i4",
            json!({ "id": "fixedscaleoffset", "scale": 2, "offset": 9, "dtype": "<i4", "astype": "<i4" }),
        ),
        ("<i4", json!({ "id": "shuffle", "elementsize": 4 })),
        ("<i4", json!({ "id": "crc32" })),
        ("<i4", json!({ "id": "adler32" })),
        ("<i4", json!({ "id": "fletcher32" })),
        ("<i4", json!({ "id": "jenkins_lookup3", "initval": 1 })),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("v2-{}-{number}", filter["id"].as_str().unwrap());
        let members = json!({ "filters": [filter], "compressor": zlib });
        all.push(in_v2(&name, &json!(dtype), &json!(null), &members).rounded());
    }
    all
}

/// All of them.
pub fn encoded() -> &'static [Encoded] {
    static ALL: LazyLock<Vec<Encoded>> =
        LazyLock::new(|| [every_type(), packed_bits(), every_codec(), every_filter(), every_v2()].concat());
    &ALL
}
