//! Listings of the S3 dialect against a naive model: all keys sorted, then prefix, delimiter and pages by definition.

use std::collections::BTreeSet;

use axum::http::{Method, StatusCode};
use proptest::prelude::*;
use proptest::test_runner::Config;
use zarrd::store::{SharedStore, StoreOptions};

use crate::support::hierarchy::memory;
use crate::support::server::{Server, cpu, put};

/// The entries of a listing, in order: keys, and common prefixes.
type Items = Vec<String>;

/// The content of one page.
#[derive(Debug, Default)]
struct Page {
    items: Items,
    key_count: Option<usize>,
    next: Option<String>,
    truncated: bool,
}

/// The definition: keys that begin with the prefix, listed by their common prefix if they go on after a delimiter;
/// what comes after `after`, each once.
fn model(keys: &BTreeSet<String>, prefix: &str, grouped: bool, after: &str) -> Items {
    let mut items = BTreeSet::new();
    for key in keys {
        let Some(rest) = key.strip_prefix(prefix) else { continue };
        let item = match rest.split_once('/') {
            Some((name, _)) if grouped => format!("{prefix}{name}/"),
            _ => key.clone(),
        };
        items.insert(item);
    }
    items.into_iter().filter(|item| item.as_str() > after).collect()
}

/// The elements of a document: paths of names, and their texts. Fails unless it is well-formed.
fn elements(text: &str) -> Vec<(String, String)> {
    let mut rest = text.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
    let (mut open, mut found) = (Vec::<&str>::new(), Vec::new());
    let mut content = String::new();
    while let Some((before, after)) = rest.split_once('<') {
        content.push_str(&unescaped(before));
        let (tag, after) = after.split_once('>').expect("a tag ends");
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            found.push((open.join("."), std::mem::take(&mut content)));
            assert_eq!(open.pop(), Some(name), "elements end where they began");
        } else {
            assert_eq!(content, "", "text stands in leaves");
            open.push(tag.split(' ').next().unwrap());
        }
    }
    assert!(open.is_empty() && rest.is_empty());
    found
}

fn unescaped(text: &str) -> String {
    assert!(
        !text.contains('>') && text.chars().all(|c| c >= ' ' && c != '\u{fffe}' && c != '\u{ffff}'),
        "{text:?}"
    );
    let mut parts = text.split('&');
    let mut plain = parts.next().unwrap().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(';').expect("a reference ends");
        plain.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "#9" => '\t',
            "#10" => '\n',
            "#13" => '\r',
            other => panic!("{other}"),
        });
        plain.push_str(rest);
    }
    plain
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Asks for one page, percent-encoded.
async fn page(server: &Server, query: &str) -> Page {
    let answer = server.get(&format!("/s3/m?encoding-type=url&{query}")).await;
    let text = std::str::from_utf8(&answer.body).unwrap();
    assert_eq!(answer.status, StatusCode::OK, "{query}: {text}");
    let mut page = Page::default();
    let (mut keys, mut prefixes) = (Items::new(), Items::new());
    for (path, text) in elements(text) {
        match path.strip_prefix("ListBucketResult.").unwrap_or_default() {
            "Contents.Key" => {
                assert!(prefixes.is_empty(), "keys come first");
                keys.push(decoded(&text));
            }
            "CommonPrefixes.Prefix" => prefixes.push(decoded(&text)),
            "KeyCount" => page.key_count = Some(text.parse().unwrap()),
            "NextContinuationToken" => page.next = Some(text),
            "NextMarker" => page.next = Some(decoded(&text)),
            "IsTruncated" => page.truncated = text == "true",
            _ => {}
        }
    }
    assert!(keys.is_sorted() && prefixes.is_sorted(), "{keys:?} {prefixes:?}");
    page.items = [keys, prefixes].concat();
    page.items.sort();
    page
}

/// Follows all pages of `limit` and returns their entries together.
async fn pages(server: &Server, query: &str, v2: bool, limit: usize, expected: &Items) -> Items {
    let (mut seen, mut position) = (Items::new(), String::new());
    loop {
        let got = page(server, &format!("{query}&max-keys={limit}{position}")).await;
        assert_eq!(got.key_count, v2.then_some(got.items.len()));
        assert_eq!(got.next.is_some(), got.truncated);
        assert_eq!(got.items.len(), limit.min(expected.len() - seen.len()), "pages are full until the last");
        seen.extend(got.items);
        let name = if v2 { "continuation-token" } else { "marker" };
        let Some(next) = got.next else { return seen };
        position = format!("&{name}={}", encoded(&next));
    }
}

/// Keys as sets of segments that begin with each other, with `/` among what sorts before and after it.
fn keys() -> impl Strategy<Value = BTreeSet<String>> {
    let segment = prop_oneof![
        4 => prop::sample::select(vec!["a", "ab", "a.b", "a-", "b", "0", "0 1", ".z", "é", "a&<b>", "a%2F+", "~", "\u{ffff}"]),
        1 => Just("zarr.json"),
    ];
    let key = prop::collection::vec(segment, 1..4).prop_map(|segments| segments.join("/"));
    prop::collection::btree_set(key, 0..24)
}

/// A text to begin with: the front of some key, or anything.
fn texts() -> impl Strategy<Value = (prop::sample::Index, prop::sample::Index, Option<String>)> {
    let odd =
        prop::sample::select(vec!["/", "a//", "a/..", ".", "a/.", "a\u{1}", "zz", "a/b/c/d/", "\u{10ffff}"]);
    (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        prop::option::weighted(0.2, odd.prop_map(str::to_owned)),
    )
}

fn text_of(
    keys: &BTreeSet<String>,
    (which, length, odd): &(prop::sample::Index, prop::sample::Index, Option<String>),
) -> String {
    if let Some(odd) = odd {
        return odd.clone();
    }
    let mut all: Vec<&str> = keys.iter().map(String::as_str).collect();
    all.push("");
    let key = all[which.index(all.len())];
    let ends: Vec<usize> = key.char_indices().map(|(at, _)| at).chain([key.len()]).collect();
    key[..ends[length.index(ends.len())]].to_owned()
}

async fn holds(store: SharedStore, keys: &BTreeSet<String>, prefix: &str, after: &str, limit: usize) {
    for key in keys {
        put(&store, key, key.clone()).await;
    }
    let server = Server::of(store);
    for grouped in [false, true] {
        let delimiter = if grouped { "&delimiter=/" } else { "" };
        let expected = model(keys, prefix, grouped, after);
        let prefix = encoded(prefix);
        let v2 = format!("list-type=2&prefix={prefix}{delimiter}&start-after={}", encoded(after));
        assert_eq!(pages(&server, &v2, true, limit, &expected).await, expected, "{v2}");
        let first = page(&server, &format!("prefix={prefix}{delimiter}&marker={}", encoded(after))).await;
        assert_eq!(first.items, expected, "as one page of the first version");
        if after.is_empty() {
            let v1 = format!("prefix={prefix}{delimiter}");
            assert_eq!(pages(&server, &v1, false, limit, &expected).await, expected, "{v1}");
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 96, failure_persistence: None, ..Config::default() })]

    #[test]
    fn pages_contain_each_specified_entry_once(
        keys in keys(), prefix in texts(), after in prop::option::of(texts()), limit in 1_usize..5,
    ) {
        let prefix = text_of(&keys, &prefix);
        let after = after.map(|after| text_of(&keys, &after)).unwrap_or_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(holds(memory(), &keys, &prefix, &after, limit));
    }
}

proptest! {
    #![proptest_config(Config { cases: 32, failure_persistence: None, ..Config::default() })]

    #[test]
    fn pages_of_a_directory_contain_each_specified_entry_once(
        keys in keys(), prefix in texts(), after in prop::option::of(texts()), limit in 1_usize..5,
    ) {
        // On a file system no key is another's prefix.
        let clashes = |key: &String| keys.iter().any(|other| other.starts_with(&format!("{key}/")));
        let keys: BTreeSet<String> = keys.iter().filter(|key| !clashes(key)).cloned().collect();
        let prefix = text_of(&keys, &prefix);
        let after = after.map(|after| text_of(&keys, &after)).unwrap_or_default();
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let options = StoreOptions { writable: true, ..StoreOptions::default() };
            let store = zarrd::store::open(folder.path().to_str().unwrap(), &options, &cpu()).unwrap();
            holds(store, &keys, &prefix, &after, limit).await;
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_prefix_that_is_no_file_name_has_no_keys() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), "1").unwrap();
    let store =
        zarrd::store::open(folder.path().to_str().unwrap(), &StoreOptions::default(), &cpu()).unwrap();
    let server = Server::of(store);
    for prefix in ["a".repeat(300), "a".repeat(2000), "a/".repeat(100), "a/b".to_owned(), "a/".to_owned()] {
        for delimiter in ["", "&delimiter=/"] {
            let page = page(&server, &format!("list-type=2&prefix={prefix}{delimiter}")).await;
            assert_eq!((page.items.len(), page.truncated), (0, false), "{prefix}");
        }
    }
    assert_eq!(page(&server, "list-type=2&prefix=a").await.items, ["a"]);
}

#[tokio::test]
async fn a_page_of_zero_keys_is_empty_and_not_truncated() {
    let store = memory();
    put(&store, "a", "1").await;
    let none = page(&Server::of(store), "list-type=2&max-keys=0").await;
    assert_eq!((none.items.len(), none.key_count, none.next, none.truncated), (0, Some(0), None, false));
}

#[tokio::test]
async fn keys_of_any_characters_give_well_formed_xml() {
    let store = memory();
    let keys = ["a&b", "a<b>\"'", "a ]]> b", "é\u{10ffff}", "x\u{fffe}y\u{ffff}", "%41"];
    for key in keys {
        put(&store, key, "").await;
    }
    let server = Server::of(store);
    let answer = server.get("/s3/m?prefix=&list-type=2").await;
    let found = elements(std::str::from_utf8(&answer.body).unwrap());
    let found: BTreeSet<_> =
        found.iter().filter(|(path, _)| path.ends_with(".Key")).map(|(_, key)| key.as_str()).collect();
    for key in keys {
        // Two characters cannot stand in XML.
        assert!(
            found.contains(key.replace('\u{fffe}', "%EF%BF%BE").replace('\u{ffff}', "%EF%BF%BF").as_str()),
            "{key:?}"
        );
    }
    let echoed = server.get("/s3/m?list-type=2&prefix=%01%09%0A%0D%00%7F%EF%BF%BF%3C").await;
    let found = elements(std::str::from_utf8(&echoed.body).unwrap());
    assert!(
        found.contains(&("ListBucketResult.Prefix".to_owned(), "%01\t\n\r%00\u{7f}%EF%BF%BF<".to_owned())),
        "{found:?}"
    );
}

#[tokio::test]
async fn references_of_a_repository_are_listed_by_directory_then_by_key() {
    let store = memory();
    for key in [
        "refs/branch.main/ref.json",
        "refs/branch.dev/ref.json",
        "refs/tag.v1/ref.json",
        "refsx",
        "snapshots/1",
    ] {
        put(&store, key, "{}").await;
    }
    let server = Server::of(store);
    let refs = page(&server, "list-type=2&prefix=refs%2F&delimiter=%2F").await;
    assert_eq!(refs.items, ["refs/branch.dev/", "refs/branch.main/", "refs/tag.v1/"]);
    let below = page(&server, &format!("list-type=2&prefix={}", encoded(&refs.items[1]))).await;
    assert_eq!(below.items, ["refs/branch.main/ref.json"]);
    let value = server.ask(Method::GET, &format!("/s3/m/{}", below.items[0]), &[]).await;
    assert_eq!((value.status, &*value.body), (StatusCode::OK, &b"{}"[..]));
}
