//! Listings of a rechunked hierarchy: stored keys, with the documents and chunks of each array replaced.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use futures::future::ready;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::chunk_listing::ChunkListing;
use super::key_walk::{Walked, is_permanent};
use super::list_item::{ListItem, ListItems};
use super::rechunker::Rechunker;
use super::view::{RechunkStore, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, ZMETADATA};
use crate::error::Classify;
use crate::key::{NodePath, StorePrefix};
use crate::store::{DirEntry, Reservation, SharedStore, StoreError};
use crate::views::error::to_store_error;
use crate::views::node_finder::StoredArray;

impl Walked for RechunkStore {
    fn rechunker(&self) -> &Rechunker {
        self.shared()
    }

    fn reservation(&self) -> Reservation {
        self.request_reservation()
    }

    async fn children(
        &self,
        prefix: &StorePrefix,
        after: &str,
        chunks: &mut Option<Arc<ChunkListing>>,
    ) -> Result<ListItems, StoreError> {
        if let Some(items) = items_of_known(self, prefix, after, chunks.as_ref()).await? {
            return Ok(items);
        }
        match self.nearest_array(prefix).await? {
            None => Ok(list_group(self.base_store(), prefix, after)),
            Some(StoredArray { path, array, .. }) => {
                // Without its codecs, only its document is listed; reading that returns the error.
                let known = if array.is_some() {
                    chunks_of(self, path).await?
                } else {
                    ChunkListing::empty(self.shared(), path)
                };
                items_of(self, prefix, after, chunks, known).await
            }
        }
    }
}

/// The chunks of the array at a path.
async fn chunks_of(store: &RechunkStore, path: NodePath) -> Result<ChunkListing, StoreError> {
    let Some(opened) =
        super::resolve_key::find_node(store.opener(), &path, Instant::now()).await.map_err(to_store_error)?
    else {
        return Ok(ChunkListing::empty(store.shared(), path));
    };
    match store.rechunked(&path, &opened) {
        Err(error) if is_permanent(error.class()) => Ok(ChunkListing::empty(store.shared(), path)),
        rechunked => ChunkListing::new(store.shared(), store.request_reservation(), path, &rechunked?).await,
    }
}

/// The items below a prefix of an array, which is then the one that was visited last.
pub(in crate::views) async fn items_of(
    view: &impl Walked,
    prefix: &StorePrefix,
    after: &str,
    chunks: &mut Option<Arc<ChunkListing>>,
    array: ChunkListing,
) -> Result<ListItems, StoreError> {
    *chunks = Some(Arc::new(array));
    let items = items_of_known(view, prefix, after, chunks.as_ref()).await?;
    Ok(items.unwrap_or_else(|| stream::empty().boxed()))
}

/// The items below a prefix of the array that was visited last; `None` if the prefix is not below that.
pub(in crate::views) async fn items_of_known(
    view: &impl Walked,
    prefix: &StorePrefix,
    after: &str,
    chunks: Option<&Arc<ChunkListing>>,
) -> Result<Option<ListItems>, StoreError> {
    let Some(known) = chunks else { return Ok(None) };
    let Some(below) = prefix.as_str().strip_prefix(known.path().prefix().as_str()) else { return Ok(None) };
    let (items, reservation) =
        Arc::clone(known).items_below(view.rechunker(), view.reservation(), prefix, below.to_owned()).await?;
    let after = after.to_owned();
    let items = items.into_iter().filter(move |item| item.as_str() > after.as_str());
    let items = items.map(move |item| {
        // The reservation covers all items until the last is consumed.
        let _reservation = &reservation;
        Ok(item)
    });
    Ok(Some(stream::iter(items).boxed()))
}

/// The stored entries directly below a prefix outside of arrays, with one document in place of those of a group. The
/// `head` of the document decides whether there is a group.
pub(in crate::views) fn list_group(base: &SharedStore, prefix: &StorePrefix, after: &str) -> ListItems {
    let generated = prefix.key(ZARR_JSON).ok().filter(|key| key.as_str() > after);
    let stored = base.list_dir_after(prefix, after).try_filter_map(|entry| {
        ready(Ok(match entry {
            DirEntry::Prefix(prefix) => Some(ListItem::Prefix(prefix)),
            DirEntry::Key(entry) => match entry.key.name() {
                ZARR_JSON | ZGROUP | ZARRAY | ZATTRS | ZMETADATA => None,
                _ => Some(ListItem::Stored(entry)),
            },
        }))
    });
    let merged = stream::try_unfold(
        (stored.boxed().peekable(), generated),
        |(mut stored, mut generated)| async move {
            let next = Pin::new(&mut stored).peek().await;
            let is_generated_next = match (&generated, next) {
                (Some(generated), Some(Ok(next))) => generated.as_str() < next.as_str(),
                (generated, None) => generated.is_some(),
                _ => false,
            };
            let item = if is_generated_next {
                generated.take().map(ListItem::Generated)
            } else {
                stored.try_next().await?
            };
            Ok::<_, StoreError>(item.map(|item| (item, (stored, generated))))
        },
    );
    merged.boxed()
}
