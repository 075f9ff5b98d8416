//! The formats of a listing: the HTML index page and the JSON page.
//!
//! fsspec, GDAL, Neuroglancer and rclone parse the HTML: a title with the requested path, one relative link on each line,
//! everything outside `A-Za-z0-9-._~` percent-encoded, and prefixes with a trailing `/`. It is always complete. For
//! browsers, each link repeats the signature of a signed URL. The JSON has full keys and is paged. Nothing here reads a
//! store.

use std::borrow::Cow;

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
    /// Prefixes one level below the prefix, in the order of their bytes; empty in a recursive listing.
    #[schema(example = json!(["images/raw/"]))]
    prefixes: Vec<String>,
    /// Value of `after` for the next page; null on the last page.
    next: Option<String>,
}

/// A key in a JSON listing.
#[derive(Debug, Serialize, ToSchema)]
struct ListedKey {
    /// The full key.
    #[schema(example = "images/zarr.json")]
    key: String,
    /// Length of the value in bytes.
    size: u64,
    /// Entity tag of the value, quotes included.
    #[schema(example = "\"3f2a\"")]
    etag: String,
    /// Time of the last write (RFC 3339, UTC), if the backend reports it.
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

/// Lets browsers show the page in light or dark colours.
const SCHEME: &str = "<meta name=\"color-scheme\" content=\"light dark\">";

/// The links of an index page.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    prefix: StorePrefix,
    /// Whether the page links to its parent.
    lead_up: bool,
    /// The query of each link, HTML-escaped: empty, or the signature of the signed URL of this page.
    query: String,
}

impl Links {
    /// The links on the page of a prefix, for a request with or without a signed URL.
    ///
    /// The page of the root has no parent link, and neither has the topmost page that the signature is valid for.
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
        let mut head = format!(
            "<!DOCTYPE html>\n<html><head><title>Index of {title}</title>{SCHEME}</head>\n<body><pre>\n"
        );
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

/// The lines after the last link, with the way to the page at a path. It is a form at the top right, because clients take
/// every link for a key or prefix. A form sends its fields alone, so these have the signature of a signed URL.
pub(crate) fn foot_with_page(path: &str, signed: Option<&SignedUrl>) -> String {
    let query = signed.map(SignedUrl::query).unwrap_or_default();
    let field = |(name, value): (Cow<'_, str>, Cow<'_, str>)| {
        format!("<input type=\"hidden\" name=\"{}\" value=\"{}\">", escape(&name), escape(&value))
    };
    let fields: String = url::form_urlencoded::parse(query.as_bytes()).map(field).collect();
    format!(
        "</pre>\n<form action=\"{}\" style=\"position:absolute;top:.5em;right:1em\">{fields}<button>View as a page</button></form>\n\
         </body></html>\n",
        escape(path)
    )
}

/// Escapes a text for HTML content and for attribute values in quotes.
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
            "<!DOCTYPE html>\n<html><head><title>Index of /store/m/a/</title><meta name=\"color-scheme\" content=\"light dark\"></head>\n<body><pre>\n\
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
    fn the_page_of_a_root_has_no_parent_link() {
        let links = Links::new(&StorePrefix::root(), None);
        assert!(!page(&links, "/store/m/", &["a"]).contains("../"));
    }

    #[test]
    fn links_repeat_the_signature_of_the_page_and_stay_within_its_scope() {
        let signed = SignedUrl::new("expires=1&key=\"k&signature=ab&below=a%2F", prefix("a/"));
        let query = "?expires=1&amp;key=&quot;k&amp;signature=ab&amp;below=a%2F";
        for (at, leads_up) in [("a/", false), ("a/b/", true)] {
            let html = page(&Links::new(&prefix(at), Some(&signed)), "/", &[&format!("{at}c&d/")]);
            assert!(html.contains(&format!("<a href=\"c%26d/{query}\">c%26d/</a>\n")), "{html}");
            assert_eq!(html.contains(&format!("<a href=\"../{query}\">../</a>\n")), leads_up, "{html}");
        }
    }

    #[test]
    fn the_way_to_the_page_repeats_the_signature() {
        let signed = SignedUrl::new("expires=1&below=a%20%22%2F", prefix("a/"));
        let foot = foot_with_page("/view/m/a", Some(&signed));
        for field in ["name=\"expires\" value=\"1\">", "name=\"below\" value=\"a &quot;/\">"] {
            assert!(foot.contains(&format!("<input type=\"hidden\" {field}")), "{foot}");
        }
        assert!(!foot_with_page("/view/m/a", None).contains("<input"));
    }

    #[test]
    fn a_json_page_has_keys_and_prefixes_and_the_start_of_the_next_page() {
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
