//! What hostile documents may take: work, memory and requests.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{StreamExt, once};
use serde_json::json;

use crate::error::{Classify, ErrorClass};
use crate::key::StoreKey;
use crate::store::references::load::parsed;
use crate::store::tests::cpu;
use crate::store::{
    ContainerBudget, ObjectBackend, ReferenceError, SharedStore, WriteCondition, check_records,
    parse_kerchunk,
};

#[test]
fn a_short_document_with_endless_work_is_refused() {
    let document = json!({"version": 1, "templates": {"t": "x".repeat(4000)}, "gen": [{
        "key": "k{{i*0}}", "url": "{{t}}", "dimensions": {"i": {"stop": 60_000_000}},
    }]});
    let refused = parse_kerchunk(document.to_string().as_bytes(), &ContainerBudget::new(u64::MAX >> 1));
    let refused = refused.unwrap_err();
    assert_eq!(refused.class(), ErrorClass::ReferencesRefused);
    assert!(refused.to_string().contains("too much work"), "{refused}");
}

#[tokio::test]
async fn a_short_document_is_not_parsed_on_the_thread_that_asks_for_it() {
    let files: SharedStore = Arc::new(ObjectBackend::memory(true));
    let file = StoreKey::parse("refs.json").unwrap();
    let body = once(async { Ok(Bytes::from_static(b"{}")) }).boxed();
    files.set(&file, body, WriteCondition::Always).await.unwrap();
    let info = files.head(&file).await.unwrap().unwrap();
    let (pool, budget) = (cpu(), ContainerBudget::default());
    let parse = |_: &Bytes, _: &ContainerBudget| Ok(std::thread::current().id());
    let thread = parsed((&files, &file), info, (&pool, &budget), parse).await.unwrap();
    assert_ne!(thread, std::thread::current().id());
}

#[test]
fn pages_of_a_file_are_charged_before_they_are_decompressed() {
    // Four texts, each in a page of 8 MiB that is compressed to 300 bytes.
    let file = include_bytes!("../../../../tests/data/kerchunk/hostile/long-pages.parq");
    let refused = check_records(file, &ContainerBudget::new(16 << 20)).unwrap_err();
    assert!(
        matches!(refused, ReferenceError::OverBudget { needed, limit: 0x0100_0000 } if needed > 16 << 20),
        "{refused}"
    );
    // Where they fit, they are read, and what is wrong with the file is something else.
    let budget = ContainerBudget::new(64 << 20);
    let refused = check_records(file, &budget).unwrap_err().to_string();
    assert!(refused.contains("it lacks one of the columns"), "{refused}");
    let mut all = budget.empty();
    all.resize(64 << 20).unwrap();
}

#[test]
fn templates_are_charged_before_they_are_parsed() {
    let template = format!("{{{{1{}}}}}", "+1".repeat(15));
    let templates: serde_json::Map<_, _> = (0..1000).map(|at| (format!("t{at}"), json!(template))).collect();
    let document = json!({"version": 1, "templates": templates, "refs": {"a": "b"}}).to_string();
    let refused = parse_kerchunk(document.as_bytes(), &ContainerBudget::new(1 << 20)).unwrap_err();
    assert!(matches!(refused, ReferenceError::OverBudget { .. }), "{refused}");
    assert_eq!(parse_kerchunk(document.as_bytes(), &ContainerBudget::default()).unwrap().len(), 1);
}

#[test]
fn a_template_has_at_most_sixteen_kibibytes() {
    let document =
        json!({"version": 1, "templates": {"t": format!("{{{{1}}}}{}", "x".repeat(16 << 10))}, "refs": {}});
    let refused = parse_kerchunk(document.to_string().as_bytes(), &ContainerBudget::default()).unwrap_err();
    assert!(refused.to_string().contains("a template is too long"), "{refused}");
}

#[test]
fn the_bytes_of_base64_are_charged_before_they_are_decoded() {
    let encoded = "AAAA".repeat(256 << 10);
    let document = json!({"a": format!("base64:{encoded}")}).to_string();
    // The document, the decoded bytes, and these again in the table, which may grow to twice as much.
    let (least, most) = (document.len() as u64 + (1800 << 10), document.len() as u64 + (2600 << 10));
    let budget = ContainerBudget::new(least);
    let refused = parse_kerchunk(document.as_bytes(), &budget).map(drop);
    assert!(matches!(refused, Err(ReferenceError::OverBudget { .. })), "{refused:?}");
    assert_eq!(parse_kerchunk(document.as_bytes(), &ContainerBudget::new(most)).unwrap().len(), 1);
}

/// A file with a checksum for each page, which pyarrow writes on request.
const CHECKSUMS: &[u8] = include_bytes!("../../../../tests/data/kerchunk/hostile/checksums.parq");

fn refused(file: &[u8]) -> String {
    check_records(file, &ContainerBudget::default()).unwrap_err().to_string()
}

fn places_of(file: &[u8], text: &str) -> Vec<usize> {
    let places = file.windows(text.len()).enumerate();
    places.filter(|(_, window)| *window == text.as_bytes()).map(|(at, _)| at).collect()
}

#[test]
fn a_page_that_is_not_what_its_checksum_says_is_refused() {
    assert_eq!(check_records(CHECKSUMS, &ContainerBudget::default()).unwrap().len(), 4);
    for at in places_of(CHECKSUMS, "s3://bucket/part-") {
        for bit in 0..8 {
            let mut damaged = CHECKSUMS.to_vec();
            damaged[at + 17] ^= 1 << bit;
            assert!(refused(&damaged).contains("another checksum"), "{}", refused(&damaged));
        }
    }
    assert_eq!(places_of(CHECKSUMS, "s3://bucket/part-").len(), 3);
}

#[test]
fn a_file_without_one_of_the_columns_of_references_is_refused() {
    for column in ["path", "offset", "size"] {
        let mut renamed = CHECKSUMS.to_vec();
        let places = places_of(CHECKSUMS, column);
        assert!(places.len() >= 2, "in the schema and in the group of rows");
        for at in places {
            renamed[at] = b'_';
        }
        // The paths in the pages stay as they are.
        assert!(refused(&renamed).contains("it lacks one of the columns"), "{column}: {}", refused(&renamed));
    }
}
