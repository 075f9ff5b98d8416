//! What a listing looks like: the HTML index page and the JSON page.
//!
//! The HTML is what fsspec, GDAL, Neuroglancer and rclone can read: a title with the requested path, one relative
//! link a line, everything outside `A-Za-z0-9-._~` percent-encoded, prefixes ending in `/`, and always complete. Links
//! carry the signature of a signed URL on, for browsers. The JSON names keys in full and comes in pages. Nothing here
//! reads a store.

use serde::Serialize;
use utoipa::ToSchema;

use super::listing_text::ListingText;
use crate::auth::SignedUrl;
use crate::http::path::encode;
use crate::http::validators::{entity_tag, rfc3339};
use crate::key::StorePrefix;
use crate::store::{DirEntry, ListEntry};

/// One page of a JSON listing.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListingPage {
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

impl ListingPage {
    /// The page of a prefix's listing.
    pub(crate) fn new(prefix: &StorePrefix, page: ListingText) -> Self {
        let next = page.next().map(str::to_owned);
        let (mut keys, mut prefixes) = (Vec::new(), Vec::new());
        for entry in page.entries {
            match entry {
                DirEntry::Key(entry) => keys.push(entry.into()),
                DirEntry::Prefix(prefix) => prefixes.push(prefix.as_str().to_owned()),
            }
        }
        Self { prefix: prefix.as_str().to_owned(), keys, prefixes, next }
    }
}

/// The links of an index page.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    prefix: StorePrefix,
    /// Whether there is anything above to lead to.
    lead_up: bool,
    /// What follows the path of each: nothing, or the signature that lets whoever has it see this page, as HTML.
    query: String,
}

impl Links {
    /// Those of a prefix's page, for whoever came to it by this URL.
    ///
    /// Above the root is nothing that the page could lead to, and above what a signature is good for nothing that could be
    /// seen with it.
    pub(crate) fn new(prefix: &StorePrefix, signed: Option<&SignedUrl>) -> Self {
        let is_below = |signed: &SignedUrl| prefix != signed.below();
        Self {
            prefix: prefix.clone(),
            lead_up: !prefix.is_root() && signed.is_none_or(is_below),
            query: signed.map(|signed| format!("?{}", escape(signed.query()))).unwrap_or_default(),
        }
    }

    /// The lines before the first key or prefix. The title is the path as it was requested: GDAL compares the two.
    pub(crate) fn head(&self, raw_path: &str) -> String {
        let title = escape(raw_path);
        let mut head =
            format!("<!DOCTYPE html>\n<html><head><title>Index of {title}</title></head>\n<body><pre>\n");
        if self.lead_up {
            self.line(&mut head, "../");
        }
        head
    }

    /// Appends the link to a key or prefix, relative to the prefix that is listed.
    pub(crate) fn push(&self, page: &mut String, text: &str) {
        let rest = text.strip_prefix(self.prefix.as_str()).unwrap_or(text);
        self.line(page, &rest.split('/').map(encode).collect::<Vec<_>>().join("/"));
    }

    fn line(&self, page: &mut String, link: &str) {
        for part in ["<a href=\"", link, &self.query, "\">", link, "</a>\n"] {
            page.push_str(part);
        }
    }
}

/// The lines after the last link.
pub(crate) const HTML_FOOT: &str = "</pre></body></html>\n";

/// A text as HTML has it, also between quotes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::StoreKey;
    use crate::store::{ValueInfo, Version};

    fn prefix(text: &str) -> StorePrefix {
        StorePrefix::parse(text).unwrap()
    }

    fn page(links: &Links, raw_path: &str, entries: &[&str]) -> String {
        let mut page = links.head(raw_path);
        for entry in entries {
            links.push(&mut page, entry);
        }
        page + HTML_FOOT
    }

    #[test]
    fn the_index_page_is_what_clients_parse() {
        let links = Links::new(&prefix("a/"), None);
        assert_eq!(
            page(&links, "/store/m/a/", &["a/.zgroup", "a/sub/", "a/x y&'<\".z"]),
            "<!DOCTYPE html>\n<html><head><title>Index of /store/m/a/</title></head>\n<body><pre>\n\
             <a href=\"../\">../</a>\n\
             <a href=\".zgroup\">.zgroup</a>\n\
             <a href=\"sub/\">sub/</a>\n\
             <a href=\"x%20y%26%27%3C%22.z\">x%20y%26%27%3C%22.z</a>\n\
             </pre></body></html>\n"
        );
        assert!(links.head("/a&<b>").contains("<title>Index of /a&amp;&lt;b&gt;</title>"));
        assert!(page(&links, "", &["a/b:c/\u{e9}"]).contains("<a href=\"b%3Ac/%C3%A9\">b%3Ac/%C3%A9</a>\n"));
    }

    #[test]
    fn the_page_of_a_root_leads_nowhere_above_it() {
        let links = Links::new(&StorePrefix::root(), None);
        assert!(!page(&links, "/store/m/", &["a"]).contains("../"));
    }

    #[test]
    fn links_carry_the_signature_that_the_page_was_seen_by_and_stay_below_what_it_is_good_for() {
        let signed = SignedUrl::new("expires=1&key=\"k&signature=ab&below=a%2F", prefix("a/"));
        let query = "?expires=1&amp;key=&quot;k&amp;signature=ab&amp;below=a%2F";
        for (at, leads_up) in [("a/", false), ("a/b/", true)] {
            let html = page(&Links::new(&prefix(at), Some(&signed)), "/", &[&format!("{at}c&d/")]);
            assert!(html.contains(&format!("<a href=\"c%26d/{query}\">c%26d/</a>\n")), "{html}");
            assert_eq!(html.contains(&format!("<a href=\"../{query}\">../</a>\n")), leads_up, "{html}");
        }
    }

    #[test]
    fn a_page_in_json_has_keys_and_prefixes_and_says_where_the_next_begins() {
        let info = ValueInfo { size: 3, version: Version::strong("v"), modified: None };
        let key = DirEntry::Key(ListEntry { key: StoreKey::parse("a").unwrap(), info });
        for (more, next) in [(true, Some("a/")), (false, None)] {
            let entries = vec![key.clone(), DirEntry::Prefix(prefix("a/"))];
            let page = ListingPage::new(&StorePrefix::root(), ListingText { entries, more });
            assert_eq!(
                (page.keys.len(), page.prefixes, page.next.as_deref()),
                (1, vec!["a/".to_owned()], next)
            );
        }
    }
}
