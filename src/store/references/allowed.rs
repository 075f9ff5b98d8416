//! [`AllowList`]: where references may lead, and the store that reads there.
//!
//! The operator's list is the only authority: what no prefix covers is refused, and the options of the mount itself,
//! with its credentials, are for the document alone. Of two prefixes that cover a place, the longer one counts.

use super::place::{ReferencePlace, check_sent};
use super::{ReferenceError, RefusedReference, check_prefixes};
use crate::key::StoreKey;
use crate::store::{AllowedPrefix, Capabilities, OpenError, SharedStore, StoreKind};

/// The prefixes with their stores.
#[derive(Debug)]
pub(in crate::store) struct AllowList {
    /// The URL of the directory that the document lies in, with a slash at its end.
    base: String,
    /// Longer prefixes first.
    prefixes: Vec<(ReferencePlace, SharedStore)>,
}

impl AllowList {
    /// Opens the stores of all prefixes by `open`. `base` is where relative paths begin.
    ///
    /// # Errors
    /// Those of `open`; [`OpenError::Prefix`].
    pub(in crate::store) fn open(
        base: String,
        allowed: &[AllowedPrefix],
        open: impl Fn(&AllowedPrefix) -> Result<SharedStore, OpenError>,
    ) -> Result<Self, OpenError> {
        let places = check_prefixes(allowed.iter().map(|prefix| &*prefix.url))?;
        let mut prefixes = Vec::with_capacity(places.len());
        for (place, prefix) in places.into_iter().zip(allowed) {
            prefixes.push((place, open(prefix)?));
        }
        prefixes.sort_by_key(|(place, _)| std::cmp::Reverse(place.as_str().len()));
        Ok(Self { base, prefixes })
    }

    /// The store and the key that a reference leads to.
    ///
    /// # Errors
    /// [`ReferenceError::Refused`].
    pub(super) fn resolve(&self, url: &str) -> Result<(&SharedStore, StoreKey), ReferenceError> {
        let place = ReferencePlace::of_reference(url, &self.base).map_err(|fault| fault.of(url))?;
        let covering = |(prefix, store)| {
            let prefix: &ReferencePlace = prefix;
            Some((store, place.as_str().strip_prefix(prefix.as_str())?))
        };
        let Some((store, rest)) =
            self.prefixes.iter().map(|(prefix, store)| (prefix, store)).find_map(covering)
        else {
            return Err(place.refusal().of(url));
        };
        let key = StoreKey::parse(rest).map_err(|fault| RefusedReference::Path(fault).of(url))?;
        // The reference may be of another scheme than the server that the prefix leads to.
        if store.kind() == StoreKind::HTTP {
            check_sent(rest).map_err(|fault| fault.of(url))?;
        }
        Ok((store, key))
    }

    /// What a read costs is what the slowest of the stores makes it cost: that of the document, or one of these.
    pub(super) fn capabilities(&self, document: &SharedStore) -> Capabilities {
        let all = |holds: fn(&Capabilities) -> bool| {
            std::iter::once(document).chain(self.stores()).all(|store| holds(&store.capabilities()))
        };
        if all(|store| store.nonblocking) {
            Capabilities::LOCAL_NONBLOCKING
        } else if all(|store| store.near) {
            Capabilities::LOCAL
        } else {
            Capabilities::REMOTE
        }
    }

    /// The stores.
    pub(super) fn stores(&self) -> impl Iterator<Item = &SharedStore> {
        self.prefixes.iter().map(|(_, store)| store)
    }
}
