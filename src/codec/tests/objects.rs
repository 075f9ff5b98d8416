//! Variable-length elements and strings in whole chains, and chunks with wrong declarations about them.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Items, bind, codecs, inside, is_corrupt, unhex};
use crate::chunk::{Elements, VarSlice};
use crate::codec::{CodecChain, CodecError, CodecLimits};
use crate::metadata::{DataType, FillValue};

fn elements(texts: &[impl AsRef<[u8]>]) -> Elements {
    let mut heap = Vec::new();
    let mut spans = Vec::new();
    for text in texts.iter().map(AsRef::as_ref) {
        let span =
            VarSlice { offset: heap.len().try_into().unwrap(), length: text.len().try_into().unwrap() };
        spans.extend(span.to_item());
        heap.extend(text);
    }
    Elements::variable(spans.into(), heap.into())
}

fn texts(elements: &Elements) -> Vec<Vec<u8>> {
    elements.variable_elements().map(<[u8]>::to_vec).collect()
}

fn limited(
    list: Value,
    data_type: &DataType,
    shape: &[u64],
    fill: &[u8],
    chunk_bytes: u64,
) -> Result<CodecChain, CodecError> {
    let limits = CodecLimits { chunk_bytes, ..CodecLimits::default() };
    CodecChain::bind(&codecs(list), data_type, shape, &FillValue::from_bytes(fill), &limits)
}

fn shard(chunk_shape: [u64; 2], location: &str, list: &Value) -> Value {
    json!([["sharding_indexed", {
        "chunk_shape": chunk_shape,
        "codecs": inside(list),
        "index_codecs": inside(&json!([["bytes", {"endian": "little"}], ["crc32c", {}]])),
        "index_location": location,
    }]])
}

/// Chains for a chunk of 4 × 6 variable-length elements, around their codec.
fn chains(codec: &str) -> Vec<Value> {
    let plain = json!([[codec, {}]]);
    let turned = json!([["transpose", {"order": [1, 0]}], [codec, {}]]);
    let packed = json!([[codec, {}], ["zstd", {}], ["crc32c", {}]]);
    let mut behind_transpose = shard([3, 2], "start", &turned);
    behind_transpose.as_array_mut().unwrap().insert(0, json!(["transpose", {"order": [1, 0]}]));
    // As many nested shards of unbounded bytes as allowed, and compressors after them.
    let behind = |compressors: Value| {
        let mut list = shard([1, 1], "end", &packed);
        list.as_array_mut().unwrap().extend(compressors.as_array().unwrap().iter().cloned());
        list
    };
    vec![
        behind(json!([["zstd", {}]])),
        behind(json!([["gzip", {}], ["zstd", {}]])),
        behind(json!([["blosc", {}]])),
        behind(json!([["numcodecs.lz4", {}], ["numcodecs.bz2", {}]])),
        plain.clone(),
        turned.clone(),
        packed.clone(),
        shard([2, 3], "end", &packed),
        shard([1, 2], "start", &plain),
        shard([2, 6], "start", &shard([1, 3], "end", &packed)),
        shard([2, 6], "end", &shard([2, 2], "start", &turned)),
        behind_transpose,
    ]
}

/// The variable-length types and their codecs.
fn variable() -> [(DataType, &'static str); 3] {
    [
        (DataType::String, "vlen-utf8"),
        (DataType::VariableBytes, "vlen-bytes"),
        (DataType::VariableArray(Arc::new(DataType::Int16)), "numcodecs.vlen-array"),
    ]
}

fn arb_texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop_oneof![Just(String::new()), Just("fill".to_owned()), ".{0,6}"], 24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_chain_restores_strings(given in arb_texts()) {
        for (data_type, codec) in variable() {
            let given: Vec<Vec<u8>> = match data_type {
                DataType::VariableArray(_) => given.iter().map(|text| text.as_bytes().repeat(2)).collect(),
                _ => given.iter().map(|text| text.clone().into_bytes()).collect(),
            };
            for list in chains(codec) {
                let chain = limited(list.clone(), &data_type, &[4, 6], b"fill", 1 << 20).unwrap();
                let encoded = chain.encode(elements(&given)).unwrap();
                prop_assert!(encoded.len() as u64 <= chain.encoded_limit());
                prop_assert_eq!(&texts(&chain.decode(encoded).unwrap()), &given, "{}", list);
            }
        }
    }

    #[test]
    fn mutated_strings_decode_or_fail_and_never_panic(
        given in arb_texts(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        end in prop::option::of(any::<prop::sample::Index>()),
    ) {
        for (data_type, codec) in variable() {
            for list in chains(codec) {
                let chain = limited(list, &data_type, &[4, 6], b"", 1 << 16).unwrap();
                let given: Vec<String> = given.iter().map(|text| text.repeat(2)).collect();
                let mut encoded = chain.encode(elements(&given)).unwrap().to_vec();
                for (at, byte) in &edits {
                    let at = at.index(encoded.len());
                    encoded[at] = *byte;
                }
                encoded.truncate(end.map_or(encoded.len(), |end| end.index(encoded.len())));
                if let Ok(decoded) = chain.decode(encoded.into()) {
                    prop_assert_eq!(decoded.variable_elements().len(), 24);
                    prop_assert!(decoded.bytes() <= 24 * 8 + (1 << 16));
                }
            }
        }
    }

    #[test]
    fn mutated_json_decodes_or_fails_and_never_panics(
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::sample::select(b"[]{},:\"\\ 0e-|Onull".to_vec())), 1..5),
    ) {
        let mut text = br#"[["a",{"b":[1,2]}],[null,"c\"]"],"|O",[2,2]]"#.to_vec();
        for (at, byte) in edits {
            let at = at.index(text.len());
            text[at] = byte;
        }
        let chain = bind(json!([["numcodecs.json2", {}]]), DataType::Json, &[2, 2]).unwrap();
        if let Ok(decoded) = chain.decode(text.into()) {
            prop_assert_eq!(decoded.variable_elements().len(), 4);
            for text in decoded.variable_elements() {
                prop_assert!(serde_json::from_slice::<Value>(text).is_ok());
            }
        }
    }
}

#[test]
fn strings_are_stored_after_their_number_and_their_lengths() {
    let chain = bind(json!([["vlen-utf8", {}]]), DataType::String, &[3]).unwrap();
    let encoded = unhex("03000000 01000000 61 00000000 02000000 c3a9");
    assert_eq!(texts(&chain.decode(encoded.clone()).unwrap()), [&b"a"[..], b"", "é".as_bytes()]);
    assert_eq!(chain.encode(elements(&["a", "", "é"])).unwrap(), encoded);
}

#[test]
fn strings_of_an_array_in_order_f_are_stored_by_column() {
    let chain =
        bind(json!([["transpose", {"order": [2, 1, 0]}], ["vlen-utf8", {}]]), DataType::String, &[2, 3, 2])
            .unwrap();
    let given: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    let encoded = chain.encode(elements(&given)).unwrap();
    let in_order = bind(json!([["vlen-utf8", {}]]), DataType::String, &[12]).unwrap();
    let stored = texts(&in_order.decode(encoded.clone()).unwrap());
    let expected = ["0", "6", "2", "8", "4", "10", "1", "7", "3", "9", "5", "11"];
    assert_eq!(stored, expected.map(|text| text.as_bytes().to_vec()));
    assert_eq!(texts(&chain.decode(encoded).unwrap()), texts(&elements(&given)));
}

#[test]
fn absent_inner_chunks_read_as_the_fill_string() {
    let list = shard([1, 2], "end", &json!([["vlen-utf8", {}]]));
    let chain = limited(list, &DataType::String, &[2, 4], "gefüllt".as_bytes(), 1 << 20).unwrap();
    let mut given = ["gefüllt"; 8];
    given[5] = "x";
    let encoded = chain.encode(elements(&given)).unwrap();
    // One inner chunk of the four is there, with its one filled element.
    assert_eq!(encoded.windows(8).filter(|bytes| *bytes == "gefüllt".as_bytes()).count(), 1);
    assert_eq!(texts(&chain.decode(encoded).unwrap()), given.map(|text| text.as_bytes().to_vec()));
}

#[test]
fn every_wrong_number_and_length_of_strings_is_corrupt() {
    let chain = bind(json!([["vlen-utf8", {}]]), DataType::String, &[3]).unwrap();
    let good = unhex("03000000 01000000 61 00000000 02000000 c3a9");
    for at in [0, 4, 9, 13] {
        let truth = u32::from_le_bytes(good[at..at + 4].try_into().unwrap());
        for lie in [0, 1, 2, 3, 4, 5, 255, 1 << 31, u32::MAX - 4, u32::MAX] {
            let mut bad = good.to_vec();
            bad[at..at + 4].copy_from_slice(&u32::to_le_bytes(lie));
            let result = chain.decode(bad.into());
            assert!(lie == truth || is_corrupt(&result), "{lie} at {at}: {result:?}");
        }
    }
    for length in 0..good.len() {
        assert!(is_corrupt(&chain.decode(good.slice(..length))), "{length}");
    }
    assert!(is_corrupt(&chain.decode([&good[..], &[0]].concat().into())));
    // The array has this many elements, whatever the chunk declares.
    let many = bind(json!([["vlen-utf8", {}]]), DataType::String, &[1 << 20]).unwrap();
    assert!(is_corrupt(&many.decode(good)));
}

#[test]
fn strings_must_be_utf8_arrays_whole_items_and_bytes_may_be_anything() {
    let encoded = unhex("01000000 03000000 ffc3e9");
    for (data_type, codec) in variable() {
        let chain = bind(json!([[codec, {}]]), data_type.clone(), &[1]).unwrap();
        let result = chain.decode(encoded.clone());
        match data_type {
            DataType::VariableBytes => assert_eq!(texts(&result.unwrap()), [b"\xff\xc3\xe9"]),
            _ => assert!(is_corrupt(&result), "{codec}"),
        }
        let result = chain.encode(elements(&[b"\xff\xc3\xe9"]));
        assert_eq!(result.is_ok(), data_type == DataType::VariableBytes, "{codec}");
    }
}

#[test]
fn string_codecs_reject_other_types() {
    for (data_type, codec) in variable() {
        for other in variable().map(|(other, _)| other).into_iter().chain([DataType::Int8, DataType::Json]) {
            let result = bind(json!([[codec, {}]]), other.clone(), &[3]);
            assert_eq!(result.is_ok(), other == data_type, "{codec} of {other:?}");
        }
    }
}

#[test]
fn strings_beyond_the_limit_are_rejected_in_every_chain() {
    let large = |text: &str| elements(&[text.repeat(60), text.repeat(60), String::new(), String::new()]);
    let plain = json!([["vlen-utf8", {}]]);
    let packed = json!([["vlen-utf8", {}], ["zstd", {}]]);
    for list in [plain.clone(), packed.clone(), shard([1, 1], "end", &plain), shard([1, 1], "end", &packed)] {
        let roomy = limited(list.clone(), &DataType::String, &[1, 4], b"", 1 << 20).unwrap();
        let narrow = limited(list.clone(), &DataType::String, &[1, 4], b"", 100).unwrap();
        let value = roomy.encode(large("a")).unwrap();
        assert_eq!(
            roomy.decode(value.clone()).unwrap().variable_elements().map(<[u8]>::len).sum::<usize>(),
            120
        );
        let result = narrow.decode(value);
        let refused = matches!(result, Err(CodecError::ChunkTooLarge { .. } | CodecError::Corrupt { .. }));
        assert!(refused, "{list}: {result:?}");
    }
    let narrow = limited(plain, &DataType::String, &[1, 4], b"", 100).unwrap();
    assert!(matches!(narrow.encode(large("a")), Err(CodecError::ChunkTooLarge { .. })));
}

#[test]
fn many_short_strings_count_what_is_kept_of_each() {
    let short = elements(&[""; 100]);
    // 4 bytes, and for each element 4 as it is stored and 8 when it is decoded.
    for list in [json!([["vlen-utf8", {}]]), json!([["vlen-utf8", {}], ["zstd", {}]])] {
        let bound = |limit| limited(list.clone(), &DataType::String, &[100], b"", limit).unwrap();
        let value = bound(1204).encode(short.clone()).unwrap();
        assert_eq!(bound(1204).decode(value.clone()).unwrap().variable_elements().len(), 100);
        let refused = bound(1203).decode(value);
        assert!(matches!(refused, Err(CodecError::ChunkTooLarge { .. })), "{list}: {refused:?}");
    }
}

#[test]
fn compressed_strings_beyond_the_limit_are_too_large_and_not_corrupt() {
    let blosc = json!(["blosc", {"cname": "lz4", "clevel": 1, "shuffle": "noshuffle", "blocksize": 0}]);
    let (zstd, gzip) = (json!(["zstd", {}]), json!(["gzip", {"level": 1}]));
    let large = elements(&["a".repeat(60), "b".repeat(60), String::new(), String::new()]);
    for compressors in [vec![&zstd], vec![&gzip], vec![&blosc], vec![&zstd, &gzip]] {
        let mut list = vec![json!(["vlen-utf8", {}])];
        list.extend(compressors.into_iter().cloned());
        let bound = |limit| limited(json!(list), &DataType::String, &[1, 4], b"", limit).unwrap();
        let value = bound(1 << 20).encode(large.clone()).unwrap();
        let refused = bound(100).decode(value.clone());
        assert!(matches!(refused, Err(CodecError::ChunkTooLarge { limit: 68, .. })), "{list:?}: {refused:?}");
        // What is cut off is corrupt under each limit.
        let cut = bound(100).decode(value.slice(..value.len() / 2));
        assert!(matches!(cut, Err(CodecError::Corrupt { .. })), "{list:?}: {cut:?}");
    }
}

fn json_chunk(shape: &[u64]) -> CodecChain {
    bind(json!([["numcodecs.json2", {"encoding": "utf-8", "strict": true}]]), DataType::Json, shape).unwrap()
}

#[test]
fn json_values_are_nested_like_the_array_and_decode_to_canonical_form() {
    let text = r#" [ ["a\"],[", {"b": 1, "a": [1.0, [], {}]}], [null , NaN], "|O", [2, 2] ] "#;
    let decoded = json_chunk(&[2, 2]).decode(text.into()).unwrap();
    let expected = [r#""a\"],[""#, r#"{"a":[1.0,[],{}],"b":1}"#, "null", r#""NaN""#];
    assert_eq!(texts(&decoded), expected.map(|text| text.as_bytes().to_vec()));
    let encoded = json_chunk(&[2, 2]).encode(decoded).unwrap();
    assert_eq!(encoded, r#"[["a\"],[",{"a":[1.0,[],{}],"b":1}],[null,"NaN"],"|O",[2,2]]"#);
}

#[test]
fn json_may_be_flat_without_a_shape_scalar_or_empty() {
    for (text, shape, expected) in [
        (r#"[1,2,3,4,"|O",[4]]"#, &[2, 2][..], &["1", "2", "3", "4"][..]),
        (r#"[1,2,3,4,"|O",[2,2]]"#, &[2, 2], &["1", "2", "3", "4"]),
        (r#"[[1,2,3,4],"|O",[1,4]]"#, &[2, 2], &["1", "2", "3", "4"]),
        (r#"[[1,2],[3,4],"|O"]"#, &[2, 2], &["1", "2", "3", "4"]),
        (r#"[[1,2],[3,4],"|O",[2]]"#, &[2], &["[1,2]", "[3,4]"]),
        (r#"["x","|O"]"#, &[1], &["\"x\""]),
        (r#"[7,"|O",[]]"#, &[], &["7"]),
        (r#"["|O",[0]]"#, &[0], &[]),
        (r#"["|O",[0]]"#, &[1 << 40, 0], &[]),
    ] {
        let decoded = json_chunk(shape).decode(text.into()).unwrap();
        assert_eq!(texts(&decoded), expected.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>());
        let again = json_chunk(shape).encode(decoded).unwrap();
        assert_eq!(texts(&json_chunk(shape).decode(again).unwrap()).len(), expected.len());
    }
}

#[test]
fn json_that_does_not_match_the_chunk_is_corrupt() {
    let deep = format!("[{}{},1,\"|O\",[2]]", "[".repeat(100), "]".repeat(100));
    let unclosed = "[".repeat(100_000);
    for text in [
        "",
        "[",
        "]",
        "[]",
        "{}",
        "null",
        r#"["|O"]"#,
        r#"["|O",[0]]"#,
        r#"["|O",[2]]"#,
        "[1,2]",
        "[1,2,3,4]",
        r#"[1,"|O",[2]]"#,
        r#"[1,2,3,"|O",[2]]"#,
        r#"[1,2,3,"|O"]"#,
        r#"[1,2,"|O",[3]]"#,
        r#"[1,2,"|O",[-2]]"#,
        r#"[1,2,"|O",[2.0]]"#,
        r#"[1,2,"|O",["2"]]"#,
        r#"[1,2,"|O",[18446744073709551615,18446744073709551615]]"#,
        r#"[1,2,"|O",[2,1]]"#,
        r#"[1,2,"|O",[2]"#,
        r#"[1,,"|O",[2]]"#,
        r#"[1 2,3,"|O",[2]]"#,
        r#"[1][2,"|O",[2]]"#,
        r#"[1,"x,"|O",[2]]"#,
        r#"[1,}{,"|O",[2]]"#,
        r#"[1,nul,"|O",[2]]"#,
        &deep,
        &unclosed,
    ] {
        let result = json_chunk(&[2]).decode(Bytes::copy_from_slice(text.as_bytes()));
        // Nested lists are elements themselves if the shape says so.
        assert!(is_corrupt(&result), "{text}: {result:?}");
    }
    assert!(is_corrupt(&json_chunk(&[2]).decode(b"[\"\xff\",1,\"|O\",[2]]".as_slice().into())));
}

#[test]
fn json_encodes_and_decodes_arrays_of_numbers_and_of_strings() {
    let list = json!([["numcodecs.json2", {}]]);
    let int = bind(list.clone(), DataType::Int16, &[3]).unwrap();
    let items: Bytes = [1_i16, -2, 300].iter().flat_map(|number| number.to_le_bytes()).collect();
    assert_eq!(int.encode_items(items.clone()).unwrap(), r#"[1,-2,300,"<i2",[3]]"#);
    assert_eq!(int.decode_items(r#"[1,-2,300,"<i2",[3]]"#.into()).unwrap(), items);
    for bad in ["[1,2,40000,\"<i2\"]", "[1,2,null,\"<i2\"]", "[1,2,\"3\",\"<i2\"]", "[1,2,0.5,\"<i2\"]"] {
        assert!(is_corrupt(&int.decode_items(bad.into())), "{bad}");
    }
    let float = bind(list.clone(), DataType::Float32, &[3]).unwrap();
    let items: Bytes =
        [1.5_f32, f32::NAN, f32::NEG_INFINITY].iter().flat_map(|number| number.to_le_bytes()).collect();
    assert_eq!(float.encode_items(items.clone()).unwrap(), r#"[1.5,NaN,-Infinity,"<f4",[3]]"#);
    assert_eq!(float.decode_items(r#"[1.5,NaN,-Infinity,"<f4",[3]]"#.into()).unwrap(), items);
    let text = bind(list.clone(), DataType::FixedLengthUtf32 { code_points: 2 }, &[2]).unwrap();
    let encoded = Bytes::from(r#"["é","ab","<U2",[2]]"#);
    let items = text.decode_items(encoded.clone()).unwrap();
    assert_eq!(items.len(), 16);
    assert_eq!(text.encode_items(items).unwrap(), encoded);
    assert!(is_corrupt(&text.decode_items(r#"["abc","ab","<U2",[2]]"#.into())));
    let unsupported = bind(list, DataType::Complex64, &[2]);
    assert!(matches!(unsupported, Err(CodecError::Unsupported(_))));
}

#[test]
fn json_beyond_the_limit_is_rejected() {
    let list = json!([["numcodecs.json2", {}]]);
    let chain = limited(list, &DataType::Json, &[2], b"null", 40).unwrap();
    let text = format!("[\"{}\",1,\"|O\",[2]]", "x".repeat(40));
    assert!(matches!(chain.decode(text.into()), Err(CodecError::ChunkTooLarge { limit: 40, .. })));
    let given = elements(&[format!("\"{}\"", "x".repeat(40)), "1".to_owned()]);
    assert!(matches!(chain.encode(given), Err(CodecError::ChunkTooLarge { .. })));
}

fn categorize(data_type: &DataType, labels: &Value) -> Result<CodecChain, CodecError> {
    let list = json!([["numcodecs.categorize", {"labels": labels, "astype": "|u1"}], ["bytes", {}]]);
    bind(list, data_type.clone(), &[5])
}

#[test]
fn strings_are_stored_as_the_numbers_of_their_labels() {
    let chain = categorize(&DataType::String, &json!(["x", "yy", "é"])).unwrap();
    let encoded = Bytes::from_static(&[2, 0, 3, 1, 200]);
    let decoded = chain.decode(encoded).unwrap();
    assert_eq!(texts(&decoded), ["yy", "", "é", "x", ""].map(|text| text.as_bytes().to_vec()));
    let given = elements(&["yy", "unknown", "é", "x", ""]);
    assert_eq!(chain.encode(given).unwrap(), [2, 0, 3, 1, 0].as_slice());
}

#[test]
fn labels_of_fixed_length_strings_are_truncated() {
    let data_type = DataType::FixedLengthUtf32 { code_points: 2 };
    let chain = categorize(&data_type, &json!(["x", "yy", "éàü"])).unwrap();
    let decoded = chain.decode_items(Bytes::from_static(&[1, 2, 3, 0, 4])).unwrap();
    let text = |text: &str| -> Vec<u8> {
        let mut text: Vec<u8> = text.chars().flat_map(|it| u32::from(it).to_le_bytes()).collect();
        text.resize(8, 0);
        text
    };
    assert_eq!(decoded, ["x", "yy", "éà", "", ""].map(text).concat());
    // A truncated label is no label.
    assert_eq!(chain.encode_items(decoded).unwrap(), [1, 2, 0, 0, 0].as_slice());
}

#[test]
fn labels_must_be_strings_and_no_more_than_the_type_can_count() {
    for labels in [json!(null), json!("x"), json!([1]), json!({"x": 1})] {
        assert!(
            matches!(categorize(&DataType::String, &labels), Err(CodecError::Invalid { .. })),
            "{labels}"
        );
    }
    assert!(matches!(categorize(&DataType::Int32, &json!(["x"])), Err(CodecError::Invalid { .. })));
    let many: Value = (0..256).map(|number| number.to_string()).collect();
    let chain = categorize(&DataType::String, &many).unwrap();
    assert_eq!(texts(&chain.decode(Bytes::from_static(&[255; 5])).unwrap()), ["254"; 5].map(Vec::from));
    let result = chain.encode(elements(&["1"; 5]));
    assert!(matches!(result, Err(CodecError::Encode { .. })), "{result:?}");
}

#[test]
fn many_strings_with_one_long_label_share_it() {
    let label = "x".repeat(1000);
    let list = json!([["numcodecs.categorize", {"labels": [label], "astype": "<u2"}], ["bytes", {"endian": "little"}]]);
    let chain = limited(list, &DataType::String, &[1000], b"", 10_000).unwrap();
    let decoded = chain.decode(Bytes::from([1, 0].repeat(1000))).unwrap();
    assert_eq!(decoded.heap().len(), 1000);
    assert!(decoded.variable_elements().all(|text| text == label.as_bytes()));
}

#[test]
fn strings_may_be_in_several_zstd_frames_up_to_the_limit() {
    let list = json!([["vlen-bytes", {}], ["zstd", {}]]);
    let chain = limited(list, &DataType::VariableBytes, &[2], b"", 1 << 16).unwrap();
    let value = [&2_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), b"abc", &0_u32.to_le_bytes()].concat();
    let frame = |bytes: &[u8]| zstd::bulk::compress(bytes, 3).unwrap();
    let skipped = b"\x50\x2a\x4d\x18\x03\0\0\0xyz";
    let frames = [&frame(&value[..5])[..], skipped, &frame(b""), &frame(&value[5..]), skipped].concat();
    assert_eq!(texts(&chain.decode(frames.clone().into()).unwrap()), [b"abc".to_vec(), Vec::new()]);
    for length in 0..frames.len() - skipped.len() {
        assert!(chain.decode(frames[..length].to_vec().into()).is_err(), "{length}");
    }
    let bomb = frame(&vec![0; 64 << 20]);
    let refused = chain.decode(bomb.into());
    assert!(matches!(refused, Err(CodecError::ChunkTooLarge { limit: 65_520, .. })), "{refused:?}");
}
