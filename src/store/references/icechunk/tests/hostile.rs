//! What hostile files may cost, and what they are refused for.

use bytes::Bytes;

use super::files::{FlatField, array, file, file_of, fixed, group, id, snapshot, text};
use crate::codec::ContentCoding;
use crate::store::ContainerBudget;
use crate::store::references::ReferenceError;
use crate::store::references::icechunk::file::{FileKind, open};
use crate::store::references::icechunk::id::StoredNodeId;
use crate::store::references::icechunk::manifest::{ChunkManifest, ChunkReference};
use crate::store::references::icechunk::snapshot::{KeysOf, RepositorySnapshot};

/// A manifest of an array whose references all have these fields beside their places, from the sixth on: location, entity tag,
/// time and compressed location.
fn manifest(references: u32, fields: &[FlatField], shared: &[Vec<u8>], dictionary: FlatField) -> Bytes {
    let reference = |at: u32| {
        let place = FlatField::Items(at.to_le_bytes().to_vec(), 4);
        let [offset, length] = [0_u64, 4].map(|number| fixed(number.to_le_bytes()));
        [vec![place, FlatField::Unset, offset, length, FlatField::Unset], fields.to_vec()].concat()
    };
    let array = vec![fixed([1; 8]), FlatField::Tables((0..references).map(reference).collect())];
    let root = vec![fixed(id(1).0), FlatField::Tables(vec![array]), dictionary, fixed([1])];
    file(FileKind::Manifest, root, shared)
}

fn parsed(file: &Bytes) -> Result<ChunkManifest, ReferenceError> {
    ChunkManifest::parse(file, id(1), &ContainerBudget::default())
}

fn refusal(file: &Bytes) -> String {
    parsed(file).unwrap_err().to_string()
}

/// References may share a text, so that what is checked is many times as long as the file.
#[test]
fn texts_of_references_are_refused_by_their_length_before_they_are_parsed() {
    let url = |length: usize| [b"s3://b/".as_slice(), &vec![b'x'; length - 7]].concat();
    let right = manifest(
        3,
        &[FlatField::Shared(0), FlatField::Shared(1)],
        &[url(4096), vec![b't'; 1024]],
        FlatField::Unset,
    );
    assert_eq!(parsed(&right).unwrap().find_all().unwrap(), 3);
    let long = manifest(3, &[FlatField::Shared(0)], &[url(4097)], FlatField::Unset);
    assert!(refusal(&long).contains("longer than 4096 bytes"), "{}", refusal(&long));
    let long = manifest(3, &[text("s3://b/x"), FlatField::Shared(0)], &[vec![b't'; 1025]], FlatField::Unset);
    assert!(refusal(&long).contains("longer than 1024 bytes"), "{}", refusal(&long));
    let fields = [FlatField::Unset, FlatField::Unset, FlatField::Unset, FlatField::Shared(0)];
    let long = manifest(3, &fields, &[vec![0; 4097]], FlatField::Unset);
    assert!(refusal(&long).contains("longer than 4096 bytes"), "{}", refusal(&long));
    // The length counts, and not what the bytes are: these are no UTF-8.
    let long = manifest(3, &[FlatField::Shared(0)], &[vec![0xff; 4097]], FlatField::Unset);
    assert!(refusal(&long).contains("longer than 4096 bytes"), "{}", refusal(&long));
}

/// It is loaded for each location that is decompressed.
#[test]
fn the_dictionary_of_a_manifest_has_at_most_one_mebibyte() {
    let urls = [ContentCoding::Zstd.encode(b"s3://b/x").unwrap()];
    let fields = [FlatField::Unset, FlatField::Unset, FlatField::Unset, FlatField::Shared(0)];
    let with_dictionary = |bytes: usize| manifest(2, &fields, &urls, text(vec![7; bytes]));
    assert_eq!(parsed(&with_dictionary(1 << 20)).unwrap().count(node()), 2);
    let refusal = refusal(&with_dictionary((1 << 20) + 1));
    assert!(refusal.contains("longer than 1 MiB"), "{refusal}");
    let found = parsed(&manifest(2, &fields, &urls, FlatField::Unset)).unwrap();
    let found = found.find(node(), &[1]).unwrap();
    assert!(matches!(found, Some(ChunkReference::Virtual { url, .. }) if url == "s3://b/x"));
}

fn node() -> StoredNodeId {
    StoredNodeId([1; 8])
}

#[test]
fn a_file_that_fits_is_read_though_the_next_guess_of_its_size_would_not_fit() {
    let body = vec![0; 300 << 10];
    let file = file_of(FileKind::Manifest, 1, &ContentCoding::Zstd.encode(&body).unwrap());
    let budget = ContainerBudget::new(400 << 10);
    assert_eq!(open(&file, FileKind::Manifest, &budget).unwrap().bytes, body);
    let refused = open(&file, FileKind::Manifest, &ContainerBudget::new(299 << 10)).unwrap_err();
    assert!(matches!(refused, ReferenceError::OverBudget { .. }), "{refused}");
    let mut all = budget.empty();
    all.resize(400 << 10).unwrap();
}

#[test]
fn keys_are_sorted_as_texts_where_paths_begin_alike() {
    let paths = ["/", "/a", "/a/b", "/a-", "/a0", "/ab", "/a/zarr", "/c", "/zarr", "/zarr.json2", "/é"];
    let nodes =
        paths.iter().enumerate().map(|(at, path)| if at % 2 == 0 { group(path) } else { array(path) });
    let file = snapshot(1, None, nodes.collect());
    let snapshot = RepositorySnapshot::parse(&file, id(1), &ContainerBudget::default()).unwrap();
    let join =
        |path: &str, name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
    let keys: Vec<String> = (0..)
        .map_while(|at| snapshot.keys_at(at))
        .map(|keys| match keys {
            KeysOf::Document(node) => join(node.path, "zarr.json"),
            KeysOf::Chunks(node) => join(node.path, "c"),
        })
        .collect();
    assert_eq!(keys.len(), paths.len() + paths.len() / 2);
    assert!(keys.is_sorted(), "{keys:?}");
}
