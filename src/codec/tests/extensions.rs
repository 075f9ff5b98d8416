//! `reshape`, `conditional` and `n5_default`: the promises of the extensions, and no panics.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Items, bind, codecs, every_compressor, inside, is_corrupt, sample, unhex};
use crate::chunk::{Elements, VarSlice};
use crate::codec::{CodecChain, CodecError, CodecLimits};
use crate::metadata::{DataType, FillValue};

fn is_invalid<T>(result: &Result<T, CodecError>) -> bool {
    matches!(result, Err(CodecError::Invalid { .. }))
}

fn reshaped(shape: &Value, input: &[u64]) -> Result<CodecChain, CodecError> {
    bind(json!([["reshape", {"shape": shape}], ["bytes", {}]]), DataType::UInt8, input)
}

#[test]
fn a_reshape_to_as_many_elements_keeps_their_bytes() {
    for (shape, input) in [
        (json!([[0, 1], [2], 3]), &[100, 50, 64, 3][..]),
        (json!([6]), &[2, 3]),
        (json!([-1]), &[2, 3]),
        (json!([2, -1, 2]), &[4, 6]),
        (json!([1, 1, [0], [], [1]]), &[4, 6]),
        (json!([[0], [2]]), &[4, 1, 6]),
        (json!([[0, 1], 10, [4]]), &[2, 3, 2, 5, 4]),
        (json!([]), &[]),
        (json!([]), &[1, 1]),
        (json!([1]), &[]),
        (json!([[0], -1]), &[0, 4]),
        (json!([-1, 4]), &[0, 4]),
    ] {
        let chain = reshaped(&shape, input).unwrap();
        let elements = sample(usize::try_from(chain.decoded_bytes()).unwrap());
        assert_eq!(chain.encode_items(elements.clone()).unwrap(), elements, "{shape}");
        assert_eq!(chain.decode_items(elements.clone()).unwrap(), elements, "{shape}");
    }
}

#[test]
fn a_reshape_that_changes_the_number_or_the_order_of_elements_is_rejected() {
    for (shape, input) in [
        (json!([5]), &[2, 3][..]),
        (json!([4, -1]), &[2, 3]),
        (json!([-1, -1]), &[2, 3]),
        (json!([0]), &[0, 2]),
        (json!([-2]), &[2, 3]),
        (json!([1.5, 4]), &[2, 3]),
        (json!(["6"]), &[2, 3]),
        (json!([null, 6]), &[2, 3]),
        (json!([[1], [0]]), &[2, 3]),
        (json!([[1, 0]]), &[2, 3]),
        (json!([[0, 0], 2]), &[2, 2, 2]),
        (json!([[0], [2]]), &[2, 3]),
        (json!([[-1], 3]), &[2, 3]),
        (json!([[[0]], 3]), &[2, 3]),
        // As many elements, but the named dimension has another length.
        (json!([2, [0], 3]), &[4, 6]),
        (json!([[1], 4]), &[4, 6]),
        (json!([[0, 2], 3]), &[2, 3, 2]),
        (json!([u64::MAX, u64::MAX]), &[2, 3]),
        (json!(6), &[2, 3]),
        (json!("C"), &[2, 3]),
        (json!(null), &[2, 3]),
        (json!(vec![1; 100]), &[1]),
    ] {
        assert!(is_invalid(&reshaped(&shape, input)), "{shape}");
    }
    let more = json!([["reshape", {"shape": [6], "order": "F"}], ["bytes", {}]]);
    assert!(is_invalid(&bind(more, DataType::UInt8, &[2, 3])));
}

#[test]
fn a_shard_after_a_reshape_is_decoded_whole() {
    let shard = json!(["sharding_indexed", {
        "chunk_shape": [2, 2, 1],
        "codecs": inside(&json!([["transpose", {"order": [2, 0, 1]}], ["bytes", {"endian": "big"}], ["gzip", {}]])),
        "index_codecs": inside(&json!([["bytes", {"endian": "little"}], ["crc32c", {}]])),
    }]);
    let list = json!([["transpose", {"order": [1, 0]}], ["reshape", {"shape": [6, 2, -1]}], shard]);
    let chain = bind(list, DataType::Int16, &[4, 6]).unwrap();
    assert!(chain.sharding().is_none());
    let mut elements = sample(48).to_vec();
    elements[8..16].fill(0);
    let encoded = chain.encode_items(Bytes::from(elements.clone())).unwrap();
    assert_eq!(chain.decode_items(encoded).unwrap(), elements);
}

#[test]
fn strings_are_reshaped_like_numbers() {
    let list = json!([["reshape", {"shape": [[0, 1]]}], ["vlen-utf8", {}]]);
    let chain = bind(list, DataType::String, &[2, 2]).unwrap();
    let (mut heap, mut spans) = (Vec::new(), Vec::new());
    for text in ["a", "", "ccc", "dé"] {
        let span =
            VarSlice { offset: heap.len().try_into().unwrap(), length: text.len().try_into().unwrap() };
        spans.extend(span.to_item());
        heap.extend(text.as_bytes());
    }
    let encoded = chain.encode(Elements::variable(spans.into(), heap.into())).unwrap();
    let decoded = chain.decode(encoded).unwrap();
    assert_eq!(decoded.variable_elements().collect::<Vec<_>>(), [&b"a"[..], b"", b"ccc", "dé".as_bytes()]);
}

/// A chain of bytes and `conditional` with these codecs inside.
fn conditional(list: &Value, length: u64) -> Result<CodecChain, CodecError> {
    conditional_with(&json!({"codecs": inside(list)}), length)
}

fn conditional_with(config: &Value, length: u64) -> Result<CodecChain, CodecError> {
    bind(json!([["bytes", {}], ["conditional", config]]), DataType::UInt8, &[length])
}

#[test]
fn a_chunk_is_decoded_by_the_codecs_in_its_header() {
    let list = json!([["zlib", {"level": 1}], ["numcodecs.crc32", {"location": "end"}]]);
    let chain = conditional(&list, 64).unwrap();
    let elements = Bytes::from(vec![7; 64]);
    let alone = |list: Value| {
        let Value::Array(mut list) = list else { panic!("a list of codecs") };
        list.insert(0, json!(["bytes", {}]));
        bind(Value::Array(list), DataType::UInt8, &[64]).unwrap().encode_items(elements.clone()).unwrap()
    };
    for (header, applied) in
        [(0, json!([])), (1, json!([list[0]])), (2, json!([list[1]])), (3, json!([list[0], list[1]]))]
    {
        let value = Bytes::from([&[header], &alone(applied)[..]].concat());
        assert!(value.len() as u64 <= chain.encoded_limit());
        assert_eq!(chain.decode_items(value.clone()).unwrap(), elements, "{header}");
        for wrong in (0..=255).filter(|&wrong| wrong != header) {
            let mut value = value.to_vec();
            value[0] = wrong;
            assert!(is_corrupt(&chain.decode_items(Bytes::from(value))), "{wrong} for {header}");
        }
        assert!(is_corrupt(&chain.decode_items(value.slice(..value.len() - 1))), "{header}");
    }
    assert!(is_corrupt(&chain.decode_items(Bytes::new())));
}

#[test]
fn the_encoder_applies_all_codecs_if_the_chunk_gets_shorter_and_none_otherwise() {
    let list = json!([["numcodecs.shuffle", {"elementsize": 4}], ["zstd", {"level": 3}]]);
    let chain = conditional(&list, 400).unwrap();
    let plain = chain.encode_items(Bytes::from(vec![1; 400])).unwrap();
    assert!(plain[0] == 3 && plain.len() < 100);
    // Incompressible bytes cost only the header.
    let noise = Bytes::from_static(b"\x5a\x17\xc4\x81\x3e\xfb\xb8");
    let short = conditional(&json!([["zlib", {"level": 9}]]), 7).unwrap();
    let stored = short.encode_items(noise.clone()).unwrap();
    assert_eq!(stored, [&[0], &noise[..7]].concat());
}

#[test]
fn a_header_has_the_configured_number_of_bits() {
    let config = json!({"codecs": inside(&json!([["crc32c", {}]])), "header_bits": 24});
    let chain = conditional_with(&config, 2).unwrap();
    assert_eq!(chain.encode_items(Bytes::from_static(b"ab")).unwrap(), b"\0\0\0ab"[..]);
    for header in [[2, 0, 0], [0, 1, 0], [0, 0, 0x80]] {
        assert!(is_corrupt(&chain.decode_items(Bytes::from([&header[..], b"ab"].concat()))), "{header:?}");
    }
    // Nine codecs need two bytes.
    let nine = conditional(&Value::Array(vec![json!(["crc32c", {}]); 9]), 2).unwrap();
    assert_eq!(nine.encode_items(Bytes::from_static(b"ab")).unwrap(), b"\0\0ab"[..]);
    // No codecs need no byte.
    let none = conditional(&json!([]), 2).unwrap();
    assert_eq!(
        (none.encode_items(Bytes::from_static(b"ab")).unwrap(), none.encoded_limit()),
        (Bytes::from("ab"), 2)
    );
}

#[test]
fn nested_conditional_codecs_round_trip() {
    let inner = json!(["conditional", {"codecs": inside(&json!([["zlib", {}], ["crc32c", {}]]))}]);
    let chain = conditional(&json!([["numcodecs.shuffle", {"elementsize": 2}], inner]), 1000).unwrap();
    for elements in [Bytes::from(vec![3; 1000]), sample(1000)] {
        let encoded = chain.encode_items(elements.clone()).unwrap();
        assert!(encoded.len() <= 1002);
        assert_eq!(chain.decode_items(encoded).unwrap(), elements);
    }
}

#[test]
fn an_invalid_conditional_codec_is_rejected() {
    let one = inside(&json!([["crc32c", {}]]));
    let mut nested = json!([]);
    for _ in 0..20 {
        let conditional = json!({"name": "conditional", "configuration": {"codecs": nested}});
        nested = json!([conditional, "crc32c"]);
    }
    for config in [
        json!({}),
        json!({"codecs": "zstd"}),
        json!({"codecs": [1]}),
        json!({"codecs": one, "header_bits": 7}),
        json!({"codecs": one, "header_bits": 0}),
        json!({"codecs": one, "header_bits": -8}),
        json!({"codecs": one, "header_bits": 1.5}),
        json!({"codecs": one, "header_bits": 1_u64 << 40}),
        json!({"codecs": one, "more": 1}),
        json!({"codecs": ["bytes"]}),
        json!({"codecs": [{"name": "transpose", "configuration": {"order": [0]}}]}),
        json!({"codecs": vec![json!("crc32c"); 15], "header_bits": 40}),
        json!({"codecs": nested}),
    ] {
        assert!(is_invalid(&conditional_with(&config, 3)), "{config}");
    }
    for must_understand in [true, false] {
        let unknown = json!({"codecs": [{"name": "no-such-codec", "must_understand": must_understand}]});
        assert!(matches!(conditional_with(&unknown, 3), Err(CodecError::Unsupported(_))));
    }
    let before = json!([["conditional", {"codecs": one}], ["bytes", {}]]);
    assert!(is_invalid(&bind(before, DataType::UInt8, &[3])));
}

#[test]
fn a_bomb_in_a_conditional_codec_stops_at_the_size_of_the_chunk() {
    let chain = conditional(&json!([["zlib", {}], ["zlib", {}]]), 100).unwrap();
    let zlib = |bytes: Bytes| {
        super::byte_chain(json!([["zlib", {"level": 9}]]), bytes.len() as u64).encode_items(bytes).unwrap()
    };
    let bomb = zlib(zlib(Bytes::from(vec![0; 1 << 22])));
    assert!(is_corrupt(&chain.decode_items(Bytes::from([&[3], &bomb[..]].concat()))));
}

#[test]
fn codecs_inside_conditional_count_towards_the_limit_of_the_chain() {
    let codecs = |count: usize| json!({"codecs": vec![json!("gzip"); count]});
    let chain = |counts: &[usize]| {
        let behind = counts.iter().map(|&count| json!(["conditional", codecs(count)]));
        bind([json!(["bytes", {}])].into_iter().chain(behind).collect(), DataType::UInt8, &[1000])
    };
    // The bytes, two conditional ones, and thirteen inside them.
    let most = chain(&[6, 7]).unwrap();
    assert!(most.encoded_limit() < 200_000, "{}", most.encoded_limit());
    for counts in [&[7, 7][..], &[14, 0], &[1; 8], &[15], &[1 << 20]] {
        assert!(is_invalid(&chain(counts)), "{counts:?}");
    }
}

#[test]
fn the_bytes_between_two_codecs_are_bounded_and_counted() {
    let shard = |codecs: Value| {
        json!([["sharding_indexed", {
            "chunk_shape": [512], "codecs": inside(&codecs), "index_codecs": inside(&json!([["bytes", {"endian": "little"}]])),
        }]])
    };
    let gzipped = json!([["bytes", {}], ["gzip", {}]]);
    let mut behind = shard(shard(shard(gzipped.clone())));
    behind.as_array_mut().unwrap().push(json!(["gzip", {}]));
    let limits = CodecLimits { chunk_bytes: 1 << 20, ..CodecLimits::default() };
    let zero = FillValue::zero(&DataType::UInt8);
    let bind =
        |list: Value, bytes: u64| CodecChain::bind(&codecs(list), &DataType::UInt8, &[bytes], &zero, &limits);
    let chain = bind(behind, 512 << 10).unwrap();
    assert!(chain.working_bytes() <= (512 << 10) + limits.between_bytes(), "{}", chain.working_bytes());
    assert!(chain.working_bytes() > 1 << 20, "a shard is decoded before its chunks are");
    let text = |times| {
        [json!(["bytes", {}])].into_iter().chain(vec![json!(["numcodecs.base64", {}]); times]).collect()
    };
    bind(text(2), 1 << 20).unwrap();
    assert!(matches!(bind(text(3), 1 << 20), Err(CodecError::ChunkTooLarge { .. })));
    // With one codec nothing is between codecs; with two, the output of the first.
    let working = |list: Value| bind(list, 1000).unwrap().working_bytes();
    assert_eq!(working(gzipped), 1000);
    assert_eq!(working(json!([["bytes", {}], ["numcodecs.base64", {}], ["gzip", {}]])), 1000 + 1336);
    let twice = json!([["gzip", {}], ["gzip", {}]]);
    assert_eq!(working(json!([["bytes", {}], twice[0], twice[1]])), 1000 + 3024);
    assert_eq!(working(json!([["bytes", {}], ["conditional", {"codecs": inside(&twice)}]])), 1000 + 3024);
}

fn n5_inner(rank: usize, compressor: Option<Value>) -> Value {
    let order: Vec<usize> = (0..rank).rev().collect();
    let mut list = vec![json!(["transpose", {"order": order}]), json!(["bytes", {"endian": "big"}])];
    list.extend(compressor);
    inside(&Value::Array(list))
}

fn n5(
    rank: usize,
    compressor: Option<Value>,
    data_type: &DataType,
    shape: &[u64],
    fill: &[u8],
) -> CodecChain {
    let list = codecs(json!([["n5_default", {"codecs": n5_inner(rank, compressor)}]]));
    let fill_value = FillValue::from_bytes(fill);
    CodecChain::bind(&list, data_type, shape, &fill_value, &CodecLimits::default()).unwrap()
}

#[test]
fn an_n5_block_is_a_header_and_the_elements_in_n5_order() {
    let chain = n5(2, None, &DataType::Int16, &[2, 3], &[9, 0]);
    let elements: Bytes = (1_i16..7).flat_map(i16::to_le_bytes).collect();
    let value = unhex("0000 0002 00000002 00000003  0001 0004 0002 0005 0003 0006");
    assert_eq!(chain.encode_items(elements.clone()).unwrap(), value);
    assert_eq!(chain.decode_items(value).unwrap(), elements);
}

#[test]
fn an_n5_block_of_another_size_is_padded_with_the_fill_value_or_cropped() {
    let chain = n5(2, None, &DataType::Int16, &[2, 3], &[9, 0]);
    for (value, expected) in [
        ("0000 0002 00000002 00000001  0001 0004", [1, 9, 9, 4, 9, 9]),
        ("0000 0002 00000001 00000004  0001 0002 0003 0004", [1, 2, 3, 9, 9, 9]),
        ("0000 0002 00000003 00000003  0001 0002 0003 0004 0005 0006 0007 0008 0009", [1, 4, 7, 2, 5, 8]),
        ("0000 0002 00000000 00000003", [9; 6]),
    ] {
        let expected: Vec<u8> = expected.into_iter().flat_map(i16::to_le_bytes).collect();
        assert_eq!(chain.decode_items(unhex(value)).unwrap(), expected, "{value}");
    }
    let compressed = n5(1, Some(json!(["gzip", {"level": 1}])), &DataType::UInt8, &[4], &[7]);
    let cut = n5(1, Some(json!(["gzip", {"level": 1}])), &DataType::UInt8, &[2], &[7]);
    let value = cut.encode_items(Bytes::from_static(&[1, 2])).unwrap();
    assert_eq!(compressed.decode_items(value).unwrap(), [1, 2, 7, 7][..]);
}

#[test]
fn an_n5_block_with_another_header_is_corrupt() {
    let chain = n5(2, None, &DataType::UInt8, &[2, 2], &[0]);
    assert!(chain.decode_items(unhex("0000 0002 00000002 00000002 01020304")).is_ok());
    for value in [
        "",
        "0000 00",
        "0000 0002 00000002 000000",
        "0001 0002 00000002 00000002 01020304",
        "0001 0002 00000002 00000002 00000004 01020304",
        "0002 0002 00000002 00000002 01020304",
        "0000 0001 00000004 01020304",
        "0000 0003 00000002 00000002 00000001 01020304",
        "0000 ffff 00000002 00000002 01020304",
        "0000 0002 00000002 00000002 010203",
        "0000 0002 00000002 00000002 0102030405",
        "0000 0002 00000003 00000003 010203040506070809",
        "0000 0002 ffffffff ffffffff 01020304",
        "0000 0002 00000000 ffffffff 01020304",
    ] {
        assert!(is_corrupt(&chain.decode_items(unhex(value))), "{value}");
    }
}

#[test]
fn a_bomb_in_an_n5_block_stops_at_the_size_in_its_header() {
    let gzip = json!(["gzip", {"level": 9}]);
    let chain = n5(1, Some(gzip.clone()), &DataType::UInt8, &[8], &[0]);
    let bomb = n5(1, Some(gzip), &DataType::UInt8, &[1 << 16], &[0])
        .encode_items(Bytes::from(vec![0; 1 << 16]))
        .unwrap();
    assert!(is_corrupt(&chain.decode_items(bomb.clone())));
    assert!(is_corrupt(
        &chain.decode_items(Bytes::from([&unhex("0000 0001 00000009"), &bomb[8..]].concat()))
    ));
}

#[test]
fn an_invalid_configuration_of_n5_blocks_is_rejected() {
    let transpose = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    let bytes = json!({"name": "bytes", "configuration": {"endian": "big"}});
    for (data_type, config) in [
        (DataType::Int16, json!({})),
        (DataType::Int16, json!({"codecs": []})),
        (DataType::Int16, json!({"codecs": [bytes]})),
        (DataType::Int16, json!({"codecs": [bytes, transpose]})),
        (DataType::Int16, json!({"codecs": [transpose, "bytes"]})),
        (
            DataType::Int16,
            json!({"codecs": [transpose, {"name": "bytes", "configuration": {"endian": "little"}}]}),
        ),
        (
            DataType::Int8,
            json!({"codecs": [transpose, {"name": "bytes", "configuration": {"endian": "little"}}]}),
        ),
        (DataType::Int16, json!({"codecs": [transpose, bytes, "crc32c", "crc32c"]})),
        (DataType::Int16, json!({"codecs": [transpose, bytes, transpose]})),
        (DataType::Int16, json!({"codecs": [transpose, bytes], "more": 1})),
        (
            DataType::Int16,
            json!({"codecs": [{"name": "transpose", "configuration": {"order": [0, 1]}}, bytes]}),
        ),
        (DataType::Int16, json!({"codecs": [{"name": "transpose", "configuration": {"order": [0]}}, bytes]})),
        (DataType::Float16, json!({"codecs": [transpose, bytes]})),
        (DataType::Complex64, json!({"codecs": [transpose, bytes]})),
        (DataType::Bool, json!({"codecs": [transpose, bytes]})),
        (DataType::String, json!({"codecs": [transpose, bytes]})),
    ] {
        let result = bind(json!([["n5_default", config]]), data_type, &[2, 3]);
        assert!(is_invalid(&result), "{config}: {result:?}");
    }
    let single = json!([["n5_default", {"codecs": [transpose, "bytes"]}]]);
    assert!(bind(single, DataType::UInt8, &[2, 3]).is_ok());
    let inner = json!({"codecs": n5_inner(1, None)});
    assert!(is_invalid(&bind(json!([["n5_default", inner]]), DataType::UInt8, &[1 << 32])));
}

#[test]
fn n5_blocks_round_trip_inside_shards_and_after_casts() {
    let list = json!([
        ["cast_value", {"data_type": "uint16"}],
        ["sharding_indexed", {
            "chunk_shape": [2, 2],
            "codecs": [{"name": "n5_default", "configuration": {"codecs": n5_inner(2, Some(json!(["zstd", {"level": 1}])))}}],
            "index_codecs": inside(&json!([["bytes", {"endian": "little"}]])),
        }],
    ]);
    let chain = bind(list, DataType::Float32, &[4, 6]).unwrap();
    let elements: Bytes = (0_u8..24).map(|number| f32::from(number / 3)).flat_map(f32::to_le_bytes).collect();
    let encoded = chain.encode_items(elements.clone()).unwrap();
    assert!(encoded.len() as u64 <= chain.encoded_limit());
    assert_eq!(chain.decode_items(encoded).unwrap(), elements);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_conditional_codec_decodes_what_it_encoded(
        first in 0..every_compressor().len(), second in 0..every_compressor().len(), length in 0_u64..600, noisy: bool,
    ) {
        let mut list = every_compressor()[first].as_array().unwrap().clone();
        list.extend(every_compressor()[second].as_array().unwrap().iter().cloned());
        let Ok(chain) = conditional(&Value::Array(list), length) else { return Ok(()) };
        let length = usize::try_from(length).unwrap();
        let elements = if noisy { sample(length) } else { Bytes::from(vec![1; length]) };
        let encoded = chain.encode_items(elements.clone()).unwrap();
        prop_assert!(encoded.len() <= length + 1);
        prop_assert_eq!(chain.decode_items(encoded).unwrap(), elements);
    }

    #[test]
    fn a_conditional_codec_never_panics(
        which in 0..every_compressor().len(), value in prop::collection::vec(any::<u8>(), 0..200), applied in 0_u8..4,
    ) {
        let chain = conditional(&every_compressor()[which], 100).unwrap();
        let _whatever = chain.decode_items(Bytes::from(value.clone()));
        if let Ok(decoded) = chain.decode_items(Bytes::from([&[applied], &value[..]].concat())) {
            prop_assert_eq!(decoded.len(), 100);
        }
    }

    #[test]
    fn any_n5_block_round_trips_and_decodes_to_its_overlap_with_any_chunk(
        shape in prop::collection::vec(1_u64..5, 0..4), other in prop::collection::vec(0_u64..6, 4),
    ) {
        let count = usize::try_from(shape.iter().product::<u64>()).unwrap();
        let chain = n5(shape.len(), None, &DataType::UInt8, &shape, &[0xee]);
        let elements = sample(count);
        let encoded = chain.encode_items(elements.clone()).unwrap();
        prop_assert_eq!(chain.decode_items(encoded.clone()).unwrap(), elements.clone());
        // The same block as another chunk, one element at a time.
        let other = &other[..shape.len()];
        let chunk = n5(shape.len(), None, &DataType::UInt8, other, &[0xee]);
        let Ok(decoded) = chunk.decode_items(encoded) else {
            prop_assert!(count as u64 > 2 * other.iter().product::<u64>());
            return Ok(());
        };
        for (place, &element) in decoded.iter().enumerate() {
            let mut rest = place as u64;
            let mut at = vec![0; other.len()];
            for axis in (0..other.len()).rev() {
                at[axis] = rest % other[axis];
                rest /= other[axis];
            }
            let inside = at.iter().zip(&shape).all(|(at, edge)| at < edge);
            let from = at.iter().zip(&shape).fold(0, |from, (at, edge)| from * edge + at);
            let expected = if inside { elements[usize::try_from(from).unwrap()] } else { 0xee };
            prop_assert_eq!(element, expected);
        }
    }

    #[test]
    fn an_n5_block_of_any_bytes_decodes_to_its_chunk_or_fails(
        value in prop::collection::vec(any::<u8>(), 0..60), shape in prop::collection::vec(0_u32..8, 2), compressed: bool,
    ) {
        let chain = n5(2, compressed.then(|| json!(["gzip", {}])), &DataType::UInt16, &[3, 4], &[1, 2]);
        let mut header = vec![0, 0, 0, 2];
        header.extend(shape.iter().flat_map(|length| length.to_be_bytes()));
        for value in [value.clone(), [header, value].concat()] {
            if let Ok(decoded) = chain.decode_items(Bytes::from(value)) {
                prop_assert_eq!(decoded.len(), 24);
            }
        }
    }

    #[test]
    fn any_configuration_of_a_reshape_is_rejected_or_keeps_the_elements(
        shape in prop::collection::vec(prop::sample::select(vec![
            json!(-1), json!(0), json!(1), json!(2), json!(3), json!(u64::MAX), json!(1_u64 << 33), json!([]), json!([0]),
            json!([1]), json!([0, 1]), json!([2]), json!([1, 2]), json!([0, 2]), json!(null), json!(1.5),
        ]), 0..5),
        input in prop::collection::vec(prop::sample::select(vec![0_u64, 1, 2, 3, 6]), 0..4),
    ) {
        if let Ok(chain) = reshaped(&Value::Array(shape), &input) {
            let elements = sample(usize::try_from(input.iter().product::<u64>()).unwrap());
            prop_assert_eq!(chain.decode_items(elements.clone()).unwrap(), elements);
        }
    }
}
