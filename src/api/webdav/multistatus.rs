//! The multistatus document of a PROPFIND response (RFC 4918, section 13), as text.
//!
//! Clients are strict in different ways. Each `response` therefore has exactly one `propstat`, and dates are never missing.
//! An href is an absolute path with everything outside `A-Za-z0-9-._~` percent-encoded; that of a prefix ends in `/`.
//! Nothing here reads a store.

use std::fmt::Write;

use crate::http::path::encode;
use crate::http::validators::{content_type, entity_tag, http_date};
use crate::store::ListEntry;

/// The text before the first `response` element.
pub(crate) const HEAD: &str =
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n";
/// The text after the last `response` element.
pub(crate) const FOOT: &str = "</D:multistatus>\n";
/// The date of a resource without one: prefixes of object stores have no date, and clients require one.
const NO_DATE: &str = "Thu, 01 Jan 1970 00:00:00 GMT";

/// Appends the `response` element of a key. `base` is the path of the mount's root.
pub(crate) fn push_key(page: &mut String, base: &str, entry: &ListEntry) {
    let date = entry.info.modified.and_then(http_date);
    let date = date.as_ref().and_then(|date| date.to_str().ok()).unwrap_or(NO_DATE);
    let (kind, etag) = (content_type(&entry.key), escape(&entity_tag(&entry.info.version)));
    open(page, base, entry.key.as_str());
    // Writing into a `String` cannot fail.
    let _ = write!(
        page,
        "<D:resourcetype/><D:getcontentlength>{}</D:getcontentlength><D:getcontenttype>{}</D:getcontenttype>\
         <D:getetag>{etag}</D:getetag>",
        entry.info.size,
        kind.to_str().unwrap_or_default(),
    );
    close(page, date);
}

/// Appends the `response` element of a prefix, which is empty or ends in `/`.
pub(crate) fn push_prefix(page: &mut String, base: &str, prefix: &str) {
    open(page, base, prefix);
    page.push_str("<D:resourcetype><D:collection/></D:resourcetype>");
    close(page, NO_DATE);
}

fn open(page: &mut String, base: &str, text: &str) {
    page.push_str("<D:response><D:href>");
    page.push_str(base);
    for segment in text.split('/') {
        page.push('/');
        page.push_str(&encode(segment));
    }
    page.push_str("</D:href><D:propstat><D:prop>");
}

fn close(page: &mut String, date: &str) {
    page.push_str("<D:getlastmodified>");
    page.push_str(date);
    page.push_str(
        "</D:getlastmodified></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>\n",
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::key::StoreKey;
    use crate::store::{ValueInfo, Version};

    #[test]
    fn responses_have_the_form_that_clients_parse() {
        let modified = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777));
        let info = ValueInfo { size: 3, version: Version::strong("a&<b>"), modified };
        let mut entry = ListEntry { key: StoreKey::parse("a b/\u{e9}&.json").unwrap(), info };
        let mut page = String::new();
        push_key(&mut page, "/store/m", &entry);
        assert_eq!(
            page,
            "<D:response><D:href>/store/m/a%20b/%C3%A9%26.json</D:href><D:propstat><D:prop><D:resourcetype/>\
             <D:getcontentlength>3</D:getcontentlength><D:getcontenttype>application/json</D:getcontenttype>\
             <D:getetag>\"a&amp;&lt;b&gt;\"</D:getetag>\
             <D:getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</D:getlastmodified></D:prop>\
             <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>\n"
        );
        entry.info.modified = None;
        page.clear();
        push_key(&mut page, "", &entry);
        assert!(page.contains(NO_DATE), "{page}");
        for (base, prefix, href) in
            [("", "", "/"), ("/store/m", "", "/store/m/"), ("", "a/b c/", "/a/b%20c/")]
        {
            page.clear();
            push_prefix(&mut page, base, prefix);
            assert_eq!(
                page,
                format!(
                    "<D:response><D:href>{href}</D:href><D:propstat><D:prop>\
                     <D:resourcetype><D:collection/></D:resourcetype>\
                     <D:getlastmodified>Thu, 01 Jan 1970 00:00:00 GMT</D:getlastmodified></D:prop>\
                     <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>\n"
                )
            );
        }
    }
}
