//! Listings of a view: what is stored, with each array that is shown otherwise replaced as a whole.
//!
//! Arrays are found on the way, by the first of their keys, and their keys stand together. What is shown as it is
//! stored streams through.

use std::pin::Pin;
use std::sync::Arc;

use futures::stream::{self, BoxStream, Peekable, Stream, StreamExt, TryStreamExt};

use super::nodes::Above;
use super::order::Wanted;
use super::section::{Section, Sorter};
use super::shown::{Scope, Shown};
use super::view::ViewStore;
use crate::key::{StoreKey, StorePrefix};
use crate::store::{DirListing, ListEntry, StoreError};

type Entries = BoxStream<'static, Result<ListEntry, StoreError>>;

/// The keys and prefixes directly under a prefix.
pub(super) async fn list_dir(view: &ViewStore, prefix: &StorePrefix) -> Result<DirListing, StoreError> {
    let Some(shown) = view.shown_above(prefix).await? else {
        let mut listing = view.below().list_dir(prefix).await?;
        for entry in std::mem::take(&mut listing.keys) {
            listing.keys.push(view.as_shown(entry).await?);
        }
        return Ok(listing);
    };
    let wanted = Wanted { prefix: prefix.to_string(), from: String::new() };
    let mut section = section_below(view, shown, prefix, wanted).await?;
    let mut listing = DirListing::default();
    while let Some(entry) = section.next().await? {
        let below = entry.key.as_str().get(prefix.as_str().len()..).unwrap_or_default();
        let Some((name, _)) = below.split_once('/') else {
            listing.keys.push(entry);
            continue;
        };
        // What begins a key is a prefix.
        let Ok(child) = prefix.join(name) else { continue };
        section.skip(&child);
        listing.prefixes.push(child);
    }
    Ok(listing)
}

/// What is listed of an array below a prefix that is in it.
async fn section_below(
    view: &ViewStore,
    shown: Arc<Shown>,
    prefix: &StorePrefix,
    wanted: Wanted,
) -> Result<Section, StoreError> {
    let (scope, with_chunks) = match shown.scope(prefix) {
        Scope::Chunks(scope) => (scope, true),
        Scope::Others(scope) => (scope, false),
    };
    let mut sorter = Sorter::new(shown, wanted, with_chunks);
    let mut entries = view.below().list_prefix(&scope, None);
    while let Some(entry) = entries.try_next().await? {
        sorter.add(entry)?;
    }
    Ok(sorter.into_section(view))
}

/// Every key under a prefix, after `after` if that is given.
pub(super) fn list_prefix(view: ViewStore, prefix: StorePrefix, after: Option<StoreKey>) -> Entries {
    let begin = async move {
        let wanted = Wanted {
            prefix: prefix.to_string(),
            // The first text behind the key: no key has a control character.
            from: after.as_ref().map(|after| format!("{after}\0")).unwrap_or_default(),
        };
        if let Some(shown) = view.shown_above(&prefix).await? {
            let section = section_below(&view, shown, &prefix, wanted).await?;
            return Ok::<_, StoreError>(of_section(section).boxed());
        }
        // Where the last page ended in an array, all that is stored of it is needed to go on.
        let after = match after {
            Some(after) => match view.shown_above(&after.parent()).await? {
                Some(shown) => shown.path().prefix().as_key(),
                None => Some(after),
            },
            None => None,
        };
        let entries = view.below().list_prefix(&prefix, after.as_ref()).fuse().boxed().peekable();
        let listing = Listing { view, wanted, entries, passing: None, bare: None, section: None };
        let entries = stream::try_unfold(listing, |mut listing| async move {
            Ok::<_, StoreError>(listing.next().await?.map(|entry| (entry, listing)))
        });
        Ok(entries.boxed())
    };
    stream::once(begin).try_flatten().boxed()
}

fn of_section(section: Section) -> impl Stream<Item = Result<ListEntry, StoreError>> + Send {
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
    /// The array that it is in, if that is not.
    section: Option<Section>,
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
                return self.view.as_shown(entry).await.map(Some);
            }
        }
    }

    /// Whether a key is of the array that was passed through last.
    fn passes(&self, key: &StoreKey) -> bool {
        self.passing.as_ref().is_some_and(|prefix| key.as_str().starts_with(prefix.as_str()))
    }

    /// Whether a key is the first of an array that is shown otherwise. If so, all its keys are taken.
    async fn enters(&mut self, entry: &ListEntry) -> Result<bool, StoreError> {
        // Those of v2 are of no such array. They begin a directory, more often than not.
        if entry.key.name().starts_with(".z") {
            return Ok(false);
        }
        let parent = entry.key.parent();
        if self.bare.as_ref() == Some(&parent) {
            return Ok(false);
        }
        let (path, array) = match self.view.nodes().above(&parent).await? {
            Above::Nothing => {
                self.bare = Some(parent);
                return Ok(false);
            }
            Above::Array { path, array } => (path, array),
        };
        let Some(shown) = self.view.shown(path.clone(), array.as_ref()) else {
            self.passing = Some(path.prefix().clone());
            return Ok(false);
        };
        let mut sorter = Sorter::new(Arc::new(shown), self.wanted.clone(), true);
        sorter.add(entry.clone())?;
        while let Some(entry) = self.next_of(&sorter).await? {
            sorter.add(entry)?;
        }
        self.section = Some(sorter.into_section(&self.view));
        Ok(true)
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
