//! Codecs for tests of v1 and v2 documents. The table of those that there are is above this layer.

use super::{CodecStage, V2ByteOrder, V2Codec, V2Objects};

const NUMBERS: V2ByteOrder = V2ByteOrder::Named { decoded: Some("dtype"), encoded: "astype" };
const TYPES: V2ByteOrder = V2ByteOrder::Named { decoded: Some("decode_dtype"), encoded: "encode_dtype" };
const LABELS: V2ByteOrder = V2ByteOrder::Named { decoded: None, encoded: "astype" };

const ARRAY_TO_ARRAY: [V2Codec; 7] = [
    V2Codec { byte_order: TYPES, ..V2Codec::new("astype", "numcodecs.astype") },
    V2Codec::new("bitround", "numcodecs.bitround"),
    V2Codec {
        byte_order: LABELS,
        objects: Some(V2Objects::Strings),
        ..V2Codec::new("categorize", "numcodecs.categorize")
    },
    V2Codec { byte_order: NUMBERS, ..V2Codec::new("delta", "numcodecs.delta") },
    V2Codec { byte_order: NUMBERS, ..V2Codec::new("fixedscaleoffset", "numcodecs.fixedscaleoffset") },
    V2Codec { byte_order: V2ByteOrder::SingleBytes, ..V2Codec::new("packbits", "numcodecs.packbits") },
    V2Codec { byte_order: NUMBERS, ..V2Codec::new("quantize", "numcodecs.quantize") },
];

const ARRAY_TO_BYTES: [V2Codec; 7] = [
    V2Codec { objects: Some(V2Objects::Json), ..V2Codec::new("json", "numcodecs.json2") },
    V2Codec { objects: Some(V2Objects::Json), ..V2Codec::new("json2", "numcodecs.json2") },
    V2Codec::new("pcodec", "numcodecs.pcodec"),
    V2Codec { objects: Some(V2Objects::Arrays), ..V2Codec::new("vlen-array", "numcodecs.vlen-array") },
    V2Codec { objects: Some(V2Objects::Bytes), ..V2Codec::new("vlen-bytes", "vlen-bytes") },
    V2Codec { objects: Some(V2Objects::Strings), ..V2Codec::new("vlen-utf8", "vlen-utf8") },
    V2Codec::new("zfpy", "numcodecs.zfpy"),
];

const BYTES_TO_BYTES: [V2Codec; 10] = [
    V2Codec::new("base64", "numcodecs.base64"),
    V2Codec { v1_option: "cname", ..V2Codec::new("blosc", "blosc") },
    V2Codec::new("bz2", "numcodecs.bz2"),
    V2Codec::new("crc32", "numcodecs.crc32"),
    V2Codec::new("gzip", "gzip"),
    V2Codec { v1_option: "acceleration", ..V2Codec::new("lz4", "numcodecs.lz4") },
    V2Codec { v1_option: "format", ..V2Codec::new("lzma", "numcodecs.lzma") },
    V2Codec::new("shuffle", "numcodecs.shuffle"),
    V2Codec::new("zlib", "zlib"),
    V2Codec::new("zstd", "zstd"),
];

/// The codec with this `id`: a [`V2CodecLookup`](super::V2CodecLookup).
pub(super) fn test_codec(id: &str) -> Option<(CodecStage, &'static V2Codec)> {
    let tables: [(CodecStage, &[V2Codec]); 3] = [
        (CodecStage::ArrayToArray, &ARRAY_TO_ARRAY),
        (CodecStage::ArrayToBytes, &ARRAY_TO_BYTES),
        (CodecStage::BytesToBytes, &BYTES_TO_BYTES),
    ];
    tables
        .into_iter()
        .find_map(|(stage, codecs)| codecs.iter().find(|codec| codec.id == id).map(|codec| (stage, codec)))
}
