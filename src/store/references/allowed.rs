//! [`AllowList`]: where references may lead, and the store that reads there.
//!
//! The operator's list is the only authority: what no prefix covers is refused, and the options of the mount itself,
//! with its credentials, are for the document alone. Of two prefixes that cover a place, the longer one counts.

use super::place::Place;
use super::{ReferenceError, RefusedReference};
use crate::key::StoreKey;
use crate::store::{OpenError, SharedStore, StoreOptions};

/// A prefix that references may lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedPrefix {
    /// The beginning of URLs, as references have it: a scheme, a bucket or host, and a path that ends in a slash.
    pub url: String,
    /// Where that is, if it is not the URL itself.
    pub at: Option<String>,
    /// Options of the backend there.
    pub options: StoreOptions,
}

impl AllowedPrefix {
    /// The URL of the store.
    #[must_use]
    pub fn store_url(&self) -> &str {
        self.at.as_deref().unwrap_or(&self.url)
    }
}

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
    /// All files of the machine.
    #[error("the prefix `{0}` is all of this machine: name a directory")]
    Root(String),
}

/// Checks a prefix.
///
/// # Errors
/// [`AllowedPrefixError`].
pub fn check_prefixes<'a>(urls: impl IntoIterator<Item = &'a str>) -> Result<Vec<Place>, AllowedPrefixError> {
    let check = |url: &str| {
        let place = Place::of_prefix(url);
        let place = place.map_err(|reason| AllowedPrefixError::Invalid { url: url.to_owned(), reason })?;
        if place.scheme() == "file" && place.path().is_empty() {
            return Err(AllowedPrefixError::Root(url.to_owned()));
        }
        Ok(place)
    };
    urls.into_iter().map(check).collect()
}

/// The prefixes with their stores.
#[derive(Debug)]
pub(in crate::store) struct AllowList {
    /// The URL of the directory that the document lies in, with a slash at its end.
    base: String,
    /// Longer prefixes first.
    prefixes: Vec<(Place, SharedStore)>,
}

impl AllowList {
    /// Opens the stores of all prefixes by `open`. `base` is where relative paths begin.
    ///
    /// # Errors
    /// Those of `open`; [`OpenError::Prefix`].
    pub(in crate::store) fn open(
        base: String,
        allowed: &[AllowedPrefix],
        open: impl Fn(&str, &StoreOptions) -> Result<SharedStore, OpenError>,
    ) -> Result<Self, OpenError> {
        let places = check_prefixes(allowed.iter().map(|prefix| &*prefix.url))?;
        let mut prefixes = Vec::with_capacity(places.len());
        for (place, prefix) in places.into_iter().zip(allowed) {
            prefixes.push((place, open(prefix.store_url(), &prefix.options)?));
        }
        prefixes.sort_by_key(|(place, _)| std::cmp::Reverse(place.as_str().len()));
        Ok(Self { base, prefixes })
    }

    /// The store and the key that a reference leads to.
    ///
    /// # Errors
    /// [`ReferenceError::Refused`].
    pub(super) fn resolve(&self, url: &str) -> Result<(&SharedStore, StoreKey), ReferenceError> {
        let place = Place::of_reference(url, &self.base).map_err(|fault| fault.of(url))?;
        let covering = |(prefix, store)| {
            let prefix: &Place = prefix;
            Some((store, place.as_str().strip_prefix(prefix.as_str())?))
        };
        let Some((store, rest)) =
            self.prefixes.iter().map(|(prefix, store)| (prefix, store)).find_map(covering)
        else {
            return Err(place.refusal().of(url));
        };
        let key = StoreKey::parse(rest).map_err(|fault| RefusedReference::Path(fault).of(url))?;
        Ok((store, key))
    }

    /// The stores.
    pub(super) fn stores(&self) -> impl Iterator<Item = &SharedStore> {
        self.prefixes.iter().map(|(_, store)| store)
    }
}
