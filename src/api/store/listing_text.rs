//! Store listings for all routes: one sequence of keys and prefixes, sent as a page or as a streamed text.
//!
//! Memory holds one page or one part of the text, and only the corresponding part of the backend's listing. An incomplete
//! listing is never sent as complete: the request fails, or the connection is aborted.

use std::future::ready;

use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::key::{StoreKey, StorePrefix};
use crate::store::{DirEntries, DirEntry, Store, StoreError};

/// Bytes of keys and prefixes after which a page ends, whatever its limit: the longest key has 1024 bytes.
const PAGE_BYTES: usize = 256 << 10;
/// Bytes of text that are collected before the response begins. A shorter text is sent whole, with a `Content-Length`.
const FIRST_BYTES: usize = 16 << 10;
/// Maximum number of bytes per part after that; a part ends earlier if no further entry is ready.
const PART_BYTES: usize = 64 << 10;

/// The keys and prefixes one level below a prefix, or with `recursive` all keys below it, that sort after the text
/// `after`. Sorted by their bytes.
pub(crate) fn entries(store: &dyn Store, prefix: &StorePrefix, recursive: bool, after: &str) -> DirEntries {
    if !recursive {
        return store.list_dir_after(prefix, after);
    }
    let floor = StoreKey::longest_prefix(after).filter(|floor| floor.as_str() > prefix.as_str());
    let after = after.to_owned();
    let keys = store.list_prefix(prefix, floor.as_ref()).map_ok(DirEntry::Key);
    keys.try_filter(move |key| ready(key.text() > after.as_str())).boxed()
}

/// A page of a listing.
#[derive(Debug, Default)]
pub(crate) struct ListingText {
    /// The entries, sorted by their bytes.
    pub(crate) entries: Vec<DirEntry>,
    /// Whether further entries follow.
    pub(crate) more: bool,
}

impl ListingText {
    /// A page of the next `limit` entries, or fewer if their names are long.
    ///
    /// # Errors
    /// Any failure of the store.
    pub(crate) async fn of(mut entries: DirEntries, limit: usize) -> Result<Self, StoreError> {
        let (mut page, mut bytes) = (Self::default(), 0);
        while let Some(entry) = entries.try_next().await? {
            if page.entries.len() >= limit || bytes >= PAGE_BYTES {
                page.more = true;
                break;
            }
            bytes += entry.text().len();
            page.entries.push(entry);
        }
        Ok(page)
    }

    /// The text after which the next page starts; `None` if this is the last page.
    pub(crate) fn next(&self) -> Option<&str> {
        self.entries.last().filter(|_| self.more).map(DirEntry::text)
    }
}

/// The text of a whole listing as a streamed body: `head`, the text that `write` appends for each entry, and `foot`. `None`
/// if the listing is empty.
///
/// # Errors
/// Any failure of the store before the response begins. A later failure ends the body with an error.
pub(crate) async fn text(
    entries: DirEntries,
    head: String,
    mut write: impl FnMut(&mut String, DirEntry) + Send + 'static,
    foot: String,
) -> Result<Option<Body>, StoreError> {
    let (mut entries, mut text) = (entries.fuse(), head);
    let Some(first) = entries.try_next().await? else { return Ok(None) };
    write(&mut text, first);
    while text.len() < FIRST_BYTES {
        match entries.try_next().await? {
            Some(entry) => write(&mut text, entry),
            None => return Ok(Some(Body::from(text + &foot))),
        }
    }
    let rest = stream::try_unfold(Some((entries, write, foot)), move |state| async move {
        let Some((mut entries, mut write, foot)) = state else { return Ok(None) };
        let mut part = String::new();
        match entries.try_next().await? {
            Some(entry) => write(&mut part, entry),
            None => return Ok(Some((Bytes::from(foot), None))),
        }
        while part.len() < PART_BYTES
            && let Some(Some(entry)) = entries.next().now_or_never()
        {
            write(&mut part, entry?);
        }
        Ok::<_, StoreError>(Some((Bytes::from(part), Some((entries, write, foot)))))
    });
    Ok(Some(Body::from_stream(stream::iter([Ok(Bytes::from(text))]).chain(rest))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::test_store::TestStore;

    const KEYS: &[(&str, &[u8])] = &[
        ("a", b"1"),
        ("a/x", b"2"),
        ("a/y", b"3"),
        ("b", b"4"),
        ("c/x", b"5"),
        ("d.json", b"6"),
        ("d/x", b"7"),
    ];

    #[tokio::test]
    async fn consecutive_pages_have_no_gap_and_no_repetition() {
        let (store, root) = (TestStore::with(KEYS), StorePrefix::root());
        for (recursive, expected) in [
            (false, &["a", "a/", "b", "c/", "d.json", "d/"][..]),
            (true, &["a", "a/x", "a/y", "b", "c/x", "d.json", "d/x"]),
        ] {
            for limit in 1..8 {
                let (mut after, mut seen) = (String::new(), Vec::new());
                loop {
                    let page =
                        ListingText::of(entries(&*store, &root, recursive, &after), limit).await.unwrap();
                    assert!(page.entries.len() == limit || !page.more);
                    seen.extend(page.entries.iter().map(|entry| entry.text().to_owned()));
                    let Some(next) = page.next() else { break };
                    after = next.to_owned();
                }
                assert_eq!(seen, expected);
            }
        }
    }

    #[tokio::test]
    async fn a_page_of_long_keys_ends_early_and_has_a_next_page() {
        let store = TestStore::new();
        for number in 0..1000 {
            store.insert(&format!("{number:04}{}", "n".repeat(1000)), Bytes::new());
        }
        let page = ListingText::of(entries(&*store, &StorePrefix::root(), true, ""), 1000).await.unwrap();
        assert!(page.more && (200..300).contains(&page.entries.len()), "{}", page.entries.len());
    }

    #[tokio::test]
    async fn a_long_text_is_streamed_and_a_short_one_has_a_length() {
        let line = |text: &mut String, entry: DirEntry| {
            text.push_str(entry.text());
            text.push('\n');
        };
        for (keys, is_whole) in [(10, true), (20_000, false)] {
            let store = TestStore::new();
            let names: Vec<String> = (0..keys).map(|number| format!("{number:05}")).collect();
            for name in &names {
                store.insert(name, Bytes::new());
            }
            let entries = entries(&*store, &StorePrefix::root(), false, "");
            let body = text(entries, "head\n".to_owned(), line, "foot\n".to_owned()).await.unwrap().unwrap();
            assert_eq!(http_body::Body::size_hint(&body).exact().is_some(), is_whole);
            let parts: Vec<Bytes> = body.into_data_stream().try_collect().await.unwrap();
            assert!(parts.iter().all(|part| part.len() < PART_BYTES + 2 * 1024));
            let all = String::from_utf8(parts.concat()).unwrap();
            assert_eq!(all, format!("head\n{}\nfoot\n", names.join("\n")));
        }
    }

    #[tokio::test]
    async fn an_incomplete_text_ends_with_an_error() {
        let line = |text: &mut String, entry: DirEntry| text.push_str(entry.text());
        for (cut, begins) in [(0, false), (10, false), (9_000, true)] {
            let store = TestStore::new();
            (0..10_000).for_each(|number| drop(store.insert(&format!("{number:05}"), Bytes::new())));
            *store.list_cut.lock().unwrap() = Some(cut);
            let entries = entries(&*store, &StorePrefix::root(), false, "");
            let body = text(entries, String::new(), line, "foot".to_owned()).await;
            assert_eq!(body.is_ok(), begins, "{cut}");
            if let Ok(Some(body)) = body {
                assert!(body.into_data_stream().try_collect::<Vec<_>>().await.is_err());
            }
        }
    }
}
