//! Documents of references, and files of them in Parquet: whatever they are made of, they are read within their budget or refused, what is read is found
//! again, and no URL leads out of a prefix that it begins with.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zarrd::store::{ContainerBudget, Reference, ReferencePlace, check_records, parse_kerchunk};

/// The most memory that a document may take.
const BUDGET_BYTES: u64 = 4 << 20;
/// The directory of the document.
const BASE: &str = "https://host/documents/";

fuzz_target!(|document: &[u8]| {
    let budget = ContainerBudget::new(BUDGET_BYTES);
    // As the file itself says.
    let parse = if document.starts_with(b"PAR1") { check_records } else { parse_kerchunk };
    let Ok(table) = parse(document, &budget) else { return };
    let mut before = None;
    for at in 0..table.len() {
        let key = table.key(at).unwrap();
        assert!(before < Some(key), "sorted, each once");
        assert_eq!(table.find(key), Some(at));
        before = Some(key);
        match table.reference(at).unwrap() {
            Reference::Inline(bytes) => assert!(bytes.len() as u64 <= BUDGET_BYTES),
            Reference::Whole(url) => check(url),
            Reference::Part { url, offset, length } => {
                assert!(offset.checked_add(length).is_some());
                check(url);
            }
        }
    }
});

fn check(url: &str) {
    let Ok(place) = ReferencePlace::of_reference(url, BASE) else { return };
    let text = place.as_str();
    assert!(text.ends_with(place.path()) && !place.path().is_empty());
    assert!(place.path().split('/').all(|name| !name.is_empty() && name != "." && name != ".."));
    assert!(!text.contains(['\0', '\n']));
    let (scheme, rest) = text.split_once("://").unwrap();
    assert_eq!((scheme, scheme.to_lowercase()), (place.scheme(), scheme.to_owned()));
    let authority = rest.split('/').next().unwrap();
    assert!(!authority.contains('@') && (scheme == "file") == authority.is_empty());
}
