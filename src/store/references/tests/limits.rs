//! What hostile documents may take: work, memory and requests.

use std::fmt::Write as _;
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
    let mut operands = String::from("1");
    for _ in 0..15 {
        let _ = write!(operands, "+1");
    }
    let call = format!("{{{{{operands}}}}}").repeat(6);
    let document = json!({"version": 1, "templates": {"t": call}, "gen": [{
        "key": "k{{i*0}}", "url": "{{t()}}", "dimensions": {"i": {"stop": 60_000_000}},
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
    let budget = ContainerBudget::new(64 << 20);
    assert_eq!(check_records(file, &budget).unwrap().len(), 4);
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
