//! [`Walked`]: a view whose listings go level by level, in the order of the keys, and walks over it.
//!
//! A listed entry equals the result of `head`, and the length of a derived chunk is known only after encoding, so chunks
//! are encoded as the caller consumes the listing. A chunk that cannot be encoded, because a stored one is corrupt or an
//! element has no value in the requested type, is listed with length 0; reading it returns the error.

use std::sync::Arc;

use futures::future::ready;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::chunk_listing::ChunkListing;
use super::list_item::{ListItem, ListItems};
use super::rechunker::Rechunker;
use crate::error::{Classify, ErrorClass};
use crate::key::{StoreKey, StorePrefix};
use crate::store::{DirEntries, DirEntry, ListEntry, Reservation, Store, StoreError, ValueInfo, Version};
use crate::views::derived_store::{DerivedStore, Entries};

/// Concurrent `head` requests of a listing, each of which may encode a chunk.
const CONCURRENT_HEADS: usize = 4;

/// A view that is listed level by level.
pub(in crate::views) trait Walked: DerivedStore {
    /// The services of the view.
    fn rechunker(&self) -> &Rechunker;

    /// An empty reservation on the memory budget of the request.
    fn reservation(&self) -> Reservation;

    /// The entries directly below a prefix and after a text, in the order of the keys. `chunks` are those of the array that
    /// was visited last.
    fn children(
        &self,
        prefix: &StorePrefix,
        after: &str,
        chunks: &mut Option<Arc<ChunkListing>>,
    ) -> impl Future<Output = Result<ListItems, StoreError>> + Send;

    /// The size and version of a generated value, for a listing.
    fn listed_info(
        &self,
        key: &StoreKey,
    ) -> impl Future<Output = Result<Option<ValueInfo>, StoreError>> + Send {
        async move { self.head(key).await }
    }
}

/// The keys and prefixes directly under a prefix, after a text.
pub(in crate::views) fn list_dir<V: Walked>(view: V, prefix: StorePrefix, after: String) -> DirEntries {
    let below = view.clone();
    let items = async move { below.children(&prefix, &after, &mut None).await };
    entries(view, stream::once(items).try_flatten().boxed())
}

/// Every key under a prefix, after `after` if given.
pub(in crate::views) fn list_prefix<V: Walked>(
    view: V,
    prefix: StorePrefix,
    after: Option<StoreKey>,
) -> Entries {
    let walk = KeyWalk { view: view.clone(), after, levels: Vec::new(), root: Some(prefix), chunks: None };
    let keys = stream::try_unfold(walk, |mut walk| async move {
        Ok::<_, StoreError>(walk.next().await?.map(|item| (item, walk)))
    });
    let entries = entries(view, keys.boxed());
    let keys = entries.try_filter_map(|entry| {
        let DirEntry::Key(entry) = entry else { return ready(Ok(None)) };
        ready(Ok(Some(entry)))
    });
    keys.boxed()
}

/// The entries of items, from a `head` of each generated key; keys without a value are left out.
fn entries<V: Walked>(view: V, items: ListItems) -> DirEntries {
    items
        .map_ok(move |item| {
            let view = view.clone();
            async move {
                tokio::task::consume_budget().await;
                match item {
                    ListItem::Stored(entry) => Ok(Some(DirEntry::Key(entry))),
                    ListItem::Prefix(prefix) => Ok(Some(DirEntry::Prefix(prefix))),
                    ListItem::Generated(key) => match view.listed_info(&key).await {
                        Err(error) if is_permanent(error.class()) => {
                            Ok(Some(DirEntry::Key(unreadable_entry(key))))
                        }
                        info => Ok(info?.map(|info| DirEntry::Key(ListEntry { key, info }))),
                    },
                }
            }
        })
        .try_buffered(CONCURRENT_HEADS)
        .try_filter_map(|entry| ready(Ok(entry)))
        .boxed()
}

/// Whether a value cannot be generated from what is stored, so that another attempt would fail too.
pub(in crate::views) fn is_permanent(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::CorruptData
            | ErrorClass::InvalidMetadata
            | ErrorClass::TooLarge
            | ErrorClass::UnusableLink
            | ErrorClass::ReferenceRefused
            | ErrorClass::ReferenceBroken
            | ErrorClass::Unsupported
    )
}

/// The entry of a value that cannot be generated.
fn unreadable_entry(key: StoreKey) -> ListEntry {
    ListEntry { key, info: unmade() }
}

/// The size and version of a value that is not generated.
pub(in crate::views) fn unmade() -> ValueInfo {
    ValueInfo { size: 0, version: Version::weak("unmade"), modified: None }
}

/// A walk over all keys below a prefix, in order.
struct KeyWalk<V> {
    view: V,
    after: Option<StoreKey>,
    levels: Vec<ListItems>,
    root: Option<StorePrefix>,
    /// The chunks of the current array.
    chunks: Option<Arc<ChunkListing>>,
}

impl<V: Walked> KeyWalk<V> {
    async fn next(&mut self) -> Result<Option<ListItem>, StoreError> {
        if let Some(prefix) = self.root.take() {
            self.descend(&prefix).await?;
        }
        while let Some(level) = self.levels.last_mut() {
            match level.try_next().await? {
                None => {
                    self.levels.pop();
                }
                Some(item) if self.after.as_ref().is_some_and(|after| is_before(&item, after.as_str())) => {}
                Some(ListItem::Prefix(prefix)) => self.descend(&prefix).await?,
                Some(item) => return Ok(Some(item)),
            }
        }
        Ok(None)
    }

    async fn descend(&mut self, prefix: &StorePrefix) -> Result<(), StoreError> {
        // The keys after `after` begin with the name that it has at this level, or with a later one.
        let rest = self.after.as_ref().and_then(|after| after.as_str().strip_prefix(prefix.as_str()));
        let name = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
        let after = if name.is_empty() { String::new() } else { format!("{prefix}{name}") };
        let items = self.view.children(prefix, &after, &mut self.chunks).await?;
        self.levels.push(items);
        Ok(())
    }
}

/// Whether no key of an item comes after this one.
fn is_before(item: &ListItem, after: &str) -> bool {
    item.as_str() <= after && !(matches!(item, ListItem::Prefix(_)) && after.starts_with(item.as_str()))
}
