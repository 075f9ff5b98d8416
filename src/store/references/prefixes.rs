//! Checks of the prefixes that a configuration allows references to lead to.

use super::RefusedReference;
use super::place::ReferencePlace;

/// Why a list of prefixes cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllowedPrefixError {
    /// It is no prefix of URLs.
    #[error("the prefix `{url}` is not valid: {reason}")]
    Invalid {
        /// The prefix.
        url: String,
        /// Why.
        reason: RefusedReference,
    },
    /// A path.
    #[error("the prefix `{0}` is a path: write it as a URL, `file://{0}`")]
    Path(String),
    /// All files of the machine.
    #[error("the prefix `{0}` is all of this machine: name a directory")]
    Root(String),
}

/// Checks a prefix.
///
/// # Errors
/// [`AllowedPrefixError`].
pub fn check_prefixes<'a>(
    urls: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<ReferencePlace>, AllowedPrefixError> {
    let check = |url: &str| {
        if url.starts_with('/') {
            return Err(AllowedPrefixError::Path(url.to_owned()));
        }
        let place = ReferencePlace::of_prefix(url);
        let place = place.map_err(|reason| AllowedPrefixError::Invalid { url: url.to_owned(), reason })?;
        if place.scheme() == "file" && place.path().is_empty() {
            return Err(AllowedPrefixError::Root(url.to_owned()));
        }
        Ok(place)
    };
    urls.into_iter().map(check).collect()
}
