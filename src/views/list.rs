//! Listings of a view: stored keys, with the keys of each array that the view changes replaced by those of the view.
//!
//! A listing detects an array by the first of its keys; the keys of an array are adjacent. Unchanged keys are streamed.

use std::pin::Pin;
use std::sync::Arc;

use futures::stream::{self, Peekable, Stream, StreamExt, TryStreamExt};

use super::chunk_walk::KeyFilter;
use super::dependent_set::DependentSet;
use super::derived_store::Entries;
use super::listing_segment::{ListingSegment, SegmentBuilder};
use super::view::ViewStore;
use crate::key::{NodePath, StoreKey, StorePrefix};
use crate::store::{DirEntries, DirEntry, ListEntry, StoreError};

/// The keys and prefixes directly under a prefix, after a text.
pub(super) fn list_dir(view: ViewStore, prefix: StorePrefix, after: String) -> DirEntries {
    let begin = async move {
        let Some(dependents) = view.enclosing_dependent_set(&prefix).await? else {
            let entries = view.base_store().list_dir_after(&prefix, &after);
            return Ok::<_, StoreError>(
                entries.and_then(move |entry| entry_in_view(view.clone(), entry)).boxed(),
            );
        };
        let segment = segment_below(&view, &dependents, &prefix, KeyFilter::after(&prefix, &after)).await?;
        let entries =
            stream::try_unfold((segment, prefix, after), |(mut segment, prefix, after)| async move {
                let entry = next_child(&mut segment, &prefix, &after).await?;
                Ok(entry.map(|entry| (entry, (segment, prefix, after))))
            });
        Ok(entries.boxed())
    };
    stream::once(begin).try_flatten().boxed()
}

/// A stored entry as the view shows it.
async fn entry_in_view(view: ViewStore, entry: DirEntry) -> Result<DirEntry, StoreError> {
    match entry {
        DirEntry::Key(entry) => view.in_view(entry).await.map(DirEntry::Key),
        prefix @ DirEntry::Prefix(_) => Ok(prefix),
    }
}

/// The next key or prefix directly under a prefix, after a text. Skips the keys below it.
async fn next_child(
    segment: &mut ListingSegment,
    prefix: &StorePrefix,
    after: &str,
) -> Result<Option<DirEntry>, StoreError> {
    while let Some(entry) = segment.next().await? {
        let below = entry.key.as_str().get(prefix.as_str().len()..).unwrap_or_default();
        let Some((name, _)) = below.split_once('/') else { return Ok(Some(DirEntry::Key(entry))) };
        // The beginning of a key is always a valid prefix.
        let Ok(child) = prefix.join(name) else { continue };
        segment.skip(&child);
        if child.as_str() > after {
            return Ok(Some(DirEntry::Prefix(child)));
        }
    }
    Ok(None)
}

/// The segment of a set of arrays below a prefix in the set.
async fn segment_below(
    view: &ViewStore,
    dependents: &Arc<DependentSet>,
    prefix: &StorePrefix,
    filter: KeyFilter,
) -> Result<ListingSegment, StoreError> {
    let (arrays, mut listed): (Vec<_>, Vec<StorePrefix>) =
        dependents.arrays_below(prefix).into_iter().unzip();
    listed.push(prefix.clone());
    listed.sort_unstable();
    // A nested prefix sorts after the one around it.
    listed.dedup_by(|one, before| one.as_str().starts_with(before.as_str()));
    let mut builder = SegmentBuilder::new(Arc::clone(dependents), arrays, filter, view);
    for prefix in listed {
        let mut entries = view.base_store().list_prefix(&prefix, None);
        while let Some(entry) = entries.try_next().await? {
            // Many entries may be ready at once; let other tasks run.
            tokio::task::consume_budget().await;
            builder.add(entry)?;
        }
    }
    builder.build(view).await
}

/// Every key under a prefix, after `after` if given.
pub(super) fn list_prefix(view: ViewStore, prefix: StorePrefix, after: Option<StoreKey>) -> Entries {
    let begin = async move {
        let filter = KeyFilter::after(&prefix, after.as_ref().map(StoreKey::as_str).unwrap_or_default());
        if let Some(dependents) = view.enclosing_dependent_set(&prefix).await? {
            let segment = segment_below(&view, &dependents, &prefix, filter).await?;
            return Ok::<_, StoreError>(segment_entries(segment).boxed());
        }
        // If the last page ended inside an array, the segment needs all of its stored keys again.
        let after = match after {
            Some(after) => match outermost_set(&view, &prefix, &after.parent()).await? {
                Some(dependents) => dependents.path().prefix().as_key(),
                None => Some(after),
            },
            None => None,
        };
        let entries = view.base_store().list_prefix(&prefix, after.as_ref()).fuse().boxed().peekable();
        let listing = ViewListing {
            view,
            filter,
            entries,
            passthrough: None,
            last_bare_prefix: None,
            last_bare_path: None,
            segment: None,
        };
        let entries = stream::try_unfold(listing, |mut listing| async move {
            Ok::<_, StoreError>(listing.next().await?.map(|entry| (entry, listing)))
        });
        Ok(entries.boxed())
    };
    stream::once(begin).try_flatten().boxed()
}

fn segment_entries(segment: ListingSegment) -> impl Stream<Item = Result<ListEntry, StoreError>> + Send {
    stream::try_unfold(segment, |mut segment| async move {
        Ok::<_, StoreError>(segment.next().await?.map(|entry| (entry, segment)))
    })
}

/// A listing in progress.
struct ViewListing {
    view: ViewStore,
    filter: KeyFilter,
    entries: Peekable<Entries>,
    /// The prefix of the current array, if the view leaves it unchanged.
    passthrough: Option<StorePrefix>,
    /// The last prefix that is known to be outside of arrays.
    last_bare_prefix: Option<StorePrefix>,
    /// The last path that is known to be neither an array nor inside of one.
    last_bare_path: Option<NodePath>,
    /// The segment of the current array, if the view changes it.
    segment: Option<ListingSegment>,
}

/// The set of arrays around a prefix, if the view changes any of it. Should nodes be stored inside arrays, the
/// outermost one below the beginning of the listing counts.
async fn outermost_set(
    view: &ViewStore,
    begin: &StorePrefix,
    prefix: &StorePrefix,
) -> Result<Option<Arc<DependentSet>>, StoreError> {
    let stored = view
        .node_finder()
        .nearest_array(prefix)
        .await?
        .filter(|stored| is_below(&stored.path, begin.as_str()));
    let Some(mut stored) = stored else { return Ok(None) };
    while let Some(parent) = parent_below(&stored.path, begin.as_str()) {
        match view.node_finder().nearest_array(parent.prefix()).await? {
            Some(outer) => stored = outer,
            None => break,
        }
    }
    Ok(view.dependent_set(stored))
}

/// The parent of a node, if a listing of keys with this beginning covers all of it.
fn parent_below(path: &NodePath, begin: &str) -> Option<NodePath> {
    path.parent().filter(|parent| is_below(parent, begin))
}

fn is_below(path: &NodePath, begin: &str) -> bool {
    path.prefix().as_str().starts_with(begin)
}

impl ViewListing {
    async fn next(&mut self) -> Result<Option<ListEntry>, StoreError> {
        loop {
            if let Some(segment) = &mut self.segment {
                match segment.next().await? {
                    None => self.segment = None,
                    entry => return Ok(entry),
                }
            }
            let Some(entry) = self.entries.try_next().await? else { return Ok(None) };
            let is_as_stored = self.passes_through(&entry.key) || !self.enter_array(&entry).await?;
            if is_as_stored && self.filter.matches(entry.key.as_str()) {
                return self.view.in_view(entry).await.map(Some);
            }
        }
    }

    /// Whether a key belongs to the last unchanged array.
    fn passes_through(&self, key: &StoreKey) -> bool {
        self.passthrough.as_ref().is_some_and(|prefix| key.as_str().starts_with(prefix.as_str()))
    }

    /// Whether a key is the first of an array that the view changes. If so, reads all keys of the array.
    async fn enter_array(&mut self, entry: &ListEntry) -> Result<bool, StoreError> {
        let parent = entry.key.parent();
        if self.last_bare_prefix.as_ref() == Some(&parent) {
            return Ok(false);
        }
        // Documents of v2 belong to no such array. They usually come first in a directory.
        let is_v2 = entry.key.name().starts_with(".z");
        let mut found = if is_v2 { None } else { self.view.node_finder().nearest_array(&parent).await? };
        // The listing began inside an array that the view leaves unchanged.
        if found.as_ref().is_some_and(|stored| !is_below(&stored.path, &self.filter.prefix)) {
            self.passthrough = StorePrefix::parse(&self.filter.prefix).ok();
            return Ok(false);
        }
        let nearest = found.as_ref().map(|stored| stored.path.clone());
        let nearest = nearest.or_else(|| NodePath::parse(parent.as_str()).ok());
        // A node that is stored inside an array is listed with that array.
        let mut next = nearest.as_ref().and_then(|path| parent_below(path, &self.filter.prefix));
        while let Some(path) = next.filter(|path| !self.is_outside_arrays(path)) {
            let outer = self.view.node_finder().nearest_array(path.prefix()).await?;
            let outer = outer.filter(|stored| is_below(&stored.path, &self.filter.prefix));
            next = parent_below(outer.as_ref().map_or(&path, |stored| &stored.path), &self.filter.prefix);
            found = outer.or(found);
        }
        let Some(stored) = found else {
            self.last_bare_path = nearest;
            self.last_bare_prefix = Some(parent);
            return Ok(false);
        };
        self.last_bare_path = stored.path.parent();
        let prefix = stored.path.prefix().clone();
        let Some(dependents) = self.view.dependent_set(stored) else {
            self.passthrough = Some(prefix);
            return Ok(false);
        };
        let arrays: Vec<_> = dependents.arrays_below(&prefix).into_iter().map(|(array, _)| array).collect();
        let mut builder = SegmentBuilder::new(dependents, arrays, self.filter.clone(), &self.view);
        builder.add(entry.clone())?;
        while let Some(entry) = self.next_in(&builder).await? {
            tokio::task::consume_budget().await;
            builder.add(entry)?;
        }
        self.segment = Some(builder.build(&self.view).await?);
        Ok(true)
    }

    /// Whether it is known that no array is at a path or above.
    fn is_outside_arrays(&self, path: &NodePath) -> bool {
        self.last_bare_path.as_ref().is_some_and(|group| is_below(group, path.prefix().as_str()))
    }

    /// The next stored key, if it belongs to the array.
    async fn next_in(&mut self, builder: &SegmentBuilder) -> Result<Option<ListEntry>, StoreError> {
        let is_taken = |entry: &Result<ListEntry, StoreError>| match entry {
            Ok(entry) => builder.contains(&entry.key),
            Err(_) => true,
        };
        Pin::new(&mut self.entries).next_if(is_taken).await.transpose()
    }
}
