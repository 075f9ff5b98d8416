//! Documents of every format version: whatever they are made of, they are read or refused, and what is read can be
//! written as v3, be read again, and be bound.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zarrd::chunk::ChunkGrid;
use zarrd::codec::{CodecChain, CodecLimits, v2_codec};
use zarrd::metadata::v3::V3Node;
use zarrd::metadata::{ArrayMetadata, MetadataLimits, v1, v2, v3};

fuzz_target!(|input: &[u8]| {
    let limits = MetadataLimits::default();
    let Some((&version, document)) = input.split_first() else { return };
    let array = match version % 5 {
        0 => match v3::parse(document, &limits) {
            Ok(V3Node::Array(array)) => array,
            Ok(V3Node::Group(group)) => return drop(group.to_document()),
            Err(_) => return,
        },
        1 => match v2::parse_array(document, None, v2_codec, &limits) {
            Ok(array) => array,
            Err(_) => return,
        },
        2 => {
            // Both documents from one input: what stands before and behind a zero byte.
            let mut parts = document.splitn(2, |&byte| byte == 0);
            let (zarray, zattrs) = (parts.next().unwrap_or_default(), parts.next());
            match v2::parse_array(zarray, zattrs, v2_codec, &limits) {
                Ok(array) => array,
                Err(_) => return,
            }
        }
        3 => return drop(v2::parse_group(document, None, &limits)),
        _ => match v1::parse_array(document, Some(b"{}"), v2_codec, &limits) {
            Ok(Some(array)) => array,
            Ok(None) | Err(_) => return,
        },
    };
    check(&array);
});

fn check(array: &ArrayMetadata) {
    let written = array.to_document().to_string();
    let _ = v3::parse(written.as_bytes(), &MetadataLimits::default());
    let grid = ChunkGrid::new(&array.shape, &array.chunk_grid);
    let limits = CodecLimits { chunk_bytes: 1 << 20, ..CodecLimits::default() };
    let _ = CodecChain::bind(
        &array.codecs,
        &array.data_type,
        &grid.first_chunk_shape(),
        &array.fill_value,
        &limits,
    );
}
