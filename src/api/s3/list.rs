//! `ListObjects` and `ListObjectsV2`: their parameters and their response document (S3 API reference).
//!
//! A continuation token is the last key or common prefix of a page, encoded so that clients treat it as opaque. The start
//! of a page is always a text. If that text is a common prefix, the keys below it are skipped, for `marker` and
//! `start-after` as for a token.

use std::time::SystemTime;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::page::Asked;
use super::xml::Xml;
use crate::api::store::listing_text::ListingText;
use crate::http::path::encode;
use crate::http::s3_query::{Query, S3QueryError};
use crate::http::validators::{entity_tag, rfc3339};
use crate::key::{StoreKey, StorePrefix};
use crate::services::mount::Mount;
use crate::store::{DirEntry, ListEntry, StoreError};

/// Maximum number of keys and common prefixes on a page, whatever the request.
const PAGE_KEYS: usize = 1000;
/// Prefix of the text in a token.
const TOKEN: &str = "1:";

/// One of the two operations.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Version {
    /// `ListObjects`, with its `marker`.
    V1 { marker: String },
    /// `ListObjectsV2`.
    V2 { token: Option<String>, start_after: Option<String> },
}

/// The parameters of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListObjects {
    version: Version,
    asked: Asked,
    /// Whether keys and prefixes are percent-encoded in the response.
    encoded: bool,
}

impl ListObjects {
    /// Reads the parameters of either version.
    pub(crate) fn parse(query: &Query) -> Result<Self, S3QueryError> {
        let text = |name| query.value(name).map(|value| value.map(str::to_owned));
        let version = match query.value("list-type")? {
            None => Version::V1 { marker: text("marker")?.unwrap_or_default() },
            Some("2") => {
                if query.has("continuation-token") && query.value("continuation-token")?.is_none() {
                    return Err(not_a_token());
                }
                Version::V2 { token: text("continuation-token")?, start_after: text("start-after")? }
            }
            Some(_) => return Err(S3QueryError::Value { name: "list-type", takes: "`2`" }),
        };
        let after = match &version {
            Version::V1 { marker } => marker.clone(),
            Version::V2 { token: Some(token), .. } => text_of(token)?,
            Version::V2 { token: None, start_after } => start_after.clone().unwrap_or_default(),
        };
        let grouped = match query.value("delimiter")? {
            None => false,
            Some("/") => true,
            Some(_) => return Err(S3QueryError::Delimiter),
        };
        let encoded = match query.value("encoding-type")? {
            None => false,
            Some("url") => true,
            Some(_) => return Err(S3QueryError::Value { name: "encoding-type", takes: "`url`" }),
        };
        let limit = query.value("max-keys")?.map_or(Ok(PAGE_KEYS), page_keys)?;
        let prefix = text("prefix")?.unwrap_or_default();
        Ok(Self { version, asked: Asked { prefix, grouped, after, limit }, encoded })
    }

    /// A key, prefix or parameter in the encoding of the response.
    fn written(&self, text: &str) -> String {
        if !self.encoded {
            return text.to_owned();
        }
        text.split('/').map(encode).collect::<Vec<_>>().join("/")
    }

    fn answer(&self, bucket: &str, page: &ListingText) -> Xml {
        let next = page.next();
        Xml::answer("ListBucketResult", |xml| {
            xml.text("Name", bucket);
            xml.text("Prefix", &self.written(&self.asked.prefix));
            match &self.version {
                Version::V1 { marker } => {
                    xml.text("Marker", &self.written(marker));
                    if let Some(next) = next {
                        xml.text("NextMarker", &self.written(next));
                    }
                }
                Version::V2 { token, start_after } => {
                    if let Some(start_after) = start_after {
                        xml.text("StartAfter", &self.written(start_after));
                    }
                    if let Some(token) = token {
                        xml.text("ContinuationToken", token);
                    }
                    if let Some(next) = next {
                        xml.text("NextContinuationToken", &token_of(next));
                    }
                    xml.text("KeyCount", &page.entries.len().to_string());
                }
            }
            xml.text("MaxKeys", &self.asked.limit.to_string());
            if self.asked.grouped {
                xml.text("Delimiter", &self.written("/"));
            }
            if self.encoded {
                xml.text("EncodingType", "url");
            }
            xml.text("IsTruncated", if page.more { "true" } else { "false" });
            // All keys before all prefixes, as in S3: some clients do not accept a mixed list.
            for entry in &page.entries {
                if let DirEntry::Key(entry) = entry {
                    self.contents(xml, entry);
                }
            }
            for entry in &page.entries {
                if let DirEntry::Prefix(prefix) = entry {
                    xml.element("CommonPrefixes", |xml| xml.text("Prefix", &self.written(prefix.as_str())));
                }
            }
        })
    }

    fn contents(&self, xml: &mut Xml, entry: &ListEntry) {
        // Clients require a time. Where the backend reports none, it is the epoch.
        let modified = entry.info.modified.and_then(rfc3339).or_else(|| rfc3339(SystemTime::UNIX_EPOCH));
        xml.element("Contents", |xml| {
            xml.text("Key", &self.written(entry.key.as_str()));
            xml.text("LastModified", &modified.unwrap_or_default());
            xml.text("ETag", &entity_tag(&entry.info.version));
            xml.text("Size", &entry.info.size.to_string());
            xml.text("StorageClass", "STANDARD");
        });
    }
}

/// Lists a mount.
pub(crate) async fn list(mount: &Mount, request: ListObjects) -> Result<Xml, StoreError> {
    let page = request.asked.page(&*mount.store).await?;
    Ok(request.answer(&mount.name, &page))
}

/// The size of a page: a number, capped at [`PAGE_KEYS`].
fn page_keys(digits: &str) -> Result<usize, S3QueryError> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(S3QueryError::Value { name: "max-keys", takes: "a number from 0 to 1000" });
    }
    // Digits that overflow the integer are above the cap too.
    Ok(digits.parse().unwrap_or(PAGE_KEYS).min(PAGE_KEYS))
}

fn token_of(text: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(format!("{TOKEN}{text}"))
}

/// The text of a token that this server issued.
fn text_of(token: &str) -> Result<String, S3QueryError> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
    match std::str::from_utf8(&bytes).ok().and_then(|text| text.strip_prefix(TOKEN)) {
        Some(text)
            if StoreKey::parse(text).is_ok() || StorePrefix::parse(text).is_ok_and(|at| !at.is_root()) =>
        {
            Ok(text.to_owned())
        }
        _ => Err(not_a_token()),
    }
}

fn not_a_token() -> S3QueryError {
    S3QueryError::Value {
        name: "continuation-token",
        takes: "the `NextContinuationToken` of the page before",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ListObjects, S3QueryError> {
        ListObjects::parse(&Query::of(&format!("/s3/m?{text}").parse().unwrap()).unwrap())
    }

    #[test]
    fn a_page_has_the_requested_size_up_to_1000() {
        let limit = |text: &str| parse(text).map(|request| request.asked.limit);
        for (text, keys) in [("", 1000), ("max-keys=", 1000), ("max-keys=0", 0), ("max-keys=007", 7)] {
            assert_eq!(limit(text), Ok(keys), "{text}");
        }
        for text in ["max-keys=1001", "max-keys=18446744073709551615", "max-keys=99999999999999999999999"] {
            assert_eq!(limit(text), Ok(1000), "{text}");
        }
        for text in ["max-keys=-1", "max-keys=%2B1", "max-keys=x", "max-keys=1.0", "max-keys=+1"] {
            assert!(limit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_token_encodes_the_end_of_its_page_and_other_texts_are_rejected() {
        for text in ["a", "a/", "a/b c+&é\u{ffff}"] {
            assert_eq!(text_of(&token_of(text)).as_deref(), Ok(text));
        }
        let odd = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
        for token in
            ["a", "a/b", "%", "MTo=", &odd("1:"), &odd("2:a"), &odd("1:/a"), &odd("1:a\0"), &odd("1:..")]
        {
            assert_eq!(text_of(token), Err(not_a_token()), "{token}");
        }
        assert_eq!(parse("list-type=2&continuation-token="), Err(not_a_token()));
        let both = parse(&format!("list-type=2&start-after=z&continuation-token={}", token_of("a"))).unwrap();
        assert_eq!(both.asked.after, "a", "the token takes precedence over `start-after`");
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        assert_eq!(parse("delimiter=-"), Err(S3QueryError::Delimiter));
        assert_eq!(parse("delimiter=//"), Err(S3QueryError::Delimiter));
        for text in ["list-type=1", "list-type=3", "encoding-type=xml"] {
            assert!(matches!(parse(text), Err(S3QueryError::Value { .. })), "{text}");
        }
        assert_eq!(parse("prefix=a&prefix=b"), Err(S3QueryError::Twice("prefix")));
        let plain = parse("delimiter=&prefix=&fetch-owner=true&marker=m").unwrap();
        assert_eq!((plain.asked.grouped, plain.asked.after.as_str()), (false, "m"));
    }
}
