//! Listings of a hierarchy of images: the documents and levels of each array in place of its own documents and chunks.
//!
//! Level 0 of an array of v3 is listed as it is stored, but for its document if that is changed. Chunks that are built in the background are listed with length 0
//! until they were built; a listing builds none.

use std::sync::Arc;

use futures::future::ready;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::nodes::{PyramidArray, ShownNode};
use super::view::{PyramidEntry, PyramidStore};
use crate::error::{Classify, ErrorClass};
use crate::key::{NodePath, StoreKey, StorePrefix};
use crate::metadata::{ChunkKeyEncodingMetadata, Separator, ZarrFormat};
use crate::store::{DirEntry, ListEntry, Reservation, Store, StoreError, ValueInfo};
use crate::views::error::{ViewError, to_store_error};
use crate::views::rechunk::{
    ChunkListing, ListItem, ListItems, Rechunker, Walked, ZARR_JSON, is_permanent, items_of, items_of_known,
    list_group, unmade,
};

impl Walked for PyramidStore {
    fn rechunker(&self) -> &Rechunker {
        &self.pyramids().rechunker
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
        let mut next = NodePath::parse(prefix.as_str()).ok();
        while let Some(path) = next {
            let is_below = path.prefix() != prefix;
            match self.find(&path).await {
                Ok(Some(ShownNode::Array(array))) => {
                    if array.as_stored == Some(ZarrFormat::V3) {
                        return Ok(list_stored(self, array, prefix, after));
                    }
                    let known = chunks_of(self, array).await?;
                    return items_of(self, prefix, after, chunks, known).await;
                }
                Ok(Some(ShownNode::Image(image))) if image.is_array() => {
                    // A prefix inside an array that is none of its levels.
                    let names = if is_below { &[][..] } else { &image.names[..] };
                    return Ok(list_levels(names, prefix, after, !is_below));
                }
                Ok(Some(ShownNode::Image(image))) if !is_below => {
                    let stored = list_group(self.base_store(), prefix, after);
                    return Ok(with_levels(stored, image.names.get(1..).unwrap_or_default(), prefix, after));
                }
                Ok(Some(ShownNode::Group(_) | ShownNode::Image(_))) => break,
                Ok(None) => next = path.parent(),
                // Its document is listed; reading that returns the error.
                Err(error) if is_unreadable(error.class()) => {
                    return Ok(list_levels(&[], prefix, after, true));
                }
                Err(error) => return Err(to_store_error(error)),
            }
        }
        Ok(list_group(self.base_store(), prefix, after))
    }

    async fn listed_info(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        let found = match self.lookup(key).await {
            Ok(PyramidEntry::Built(chunk)) => match chunk.current().await {
                Ok(Some(Some((version, bytes)))) => {
                    return Ok(Some(ValueInfo { size: bytes.len() as u64, version, modified: None }));
                }
                Ok(Some(None)) => return Ok(None),
                Ok(None) | Err(ViewError::NotRevalidated { .. }) => return Ok(Some(unmade())),
                Err(error) => Err(to_store_error(error)),
            },
            Ok(_) => self.head(key).await,
            Err(error) => Err(error),
        };
        match found {
            Err(error) if is_unreadable(error.class()) => Ok(Some(unmade())),
            found => found,
        }
    }
}

/// Whether a value cannot be generated from what is stored, or not in this way.
pub(super) fn is_unreadable(class: ErrorClass) -> bool {
    class == ErrorClass::InvalidRequest || is_permanent(class)
}

/// The chunks of an array that are encoded.
async fn chunks_of(view: &PyramidStore, array: PyramidArray) -> Result<ChunkListing, StoreError> {
    match array.rechunked(view.pyramids(), &view.spec().recipe) {
        Err(error) if is_unreadable(error.class()) => {
            Ok(ChunkListing::empty(&view.pyramids().rechunker, array.path))
        }
        rechunked => {
            let (rechunker, rechunked) = (&view.pyramids().rechunker, rechunked.map_err(to_store_error)?);
            ChunkListing::new(rechunker, view.request_reservation(), array.path, &rechunked).await
        }
    }
}

/// The document of a group, and a prefix for each of these names.
fn list_levels(names: &[String], prefix: &StorePrefix, after: &str, has_document: bool) -> ListItems {
    let levels = names.iter().filter_map(|name| prefix.join(name).ok()).map(ListItem::Prefix);
    let document = has_document.then(|| prefix.key(ZARR_JSON).ok().map(ListItem::Generated)).flatten();
    let mut items: Vec<ListItem> = levels.chain(document).filter(|item| item.as_str() > after).collect();
    items.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    stream::iter(items.into_iter().map(Ok)).boxed()
}

/// The stored entries of a group, and a prefix for each of these names.
fn with_levels(stored: ListItems, names: &[String], prefix: &StorePrefix, after: &str) -> ListItems {
    let levels = list_levels(names, prefix, after, false);
    let merged =
        stream::try_unfold((stored.peekable(), levels.peekable()), |(mut stored, mut levels)| async move {
            let first = std::pin::Pin::new(&mut stored).peek().await;
            let second = std::pin::Pin::new(&mut levels).peek().await;
            let is_level_next = match (first, second) {
                (Some(Ok(first)), Some(Ok(second))) => {
                    if first.as_str() == second.as_str() {
                        // A directory of this name without a node in it.
                        stored.try_next().await?;
                    }
                    true
                }
                (None, Some(_)) => true,
                _ => false,
            };
            let is_level_next = is_level_next && {
                let first = std::pin::Pin::new(&mut stored).peek().await.and_then(|item| item.as_ref().ok());
                let second = std::pin::Pin::new(&mut levels).peek().await.and_then(|item| item.as_ref().ok());
                match (first, second) {
                    (Some(first), Some(second)) => second.as_str() < first.as_str(),
                    _ => true,
                }
            };
            let item = if is_level_next { levels.try_next().await? } else { stored.try_next().await? };
            Ok::<_, StoreError>(item.map(|item| (item, (stored, levels))))
        });
    merged.boxed()
}

/// The documents and chunks of an array of v3 as they are stored, directly below a prefix.
fn list_stored(view: &PyramidStore, array: PyramidArray, prefix: &StorePrefix, after: &str) -> ListItems {
    let (shown, stored_at) = (array.path.prefix().clone(), array.stored_at.prefix().clone());
    let stored = |text: &str| text.strip_prefix(shown.as_str()).map(|below| format!("{stored_at}{below}"));
    let Some(Ok(below)) = stored(prefix.as_str()).map(|text| StorePrefix::parse(&text)) else {
        return stream::empty().boxed();
    };
    let after = stored(after).unwrap_or_default();
    let is_renamed = array.renamed_by().is_some();
    let has_folders = array.source.array().is_ok_and(|array| {
        array.metadata().chunk_key_encoding == ChunkKeyEncodingMetadata::Default(Separator::Slash)
    });
    let entries = view.base_store().list_dir_after(&below, &after).try_filter_map(move |entry| {
        let item = match &entry {
            DirEntry::Key(ListEntry { key, info }) => strip(key.as_str(), &stored_at).and_then(|below| {
                let is_chunk = array.source.array().is_ok_and(|array| array.chunk_coords(below).is_some());
                let key = shown.key(below).ok().filter(|_| is_chunk || below == ZARR_JSON)?;
                if below == ZARR_JSON && is_renamed {
                    return Some(ListItem::Generated(key));
                }
                Some(ListItem::Stored(ListEntry { key, info: info.clone() }))
            }),
            DirEntry::Prefix(prefix) => strip(prefix.as_str(), &stored_at).and_then(|below| {
                let is_folder = below == "c/" || below.starts_with("c/");
                shown
                    .join(below.trim_end_matches('/'))
                    .ok()
                    .filter(|_| is_folder && has_folders)
                    .map(ListItem::Prefix)
            }),
        };
        ready(Ok(item))
    });
    entries.boxed()
}

/// A key or prefix without that of an array.
fn strip<'t>(text: &'t str, prefix: &StorePrefix) -> Option<&'t str> {
    text.strip_prefix(prefix.as_str())
}
