//! What the URL of a store says: its scheme, its path, and whether it names a zip file.

use std::path::PathBuf;

use url::Url;

use super::error::OpenError;
use crate::key::{KeyError, StorePrefix};

/// What the URL of a document of references begins with.
const KERCHUNK: &str = "kerchunk+";

/// How the names of zip files end.
const ZIP: &str = ".zip";

/// The scheme of local paths.
const FILE: &str = "file";

/// What the URL of an Icechunk repository begins with.
const ICECHUNK: &str = "icechunk+";

/// The URL of an Icechunk repository, if a URL names one: without the `icechunk+` before it.
#[must_use]
pub fn icechunk_repository(url: &str) -> Option<&str> {
    after(url, ICECHUNK)
}

/// The rest of a URL that begins with a text, whatever its case.
fn after<'a>(url: &'a str, begin: &str) -> Option<&'a str> {
    let (scheme, _) = url.split_once("://")?;
    let begins = scheme.get(..begin.len()).is_some_and(|text| text.eq_ignore_ascii_case(begin));
    url.get(begin.len()..).filter(|_| begins)
}

/// The URL of a document of references, if a URL names one: without the `kerchunk+` before it.
#[must_use]
pub fn kerchunk_document(url: &str) -> Option<&str> {
    after(url, KERCHUNK)
}

/// The URL of the document or repository that the references of a mount are in, if its URL names one.
#[must_use]
pub fn references_of(url: &str) -> Option<&str> {
    kerchunk_document(url).or_else(|| icechunk_repository(url))
}

/// Whether a URL or path names a zip file: its last segment ends in `.zip`. What ends in `.zip/` is a directory.
#[must_use]
pub fn is_zip(url: &str) -> bool {
    if references_of(url).is_some() {
        return false;
    }
    let has_segments = match url.split_once("://") {
        Some((scheme, rest)) if !scheme.eq_ignore_ascii_case(FILE) => rest.find('/') > Some(0),
        _ => true,
    };
    has_segments && url.ends_with(ZIP)
}

/// The scheme of a URL as it is written; `file` for a path. Of a document of references or a repository, that of what it lies in.
pub(super) fn scheme_of(url: &str) -> &str {
    references_of(url).unwrap_or(url).split_once("://").map_or(FILE, |(scheme, _)| scheme)
}

/// The bucket or container of a URL, and the prefix after it.
pub(super) fn bucket_and_prefix(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split_once('/').unwrap_or((rest, ""))
}

/// The path that a URL names on this machine; `None` for a URL with another scheme than `file`.
///
/// # Errors
/// [`OpenError::InvalidUrl`] for a URL of this scheme without an absolute path.
pub fn local_path(url: &str) -> Result<Option<PathBuf>, OpenError> {
    match url.split_once("://") {
        None => Ok(Some(PathBuf::from(url))),
        Some((scheme, _)) if scheme.eq_ignore_ascii_case(FILE) => {
            let path = Url::parse(url).ok().and_then(|url| url.to_file_path().ok());
            path.map(Some).ok_or(OpenError::InvalidUrl("`file://` wants an absolute path"))
        }
        Some(_) => Ok(None),
    }
}

/// `a/b`, with a slash at the end or without, as a prefix; empty is the root.
pub(super) fn parse_prefix(text: &str) -> Result<StorePrefix, KeyError> {
    match text.strip_suffix('/').unwrap_or(text) {
        "" => Ok(StorePrefix::root()),
        text => StorePrefix::parse(&format!("{text}/")),
    }
}
