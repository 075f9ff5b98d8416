//! Exchange with `zarrs`, an implementation by others: each reads what the other writes. It has
//! types that zarr-python lacks.
//!
//! Chunk by chunk, because its partial decoders are not under test. Where it differs from the specification, the
//! specification wins: [`why_different`] says where.

use std::sync::Arc;

use zarrs::array::{Array, ArrayBytes, ArrayBytesOffsets, ArrayMetadata};
use zarrs::storage::store::MemoryStore;
use zarrs::storage::{ListableStorageTraits, ReadableStorageTraits, StoreKey, WritableStorageTraits};

use crate::support::catalogue::encoded;
use crate::support::encoded::Encoded;
use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

/// Types and codecs that it does not have.
const UNKNOWN: [&str; 14] = [
    "complex_float8_e4m3fn",
    "float8_e4m3fn",
    "null_terminated_bytes",
    "struct",
    "numcodecs.astype",
    "numcodecs.crc32",
    "numcodecs.crc32c",
    "numcodecs.delta",
    "numcodecs.gzip",
    "numcodecs.jenkins_lookup3",
    "numcodecs.lz4",
    "numcodecs.lzma",
    "numcodecs.packbits",
    "numcodecs.zstd",
];

/// Features that it has in v3 only.
const UNKNOWN_IN_V2: [&str; 3] = ["numpy.datetime64", "numpy.timedelta64", "numcodecs.bitround"];

/// Whether it has the type and the codecs of an array.
fn is_known(encoded: &Encoded) -> bool {
    let text = encoded.metadata.to_document().to_string();
    let names = |name: &&str| text.contains(&format!("\"{name}\""));
    !UNKNOWN.iter().any(names) && (encoded.document.0 == "zarr.json" || !UNKNOWN_IN_V2.iter().any(names))
}

/// Arrays that it reads otherwise, and why that is not followed.
fn why_different(encoded: &Encoded) -> Option<&'static str> {
    let name = encoded.name.as_str();
    let component = match name.split('-').next() {
        Some("bool") => 1,
        Some(name) if name.contains("int2") => 2,
        Some(name) if name.contains("int4") || name.contains("float4_") => 4,
        Some(name) if name.contains("float6_") => 6,
        _ => 8,
    };
    if component == 8 && (name.ends_with("packbits-first_byte") || name.ends_with("packbits-last_byte")) {
        return Some(
            "`padding_encoding` is ignored where elements fill their bytes; packbits has no such exception",
        );
    }
    match name {
        "int64-packbits-0-33" => {
            Some("a sign is extended to the end of its byte, not of the element, as its source says")
        }
        name if name.contains("fixedscaleoffset") => {
            Some("integers pass through floats; numcodecs keeps them integers")
        }
        name if name.starts_with("v2-vlen-bytes") => {
            Some("the fill value is base64, as zarr-python writes it")
        }
        _ => None,
    }
}

/// Arrays that it writes otherwise: it does not read them as it was given them itself.
fn is_written_otherwise(encoded: &Encoded) -> bool {
    // A chunk of texts counts as one of fill values where all of them, joined, equal it: some may be empty.
    let of_texts = encoded.metadata.data_type.is_variable();
    // `bitround`: zarrs rounds NaN as if it were a number, which may make it one; here it stays unchanged.
    of_texts || encoded.name.contains("bitround")
}

/// The array for `zarrs`, over a store of its own; why not, if it does not know it.
fn array(encoded: &Encoded, store: &Arc<MemoryStore>) -> Result<Array<MemoryStore>, String> {
    let text = encoded.document.1.to_string();
    let metadata: ArrayMetadata = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    Array::new_with_metadata(Arc::clone(store), "/a", metadata).map_err(|error| error.to_string())
}

/// Its elements as `/v1/data` answers them.
fn packed(read: &ArrayBytes) -> Vec<u8> {
    match read {
        ArrayBytes::Fixed(bytes) => bytes.to_vec(),
        ArrayBytes::Variable(variable) => {
            let packed = |ends: &[usize]| {
                let element = &variable.bytes()[ends[0]..ends[1]];
                [&u32::try_from(element.len()).unwrap().to_le_bytes(), element].concat()
            };
            variable.offsets().windows(2).flat_map(packed).collect()
        }
        ArrayBytes::Optional(_) => panic!("nothing here is optional"),
    }
}

/// Elements as it wants them.
fn unpacked(encoded: &Encoded, elements: &[Vec<u8>]) -> ArrayBytes<'static> {
    if !encoded.metadata.data_type.is_variable() {
        return ArrayBytes::new_flen(elements.concat());
    }
    let mut offsets = vec![0];
    for element in elements {
        offsets.push(offsets[offsets.len() - 1] + element.len());
    }
    ArrayBytes::new_vlen(elements.concat(), ArrayBytesOffsets::new(offsets).unwrap()).unwrap()
}

/// Whether it round-trips arrays encoded here.
fn reads(encoded: &Encoded) -> bool {
    let store = Arc::new(MemoryStore::new());
    let array = array(encoded, &store).unwrap_or_else(|error| panic!("{}: {error}", encoded.name));
    for (key, chunk) in encoded.chunks() {
        store.set(&StoreKey::new(format!("a/{key}")).unwrap(), chunk.clone().into()).unwrap();
    }
    encoded.decoded_chunks().into_iter().all(|(coords, elements)| {
        let read = array.retrieve_chunk::<ArrayBytes>(&coords);
        read.is_ok_and(|read| packed(&read) == encoded.pack(&elements))
    })
}

#[test]
fn zarrs_reads_every_specified_encoding_written_here() {
    for encoded in encoded() {
        let name = &encoded.name;
        if !is_known(encoded) {
            assert!(array(encoded, &Arc::default()).is_err(), "{name} is known to zarrs by now");
            continue;
        }
        match why_different(encoded) {
            None => assert!(reads(encoded), "{name}: zarrs reads other elements"),
            Some(why) => assert!(!reads(encoded), "{name}: zarrs reads the same by now; before, {why}"),
        }
    }
}

#[tokio::test]
async fn arrays_written_by_zarrs_are_read() {
    let ours = memory();
    let all = encoded();
    let is_judged = |encoded: &&Encoded| {
        is_known(encoded) && why_different(encoded).is_none() && !is_written_otherwise(encoded)
    };
    let written: Vec<_> = all.iter().filter(is_judged).collect();
    for encoded in &written {
        let store = Arc::new(MemoryStore::new());
        let array = array(encoded, &store).unwrap();
        array.store_metadata().unwrap();
        for (coords, elements) in encoded.decoded_chunks() {
            let stored = array.store_chunk(&coords, unpacked(encoded, &elements));
            stored.unwrap_or_else(|error| panic!("{}: {error}", encoded.name));
        }
        for key in store.list().unwrap() {
            let value = store.get(&key).unwrap().unwrap();
            put(&ours, &format!("{}/{key}", encoded.name), value).await;
        }
    }
    let server = Server::of(ours);
    assert!(written.len() > 350, "{} arrays", written.len());
    for encoded in written {
        let read = server.elements(&format!("m/{}/a", encoded.name), "").await;
        assert!(read == encoded.packed(), "{}: other elements than zarrs was given", encoded.name);
    }
}
