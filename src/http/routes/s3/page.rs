//! One page of a listing: keys and common prefixes as one sequence, in the order of their bytes (S3 API reference,
//! `ListObjectsV2`).
//!
//! A prefix is any text here, not only one that ends in `/`. What is asked of the store is no more than needed: the
//! prefix's own directory, from where the page begins to where it ends. Nothing here knows of XML or tokens.

use std::pin::pin;

use futures::TryStreamExt;

use crate::key::{KeyError, MAX_KEY_BYTES, StoreKey, StorePrefix};
use crate::store::{ListEntry, Store, StoreError};

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// What every key begins with.
    pub(super) prefix: String,
    /// Whether keys that go on after the next `/` are told by their common prefix alone.
    pub(super) grouped: bool,
    /// What every key and common prefix comes after.
    pub(super) after: String,
    /// Most keys and common prefixes.
    pub(super) limit: usize,
}

/// What a page consists of.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// A key.
    Key(ListEntry),
    /// A common prefix.
    Prefix(StorePrefix),
}

impl Item {
    /// The key's or prefix's text, by which the two are one sequence.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Key(entry) => entry.key.as_str(),
            Self::Prefix(prefix) => prefix.as_str(),
        }
    }
}

/// A page.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    /// In the order of their bytes.
    pub(super) items: Vec<Item>,
    /// Whether others follow.
    pub(super) more: bool,
}

impl Asked {
    /// Reads the page.
    ///
    /// # Errors
    /// Any failure of the store: a listing that cannot be finished is never a shorter one.
    pub(super) async fn page(&self, store: &dyn Store) -> Result<Page, StoreError> {
        let (directory, rest) = match self.prefix.rfind('/') {
            Some(slash) => self.prefix.split_at(slash.saturating_add(1)),
            None => ("", self.prefix.as_str()),
        };
        // Of what can be no prefix there are no keys.
        let Ok(directory) = StorePrefix::parse(directory) else { return Ok(Page::default()) };
        if self.limit == 0 {
            return Ok(Page::default());
        }
        let mut items = if self.grouped {
            self.directly_under(store, &directory).await?
        } else {
            self.all_under(store, &directory, rest).await?
        };
        let more = items.len() > self.limit;
        items.truncate(self.limit);
        Ok(Page { items, more })
    }

    /// The page of keys and prefixes directly under a directory, and what follows it.
    async fn directly_under(
        &self,
        store: &dyn Store,
        directory: &StorePrefix,
    ) -> Result<Vec<Item>, StoreError> {
        let found = store.list_dir(directory).await?;
        let keys = found.keys.into_iter().map(Item::Key);
        let prefixes = found.prefixes.into_iter().map(Item::Prefix);
        let mut items: Vec<_> = keys
            .chain(prefixes)
            .filter(|item| item.text().starts_with(&self.prefix) && item.text() > self.after.as_str())
            .collect();
        items.sort_unstable_by(|a, b| a.text().cmp(b.text()));
        Ok(items)
    }

    /// The page of all keys below a directory that go on with `rest`, and one key more if there is one.
    async fn all_under(
        &self,
        store: &dyn Store,
        directory: &StorePrefix,
        rest: &str,
    ) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        let mut after = self.after.as_str();
        if after < self.prefix.as_str() && !rest.is_empty() {
            // The prefix is a key itself perhaps; every other key that begins with it comes after.
            match directory.key(rest) {
                Ok(key) => {
                    let info = store.head(&key).await?;
                    items.extend(info.map(|info| Item::Key(ListEntry { key, info })));
                    after = &self.prefix;
                }
                // `.` is no name, but `.zarray` begins with it.
                Err(KeyError::DotSegment(_)) => {}
                Err(_) => return Ok(items),
            }
        }
        let floor = floor(after).filter(|floor| floor.as_str() > directory.as_str());
        let mut entries = pin!(store.list_prefix(directory, floor.as_ref()));
        while items.len() <= self.limit
            && let Some(entry) = entries.try_next().await?
        {
            let key = entry.key.as_str();
            if key <= after || key < self.prefix.as_str() {
                continue;
            }
            if !key.starts_with(&self.prefix) {
                break;
            }
            items.push(Item::Key(entry));
        }
        Ok(items)
    }
}

/// A key from which a listing begins no later than after `text`: the longest key that `text` begins with.
fn floor(text: &str) -> Option<StoreKey> {
    let front = text.get(..text.floor_char_boundary(MAX_KEY_BYTES))?;
    let shorter = |text: &&str| {
        let (last, _) = text.char_indices().next_back()?;
        front.get(..last)
    };
    std::iter::successors(Some(front), shorter).find_map(|text| StoreKey::parse(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::test_store::TestStore;

    #[test]
    fn a_listing_begins_at_a_key_whatever_the_text_it_begins_after() {
        for (text, key) in [
            ("", None),
            ("/", None),
            ("a/b", Some("a/b")),
            ("a/", Some("a")),
            ("a//b", Some("a")),
            ("a/../b", Some("a")),
            ("a/.zarray", Some("a/.zarray")),
            ("a\0b", Some("a")),
            ("é\u{7f}", Some("é")),
        ] {
            assert_eq!(floor(text).as_ref().map(StoreKey::as_str), key, "{text:?}");
        }
        let long = "é".repeat(600);
        assert_eq!(floor(&long).unwrap().as_str().len(), 1024);
        assert_eq!(floor(&"a/".repeat(600)).unwrap().as_str().len(), 127);
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
        assert_eq!(asked(&store, &with("a/b")).await, ["head", "list_prefix"]);
        assert_eq!(asked(&store, &Asked { after: "a/b".to_owned(), ..with("a/b") }).await, ["list_prefix"]);
        assert_eq!(asked(&store, &Asked { grouped: true, ..with("a/b") }).await, ["list_dir"]);
        for none in ["/", "a//", "../", "a\0/"] {
            assert!(asked(&store, &with(none)).await.is_empty(), "{none:?}");
        }
        assert!(asked(&store, &Asked { limit: 0, ..with("a/") }).await.is_empty());
    }
}
