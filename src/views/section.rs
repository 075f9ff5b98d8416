//! [`Section`]: what a view lists of one array, in the order of the keys.
//!
//! Chunks are known by the indexes of their shards alone: no data is read. Stored keys that are no chunk's are listed
//! among them as they are. All stored chunks of the array are held in memory meanwhile, and no indexes but those that
//! are remembered anyway.

use std::collections::VecDeque;
use std::sync::Arc;

use super::error::{ViewError, failed};
use super::geometry::Place;
use super::order::{StoredChunks, Walk, Wanted};
use super::shown::Shown;
use super::view::{TRIES, ViewStore, part_info};
use crate::array::{StoredKey, Trace};
use crate::key::{StoreKey, StorePrefix};
use crate::store::{ListEntry, StoreError};

/// Stored chunks of one array that are listed at most.
const MOST_STORED: usize = 4 << 20;

/// Sorts what is stored below an array into chunks and others.
#[derive(Debug)]
pub(super) struct Sorter {
    shown: Arc<Shown>,
    chunks: StoredChunks,
    others: VecDeque<ListEntry>,
    wanted: Wanted,
    with_chunks: bool,
}

impl Sorter {
    /// Of an array, these keys are wanted.
    pub(super) fn new(shown: Arc<Shown>, wanted: Wanted, with_chunks: bool) -> Self {
        Self { shown, chunks: StoredChunks::new(), others: VecDeque::new(), wanted, with_chunks }
    }

    /// Whether a key is below the array.
    pub(super) fn takes(&self, key: &StoreKey) -> bool {
        key.as_str().starts_with(self.shown.path().prefix().as_str())
    }

    /// Adds what is stored under a key below the array. Keys come in order.
    pub(super) fn add(&mut self, entry: ListEntry) -> Result<(), StoreError> {
        let key = entry.key.as_str();
        if let Some(coords) = self.shown.decode_stored(key) {
            if self.with_chunks {
                self.chunks.insert(coords, entry.info);
            }
            if self.chunks.len() > MOST_STORED {
                let path = self.shown.path().clone();
                return Err(failed(ViewError::TooManyChunks { path, limit: MOST_STORED }));
            }
        } else if self.shown.decode(key).is_none() && self.wanted.has(key) {
            self.others.push_back(entry);
        }
        Ok(())
    }

    /// What the view lists of it.
    pub(super) fn into_section(self, view: &ViewStore) -> Section {
        let walk = Walk::new(Arc::clone(&self.shown), self.chunks, self.wanted);
        let (view, trace) = (view.clone(), view.trace());
        Section { view, trace, shown: self.shown, walk, others: self.others, chunk: None }
    }
}

/// What is listed of one array.
#[derive(Debug)]
pub(super) struct Section {
    view: ViewStore,
    trace: Arc<Trace>,
    shown: Arc<Shown>,
    walk: Walk,
    others: VecDeque<ListEntry>,
    /// The next chunk, if it is known already.
    chunk: Option<ListEntry>,
}

impl Section {
    /// The next key.
    pub(super) async fn next(&mut self) -> Result<Option<ListEntry>, StoreError> {
        if self.chunk.is_none() {
            self.chunk = self.next_chunk().await?;
        }
        let other_is_next = match (self.others.front(), &self.chunk) {
            (Some(other), Some(chunk)) => other.key < chunk.key,
            (other, _) => other.is_some(),
        };
        if !other_is_next {
            return Ok(self.chunk.take());
        }
        let Some(other) = self.others.pop_front() else { return Ok(None) };
        self.view.as_shown(other).await.map(Some)
    }

    /// Goes past all keys below a prefix.
    pub(super) fn skip(&mut self, prefix: &StorePrefix) {
        // The first text behind all that begin with it: `0` follows `/`.
        let Some(behind) = prefix.as_str().strip_suffix('/').map(|name| format!("{name}0")) else { return };
        while self.others.front().is_some_and(|other| other.key.as_str() < behind.as_str()) {
            self.others.pop_front();
        }
        if self.chunk.as_ref().is_some_and(|chunk| chunk.key.as_str() < behind.as_str()) {
            self.chunk = None;
        }
        self.walk.skip_to(behind);
    }

    /// The next shown chunk that is there.
    async fn next_chunk(&mut self) -> Result<Option<ListEntry>, StoreError> {
        while let Some((coords, key)) = self.walk.next() {
            // The walk stays within the array; a key too long for a store is none.
            let (Some(place), Ok(key)) = (self.shown.geometry().place(&coords), StoreKey::parse(&key)) else {
                continue;
            };
            if let Some(entry) = self.entry(key, &place).await? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    async fn entry(&self, key: StoreKey, place: &Place) -> Result<Option<ListEntry>, StoreError> {
        let Some(info) = self.walk.info(&place.stored) else { return Ok(None) };
        if place.numbers.is_empty() {
            return Ok(Some(ListEntry { key, info: info.clone() }));
        }
        let stored: StoredKey = self.shown.array().stored_key(&place.stored).map_err(failed)?;
        let mut value = stored.at(info.clone());
        for _ in 1..TRIES {
            let found = self.shown.part(self.view.source(), &value, None, &place.numbers, &self.trace).await;
            match found {
                Ok(None) => return Ok(None),
                Ok(Some(part)) => return Ok(Some(ListEntry { key, info: part_info(&value.info, &part) })),
                // It changed since it was listed, or the listing says less of its version than it does itself.
                Err(error) if error.is_changed() => match stored.look(&self.trace).await.map_err(failed)? {
                    Some(now) => value = now,
                    None => return Ok(None),
                },
                Err(error) => return Err(failed(error)),
            }
        }
        Err(StoreError::VersionChanged)
    }
}
