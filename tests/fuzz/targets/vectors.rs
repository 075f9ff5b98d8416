//! Payloads of vector stores: for any bytes, the decoded rows exist, and the result is not longer than the bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zarrd::metadata::DataType;
use zarrd::vectors::payload::{
    Fragment, FragmentIndex, Manifest, Positions, decode_link_groups, decode_links,
};

fuzz_target!(|input: (u8, u8, u8, Vec<u8>)| {
    let (what, width, rows, bytes) = input;
    let (width, rows) = (usize::from(width % 8), u64::from(rows));
    match what % 5 {
        0 => {
            if let Ok(index) = FragmentIndex::decode(&bytes, rows) {
                // A fragment that is a range takes two numbers, however many rows it has.
                assert!(index.len() <= bytes.len());
                assert!(index.iter().flat_map(Fragment::rows).take(1 << 16).all(|row| row < rows));
            }
        }
        1 => {
            if let Ok(manifest) = Manifest::decode(&bytes, width) {
                assert!(manifest.spans.len() <= bytes.len());
                assert!(manifest.spans.iter().all(|span| span.chunk.len() == width));
            }
        }
        2 => {
            if let Ok(links) = decode_links(&bytes, &DataType::Int64, width, rows % 2 == 0) {
                assert!(links.iter().all(|link| link.rows.len() == width));
            }
        }
        3 => {
            if let Ok(links) = decode_link_groups(&bytes, &DataType::Int32, width, rows % 2 == 0) {
                assert!(links.iter().all(|link| link.rows.len() == width));
            }
        }
        _ => {
            if let Ok(positions) = Positions::new(bytes.into(), &DataType::Float16, width) {
                assert!((0..positions.rows()).all(|row| positions.coordinates(row).count() == width));
            }
        }
    }
});
