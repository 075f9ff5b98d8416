//! What a listing looks like: the HTML index page and the JSON page.
//!
//! The HTML is what fsspec, GDAL, Neuroglancer and rclone can read: a title with the requested path, one relative
//! link a line, everything outside `A-Za-z0-9-._~` percent-encoded, prefixes ending in `/`, and always complete.
//! The JSON names keys in full and comes in pages. Nothing here reads a store.

use serde::Serialize;
use utoipa::ToSchema;

use super::extract::encode;
use super::validators::{entity_tag, rfc3339};
use crate::key::StorePrefix;
use crate::store::{DirListing, ListEntry};

/// One page of a JSON listing.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ListingPage {
    /// The prefix that was listed: empty for the root, else ending in `/`.
    #[schema(example = "images/")]
    prefix: String,
    /// Keys, in the order of their bytes.
    keys: Vec<ListedKey>,
    /// Prefixes directly under the prefix, in the order of their bytes; none in a recursive listing.
    #[schema(example = json!(["images/raw/"]))]
    prefixes: Vec<String>,
    /// What to send as `after` for the next page; null on the last.
    next: Option<String>,
}

/// A key in a JSON listing.
#[derive(Debug, Serialize, ToSchema)]
struct ListedKey {
    /// The whole key.
    #[schema(example = "images/zarr.json")]
    key: String,
    /// Length of the value in bytes.
    size: u64,
    /// Entity tag of the value, quotes included.
    #[schema(example = "\"3f2a\"")]
    etag: String,
    /// When the value was written (RFC 3339, UTC), if the backend says.
    #[schema(example = "2026-01-31T12:00:00.000Z")]
    modified: Option<String>,
}

impl From<ListEntry> for ListedKey {
    fn from(entry: ListEntry) -> Self {
        Self {
            key: entry.key.as_str().to_owned(),
            size: entry.info.size,
            etag: entity_tag(&entry.info.version),
            modified: entry.info.modified.and_then(rfc3339),
        }
    }
}

/// The page of a recursive listing: `entries` has one more than `limit` if there is a next page.
pub(super) fn recursive_page(prefix: &StorePrefix, mut entries: Vec<ListEntry>, limit: usize) -> ListingPage {
    let more = entries.len() > limit;
    entries.truncate(limit);
    let next = entries.last().filter(|_| more).map(|entry| entry.key.as_str().to_owned());
    let keys = entries.into_iter().map(ListedKey::from).collect();
    ListingPage { prefix: prefix.as_str().to_owned(), keys, prefixes: Vec::new(), next }
}

/// The page of a listing that follows the key or prefix `after`; keys and prefixes are paged as one sequence.
pub(super) fn dir_page(prefix: &StorePrefix, dir: DirListing, after: &str, limit: usize) -> ListingPage {
    enum Item {
        Key(ListEntry),
        Prefix(StorePrefix),
    }
    let text = |item: &Item| match item {
        Item::Key(entry) => entry.key.as_str().to_owned(),
        Item::Prefix(prefix) => prefix.as_str().to_owned(),
    };
    let mut items: Vec<Item> =
        dir.keys.into_iter().map(Item::Key).chain(dir.prefixes.into_iter().map(Item::Prefix)).collect();
    items.retain(|item| text(item).as_str() > after);
    items.sort_by_cached_key(text);
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(text);
    let (mut keys, mut prefixes) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            Item::Key(entry) => keys.push(entry.into()),
            Item::Prefix(prefix) => prefixes.push(prefix.as_str().to_owned()),
        }
    }
    ListingPage { prefix: prefix.as_str().to_owned(), keys, prefixes, next }
}

/// The index page of a prefix.
pub(super) fn dir_html(raw_path: &str, prefix: &StorePrefix, dir: &DirListing) -> String {
    let mut page = html_head(raw_path);
    for entry in &dir.keys {
        page.push_str(&html_line(prefix, entry.key.as_str()));
    }
    for child in &dir.prefixes {
        page.push_str(&html_line(prefix, child.as_str()));
    }
    page.push_str(HTML_FOOT);
    page
}

/// The lines before the first link. The title is the path as it was requested: GDAL compares the two.
pub(super) fn html_head(raw_path: &str) -> String {
    let mut title = String::with_capacity(raw_path.len());
    for character in raw_path.chars() {
        match character {
            '&' => title.push_str("&amp;"),
            '<' => title.push_str("&lt;"),
            '>' => title.push_str("&gt;"),
            other => title.push(other),
        }
    }
    format!(
        "<!DOCTYPE html>\n<html><head><title>Index of {title}</title></head>\n<body><pre>\n\
         <a href=\"../\">../</a>\n"
    )
}

/// The lines after the last link.
pub(super) const HTML_FOOT: &str = "</pre></body></html>\n";

/// The link to a key or prefix, relative to the prefix that is listed.
pub(super) fn html_line(prefix: &StorePrefix, text: &str) -> String {
    let rest = text.strip_prefix(prefix.as_str()).unwrap_or(text);
    let mut link = String::with_capacity(rest.len());
    for (index, segment) in rest.split('/').enumerate() {
        if index > 0 {
            link.push('/');
        }
        link.push_str(&encode(segment));
    }
    format!("<a href=\"{link}\">{link}</a>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::StoreKey;
    use crate::store::{ValueInfo, Version};

    fn entry(key: &str) -> ListEntry {
        let info = ValueInfo { size: 3, version: Version::strong("v"), modified: None };
        ListEntry { key: StoreKey::parse(key).unwrap(), info }
    }

    fn dir(keys: &[&str], prefixes: &[&str]) -> DirListing {
        DirListing {
            keys: keys.iter().map(|key| entry(key)).collect(),
            prefixes: prefixes.iter().map(|text| StorePrefix::parse(text).unwrap()).collect(),
        }
    }

    #[test]
    fn the_index_page_is_what_clients_parse() {
        let prefix = StorePrefix::parse("a/").unwrap();
        let page = dir_html("/store/m/a/", &prefix, &dir(&["a/.zgroup", "a/x y&'<\".z"], &["a/sub/"]));
        assert_eq!(
            page,
            "<!DOCTYPE html>\n<html><head><title>Index of /store/m/a/</title></head>\n<body><pre>\n\
             <a href=\"../\">../</a>\n\
             <a href=\".zgroup\">.zgroup</a>\n\
             <a href=\"x%20y%26%27%3C%22.z\">x%20y%26%27%3C%22.z</a>\n\
             <a href=\"sub/\">sub/</a>\n\
             </pre></body></html>\n"
        );
        assert!(html_head("/a&<b>").contains("<title>Index of /a&amp;&lt;b&gt;</title>"));
        assert_eq!(html_line(&prefix, "a/b:c/\u{e9}"), "<a href=\"b%3Ac/%C3%A9\">b%3Ac/%C3%A9</a>\n");
    }

    #[test]
    fn pages_of_keys_and_prefixes_follow_each_other_without_gap_or_repeat() {
        let root = StorePrefix::root();
        let all = || dir(&["a", "b", "d.json"], &["a/", "c/", "d/"]);
        let (mut after, mut seen) = (String::new(), Vec::new());
        loop {
            let page = dir_page(&root, all(), &after, 2);
            assert!(page.keys.len() + page.prefixes.len() <= 2);
            seen.extend(page.keys.into_iter().map(|key| key.key).chain(page.prefixes));
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        assert_eq!(seen, ["a", "a/", "b", "c/", "d.json", "d/"]);
    }

    #[test]
    fn a_recursive_page_says_where_the_next_begins() {
        let entries = || vec![entry("a"), entry("b"), entry("c")];
        assert_eq!(recursive_page(&StorePrefix::root(), entries(), 2).next.as_deref(), Some("b"));
        assert_eq!(recursive_page(&StorePrefix::root(), entries(), 3).next, None);
    }
}
