//! One page of a listing: keys and common prefixes as one sequence, in the order of their bytes (S3 API reference,
//! `ListObjectsV2`).
//!
//! A prefix is any text here, not only one that ends in `/`. What is asked of the store is no more than needed: the
//! prefix's own directory, from where the page begins to where it ends. Nothing here knows of XML or tokens.

use std::future::ready;

use futures::{StreamExt, TryStreamExt};

use crate::api::store::listing_text;
use crate::api::store::listing_text::ListingText;
use crate::key::StorePrefix;
use crate::store::{Store, StoreError};

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// What every key begins with.
    pub(crate) prefix: String,
    /// Whether keys that go on after the next `/` are told by their common prefix alone.
    pub(crate) grouped: bool,
    /// What every key and common prefix comes after.
    pub(crate) after: String,
    /// Most keys and common prefixes.
    pub(crate) limit: usize,
}

impl Asked {
    /// Reads the page.
    ///
    /// # Errors
    /// Any failure of the store: a listing that cannot be finished is never a shorter one.
    pub(crate) async fn page(&self, store: &dyn Store) -> Result<ListingText, StoreError> {
        let directory =
            self.prefix.rfind('/').and_then(|slash| self.prefix.get(..=slash)).unwrap_or_default();
        // Of what can be no prefix there are no keys.
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

/// A text right before all that begin with `prefix`, so that hardly any other stands between the two.
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
    fn hardly_anything_stands_between_a_prefix_and_the_text_before_it() {
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
    async fn no_more_is_asked_of_the_store_than_the_page_needs() {
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
