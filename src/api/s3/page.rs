//! One page of an S3 listing: keys and common prefixes as one sequence, sorted by their bytes (S3 API reference,
//! `ListObjectsV2`).
//!
//! A prefix can be any text, not only one that ends in `/`. The store lists only the directory of the prefix, from the start
//! of the page to its end. XML and tokens are in `list` and `xml`.

use std::future::ready;

use futures::{StreamExt, TryStreamExt};

use crate::api::store::listing_text;
use crate::api::store::listing_text::ListingText;
use crate::key::StorePrefix;
use crate::store::{Store, StoreError};

/// The selection and the start of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The text with which every key begins.
    pub(crate) prefix: String,
    /// Whether keys with a further `/` after the prefix are grouped into a common prefix.
    pub(crate) grouped: bool,
    /// The text after which every key and common prefix sorts.
    pub(crate) after: String,
    /// Maximum number of keys and common prefixes.
    pub(crate) limit: usize,
}

impl Asked {
    /// Reads the page.
    ///
    /// # Errors
    /// Any failure of the store: an incomplete page is never returned as complete.
    pub(crate) async fn page(&self, store: &dyn Store) -> Result<ListingText, StoreError> {
        let directory =
            self.prefix.rfind('/').and_then(|slash| self.prefix.get(..=slash)).unwrap_or_default();
        // A text that is not a valid prefix matches no key.
        let Ok(directory) = StorePrefix::parse(directory) else { return Ok(ListingText::default()) };
        if self.limit == 0 {
            return Ok(ListingText::default());
        }
        let begin = before(&self.prefix).max(self.after.clone());
        let (first, prefix) = (self.prefix.clone(), self.prefix.clone());
        let entries = listing_text::entries(store, &directory, !self.grouped, &begin)
            .try_skip_while(move |entry| ready(Ok(entry.text() < first.as_str())))
            .try_take_while(move |entry| ready(Ok(entry.text().starts_with(&prefix))));
        ListingText::of(entries.boxed(), self.limit).await
    }
}

/// A text that sorts just before all texts that begin with `prefix`, so that few other keys lie between them.
fn before(prefix: &str) -> String {
    let mut text = prefix.to_owned();
    if text.ends_with('/') {
        // The directory is listed from its beginning.
        return text;
    }
    if let Some(last) = text.pop() {
        let lower = (char::MIN..last).next_back();
        text.extend(lower.into_iter().flat_map(|lower| [lower, char::MAX]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::test_store::TestStore;

    #[test]
    fn a_listing_starts_just_before_its_prefix() {
        for (prefix, text) in [
            ("", ""),
            ("a/", "a/"),
            ("b", "a\u{10ffff}"),
            ("a/.", "a/-\u{10ffff}"),
            ("a/\u{e000}", "a/\u{d7ff}\u{10ffff}"),
            ("a/\0", "a/"),
        ] {
            assert_eq!(before(prefix), text, "{prefix:?}");
            assert!(
                text <= prefix && !text.starts_with(prefix) || prefix.is_empty() || prefix.ends_with('/')
            );
        }
    }

    async fn asked(store: &TestStore, asked: &Asked) -> Vec<&'static str> {
        asked.page(store).await.unwrap();
        store.take_asked()
    }

    #[tokio::test]
    async fn a_page_takes_one_listing_request_at_most() {
        let store = TestStore::with(&[("a/b", b"1"), ("a/bc", b"2"), ("a/c", b"3")]);
        let all = Asked { limit: 10, ..Asked::default() };
        let with = |prefix: &str| Asked { prefix: prefix.to_owned(), ..all.clone() };
        assert_eq!(asked(&store, &with("a/")).await, ["list_prefix"]);
        assert_eq!(asked(&store, &with("a/b")).await, ["list_prefix"]);
        assert_eq!(asked(&store, &Asked { after: "a/b".to_owned(), ..with("a/b") }).await, ["list_prefix"]);
        assert_eq!(asked(&store, &Asked { grouped: true, ..with("a/b") }).await, ["list_dir"]);
        for none in ["/", "a//", "../", "a\0/"] {
            assert!(asked(&store, &with(none)).await.is_empty(), "{none:?}");
        }
        assert!(asked(&store, &Asked { limit: 0, ..with("a/") }).await.is_empty());
    }
}
