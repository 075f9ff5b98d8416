//! [`ReferencePlace`]: the URL of a reference in its one normal spelling, so that it can be compared with a prefix as text.
//!
//! What has two spellings is refused instead of guessed: another case of the scheme, `file:/`, `..`, escaped slashes, a
//! user name, a port that is the scheme's own. A plain absolute path is a `file://` URL; a relative one begins where the
//! document lies. Names in buckets and of files are taken as they are written, those of web servers are unescaped.

use std::net::{IpAddr, Ipv4Addr};

use percent_encoding::percent_decode_str;
use url::{Host, Url};

use super::RefusedReference;
use crate::key::{KeyError, StoreKey};
use crate::store::PrivateAddress;

/// A place that a reference leads to, or a prefix of such places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencePlace {
    /// `scheme://authority/path`, the path unescaped.
    text: String,
    /// Where the path begins.
    path: usize,
}

impl ReferencePlace {
    /// The place that a reference's URL names. `base` is the URL of the directory that the document lies in, with a slash
    /// at its end.
    ///
    /// # Errors
    /// [`RefusedReference`], if it has no normal spelling.
    pub fn of_reference(url: &str, base: &str) -> Result<Self, RefusedReference> {
        let place = match url.split_once("://") {
            Some((scheme, _)) if scheme.contains("::") => return Err(RefusedReference::Chained),
            Some((scheme, rest)) => Self::parse(scheme, rest)?,
            None if url.contains("::") => return Err(RefusedReference::Chained),
            None if url.starts_with("//") => return Err(RefusedReference::Spelling),
            None if url.starts_with('/') => Self::parse("file", url)?,
            None if url.split('/').next().is_some_and(|first| first.contains(':')) => {
                return Err(RefusedReference::Spelling);
            }
            None => {
                let (scheme, directory) = base.split_once("://").ok_or(RefusedReference::Spelling)?;
                Self::parse(scheme, &format!("{directory}{url}"))?
            }
        };
        StoreKey::parse(place.path())?;
        Ok(place)
    }

    /// The prefix that a configuration names: it ends in a slash.
    ///
    /// # Errors
    /// [`RefusedReference`], if it has no normal spelling.
    pub fn of_prefix(url: &str) -> Result<Self, RefusedReference> {
        let (scheme, rest) = url.split_once("://").ok_or(RefusedReference::Spelling)?;
        let place = Self::parse(scheme, rest)?;
        match place.path().strip_suffix('/') {
            Some(path) => StoreKey::parse(path).map(drop)?,
            None if place.path().is_empty() => {}
            None => return Err(RefusedReference::Path(KeyError::PrefixWithoutSlash)),
        }
        Ok(place)
    }

    fn parse(scheme: &str, rest: &str) -> Result<Self, RefusedReference> {
        let is_scheme_byte =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
        if !scheme.starts_with(|first: char| first.is_ascii_lowercase())
            || !scheme.bytes().all(is_scheme_byte)
        {
            return Err(RefusedReference::Spelling);
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(RefusedReference::UserInfo);
        }
        let path = match scheme {
            "http" | "https" => {
                check_host(scheme, authority)?;
                if path.contains(['?', '#']) || authority.contains(['?', '#']) {
                    return Err(RefusedReference::Query);
                }
                unescaped(path)?
            }
            "file" if !authority.is_empty() => return Err(RefusedReference::FileHost),
            "file" => path.to_owned(),
            _ if authority.is_empty() => return Err(RefusedReference::Spelling),
            _ => path.to_owned(),
        };
        let text = format!("{scheme}://{authority}/{path}");
        Ok(Self { path: text.len() - path.len(), text })
    }

    /// The URL, its path unescaped.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The path without its first slash, unescaped.
    #[must_use]
    pub fn path(&self) -> &str {
        self.text.get(self.path..).unwrap_or_default()
    }

    /// The scheme.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.text.split_once("://").map_or("", |(scheme, _)| scheme)
    }

    /// The refusal of a reference that leads to this place, where no prefix of the list covers it.
    pub(super) fn refusal(&self) -> RefusedReference {
        if self.scheme() == "file" {
            return RefusedReference::File;
        }
        let address = Url::parse(&self.text).ok().and_then(|url| match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain("localhost")) => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            Some(Host::Domain(_)) | None => None,
        });
        match address.and_then(PrivateAddress::of) {
            Some(PrivateAddress::LinkLocal) => RefusedReference::LinkLocal,
            Some(PrivateAddress::Private) => RefusedReference::Private,
            None => RefusedReference::NotAllowed,
        }
    }
}

/// Checks that the host and port of a web server are in their normal spelling.
fn check_host(scheme: &str, authority: &str) -> Result<(), RefusedReference> {
    let url =
        Url::parse(&format!("{scheme}://{authority}/")).map_err(|_invalid| RefusedReference::Spelling)?;
    let host = url.host_str().unwrap_or_default();
    let normal = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    if normal == authority && !host.is_empty() { Ok(()) } else { Err(RefusedReference::Spelling) }
}

/// The path of a web server's URL without escapes.
fn unescaped(path: &str) -> Result<String, RefusedReference> {
    let digits = |at: usize| {
        path.get(at + 1..at + 3).is_some_and(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    if !path.match_indices('%').all(|(at, _)| digits(at)) {
        return Err(RefusedReference::Escape);
    }
    let count = |text: &str| text.matches(['/', '\\']).count();
    let plain = percent_decode_str(path).decode_utf8().map_err(|_invalid| RefusedReference::Escape)?;
    if count(&plain) != count(path) {
        return Err(RefusedReference::Escape);
    }
    check_sent(&plain)?;
    Ok(plain.into_owned())
}

/// Checks a path without escapes that is sent to a web server: some read more in it than keys have.
pub(super) fn check_sent(path: &str) -> Result<(), RefusedReference> {
    if path.contains('\\') || path.chars().any(char::is_control) {
        return Err(RefusedReference::Escape);
    }
    // Servers of Java leave out what is behind a semicolon, so that `..;` is `..` there.
    let is_upward = |segment: &str| matches!(segment.split_once(';'), Some(("." | "..", _)));
    if path.split('/').any(is_upward) { Err(RefusedReference::Spelling) } else { Ok(()) }
}
