//! Listings of a view: what is stored, with each array that is shown otherwise, and those that it declares, replaced as a
//! whole.
//!
//! Arrays are found on the way, by the first of their keys, and their keys stand together. What is shown as it is
//! stored streams through.

use std::pin::Pin;
use std::sync::Arc;

use futures::stream::{self, Peekable, Stream, StreamExt, TryStreamExt};

use super::chunk_walk::Wanted;
use super::dependent_set::DependentSet;
use super::listing_segment::{Entries, ListingSegment, Sorter};
use super::view::ViewStore;
use crate::key::{NodePath, StoreKey, StorePrefix};
use crate::store::{DirEntries, DirEntry, ListEntry, StoreError};

/// The keys and prefixes directly under a prefix, after a text.
pub(super) fn list_dir(view: ViewStore, prefix: StorePrefix, after: String) -> DirEntries {
    let begin = async move {
        let Some(family) = view.family_around(&prefix).await? else {
            let entries = view.below().list_dir_after(&prefix, &after);
            return Ok::<_, StoreError>(entries.and_then(move |entry| shown(view.clone(), entry)).boxed());
        };
        let section = section_below(&view, &family, &prefix, Wanted::behind(&prefix, &after)).await?;
        let entries =
            stream::try_unfold((section, prefix, after), |(mut section, prefix, after)| async move {
                let entry = directly_under(&mut section, &prefix, &after).await?;
                Ok(entry.map(|entry| (entry, (section, prefix, after))))
            });
        Ok(entries.boxed())
    };
    stream::once(begin).try_flatten().boxed()
}

/// An entry of what is stored, as it is shown.
async fn shown(view: ViewStore, entry: DirEntry) -> Result<DirEntry, StoreError> {
    match entry {
        DirEntry::Key(entry) => view.in_view(entry).await.map(DirEntry::Key),
        prefix @ DirEntry::Prefix(_) => Ok(prefix),
    }
}

/// The next key or prefix directly under a prefix, after a text. Goes past what is below.
async fn directly_under(
    section: &mut ListingSegment,
    prefix: &StorePrefix,
    after: &str,
) -> Result<Option<DirEntry>, StoreError> {
    while let Some(entry) = section.next().await? {
        let below = entry.key.as_str().get(prefix.as_str().len()..).unwrap_or_default();
        let Some((name, _)) = below.split_once('/') else { return Ok(Some(DirEntry::Key(entry))) };
        // What begins a key is a prefix.
        let Ok(child) = prefix.join(name) else { continue };
        section.skip(&child);
        if child.as_str() > after {
            return Ok(Some(DirEntry::Prefix(child)));
        }
    }
    Ok(None)
}

/// What is listed of a family below a prefix that is in it.
async fn section_below(
    view: &ViewStore,
    family: &Arc<DependentSet>,
    prefix: &StorePrefix,
    wanted: Wanted,
) -> Result<ListingSegment, StoreError> {
    let (arrays, mut listed): (Vec<_>, Vec<StorePrefix>) = family.below(prefix).into_iter().unzip();
    listed.push(prefix.clone());
    listed.sort_unstable();
    // What is in another follows it.
    listed.dedup_by(|one, before| one.as_str().starts_with(before.as_str()));
    let mut sorter = Sorter::new(Arc::clone(family), arrays, wanted, view);
    for prefix in listed {
        let mut entries = view.below().list_prefix(&prefix, None);
        while let Some(entry) = entries.try_next().await? {
            // Many may be at hand, and others are to have their turn.
            tokio::task::consume_budget().await;
            sorter.add(entry)?;
        }
    }
    sorter.into_section(view).await
}

/// Every key under a prefix, after `after` if that is given.
pub(super) fn list_prefix(view: ViewStore, prefix: StorePrefix, after: Option<StoreKey>) -> Entries {
    let begin = async move {
        let wanted = Wanted::behind(&prefix, after.as_ref().map(StoreKey::as_str).unwrap_or_default());
        if let Some(family) = view.family_around(&prefix).await? {
            let section = section_below(&view, &family, &prefix, wanted).await?;
            return Ok::<_, StoreError>(of_section(section).boxed());
        }
        // Where the last page ended in an array, all that is stored of it is needed to go on.
        let after = match after {
            Some(after) => match outermost(&view, &prefix, &after.parent()).await? {
                Some(family) => family.path().prefix().as_key(),
                None => Some(after),
            },
            None => None,
        };
        let entries = view.below().list_prefix(&prefix, after.as_ref()).fuse().boxed().peekable();
        let listing =
            Listing { view, wanted, entries, passing: None, bare: None, group: None, section: None };
        let entries = stream::try_unfold(listing, |mut listing| async move {
            Ok::<_, StoreError>(listing.next().await?.map(|entry| (entry, listing)))
        });
        Ok(entries.boxed())
    };
    stream::once(begin).try_flatten().boxed()
}

fn of_section(section: ListingSegment) -> impl Stream<Item = Result<ListEntry, StoreError>> + Send {
    stream::try_unfold(section, |mut section| async move {
        Ok::<_, StoreError>(section.next().await?.map(|entry| (entry, section)))
    })
}

/// A listing under way.
struct Listing {
    view: ViewStore,
    wanted: Wanted,
    entries: Peekable<Entries>,
    /// The prefix of the array that it is in, if that is shown as it is stored.
    passing: Option<StorePrefix>,
    /// The last prefix that turned out to be in no array.
    bare: Option<StorePrefix>,
    /// The last path that turned out to be in no array, nor to be one.
    group: Option<NodePath>,
    /// The array that it is in, if that is not.
    section: Option<ListingSegment>,
}

/// The family that a prefix is in, if any of it is shown otherwise than it is stored; the outermost below where a listing
/// begins, should there be nodes in arrays.
async fn outermost(
    view: &ViewStore,
    begin: &StorePrefix,
    prefix: &StorePrefix,
) -> Result<Option<Arc<DependentSet>>, StoreError> {
    let stored = view.nodes().above(prefix).await?.filter(|stored| is_below(&stored.path, begin.as_str()));
    let Some(mut stored) = stored else { return Ok(None) };
    while let Some(parent) = parent_below(&stored.path, begin.as_str()) {
        match view.nodes().above(parent.prefix()).await? {
            Some(outer) => stored = outer,
            None => break,
        }
    }
    Ok(view.family(stored))
}

/// The node above another, if a listing that begins with this text has all of it.
fn parent_below(path: &NodePath, begin: &str) -> Option<NodePath> {
    path.parent().filter(|parent| is_below(parent, begin))
}

fn is_below(path: &NodePath, begin: &str) -> bool {
    path.prefix().as_str().starts_with(begin)
}

impl Listing {
    async fn next(&mut self) -> Result<Option<ListEntry>, StoreError> {
        loop {
            if let Some(section) = &mut self.section {
                match section.next().await? {
                    None => self.section = None,
                    entry => return Ok(entry),
                }
            }
            let Some(entry) = self.entries.try_next().await? else { return Ok(None) };
            let is_as_stored = self.passes(&entry.key) || !self.enters(&entry).await?;
            if is_as_stored && self.wanted.has(entry.key.as_str()) {
                return self.view.in_view(entry).await.map(Some);
            }
        }
    }

    /// Whether a key is of the array that was passed through last.
    fn passes(&self, key: &StoreKey) -> bool {
        self.passing.as_ref().is_some_and(|prefix| key.as_str().starts_with(prefix.as_str()))
    }

    /// Whether a key is the first of an array that is shown otherwise. If so, all its keys are taken.
    async fn enters(&mut self, entry: &ListEntry) -> Result<bool, StoreError> {
        let parent = entry.key.parent();
        if self.bare.as_ref() == Some(&parent) {
            return Ok(false);
        }
        // Those of v2 are of no such array. They begin a directory, more often than not.
        let is_v2 = entry.key.name().starts_with(".z");
        let mut found = if is_v2 { None } else { self.view.nodes().above(&parent).await? };
        // The listing began in an array that is shown as it is stored.
        if found.as_ref().is_some_and(|stored| !is_below(&stored.path, &self.wanted.prefix)) {
            self.passing = StorePrefix::parse(&self.wanted.prefix).ok();
            return Ok(false);
        }
        let nearest = found.as_ref().map(|stored| stored.path.clone());
        let nearest = nearest.or_else(|| NodePath::parse(parent.as_str()).ok());
        // A node that is stored in an array is listed with that.
        let mut next = nearest.as_ref().and_then(|path| parent_below(path, &self.wanted.prefix));
        while let Some(path) = next.filter(|path| !self.is_in_no_array(path)) {
            let outer = self.view.nodes().above(path.prefix()).await?;
            let outer = outer.filter(|stored| is_below(&stored.path, &self.wanted.prefix));
            next = parent_below(outer.as_ref().map_or(&path, |stored| &stored.path), &self.wanted.prefix);
            found = outer.or(found);
        }
        let Some(stored) = found else {
            self.group = nearest;
            self.bare = Some(parent);
            return Ok(false);
        };
        self.group = stored.path.parent();
        let prefix = stored.path.prefix().clone();
        let Some(family) = self.view.family(stored) else {
            self.passing = Some(prefix);
            return Ok(false);
        };
        let arrays: Vec<_> = family.below(&prefix).into_iter().map(|(shown, _)| shown).collect();
        let mut sorter = Sorter::new(family, arrays, self.wanted.clone(), &self.view);
        sorter.add(entry.clone())?;
        while let Some(entry) = self.next_of(&sorter).await? {
            tokio::task::consume_budget().await;
            sorter.add(entry)?;
        }
        self.section = Some(sorter.into_section(&self.view).await?);
        Ok(true)
    }

    /// Whether it is known that no array is at a path or above.
    fn is_in_no_array(&self, path: &NodePath) -> bool {
        self.group.as_ref().is_some_and(|group| is_below(group, path.prefix().as_str()))
    }

    /// The next stored key, if it is of the array.
    async fn next_of(&mut self, sorter: &Sorter) -> Result<Option<ListEntry>, StoreError> {
        let is_taken = |entry: &Result<ListEntry, StoreError>| match entry {
            Ok(entry) => sorter.takes(&entry.key),
            Err(_) => true,
        };
        Pin::new(&mut self.entries).next_if(is_taken).await.transpose()
    }
}
