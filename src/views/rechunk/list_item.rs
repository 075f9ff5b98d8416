//! [`ListItem`]: an entry of a listing before the sizes of generated values are known.

use futures::stream::BoxStream;

use crate::key::{StoreKey, StorePrefix};
use crate::store::{ListEntry, StoreError};

/// The items directly below a prefix, in the order of their texts.
pub(in crate::views) type ListItems = BoxStream<'static, Result<ListItem, StoreError>>;

/// An entry directly below a prefix.
#[derive(Debug)]
pub(in crate::views) enum ListItem {
    /// A stored key, unchanged.
    Stored(ListEntry),
    /// The key of a generated document or chunk.
    Generated(StoreKey),
    Prefix(StorePrefix),
}

impl ListItem {
    pub(in crate::views) fn as_str(&self) -> &str {
        match self {
            Self::Stored(entry) => entry.key.as_str(),
            Self::Generated(key) => key.as_str(),
            Self::Prefix(prefix) => prefix.as_str(),
        }
    }
}
