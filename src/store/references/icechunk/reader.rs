//! [`RepositoryReader`]: the values of a repository's snapshots.

use std::sync::Arc;

use super::found::{self, Places};
use super::snapshot::RepositorySnapshot;
use super::source::Source;
use crate::store::container::ContainerBudget;
use crate::store::{ByteRange, StoreError, Value, ValueInfo};

/// Reads values of snapshots. Clones share what is read.
#[derive(Clone, Debug)]
pub(super) struct RepositoryReader(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    source: Source,
    places: Places,
    budget: ContainerBudget,
}

impl RepositoryReader {
    pub(super) fn new(source: Source, places: Places, budget: ContainerBudget) -> Self {
        Self(Arc::new(Parts { source, places, budget }))
    }

    pub(super) fn source(&self) -> &Source {
        &self.0.source
    }

    pub(super) fn places(&self) -> &Places {
        &self.0.places
    }

    pub(super) fn budget(&self) -> &ContainerBudget {
        &self.0.budget
    }

    /// Size and version of the value of a key in a snapshot.
    pub(super) async fn info_in(
        &self,
        snapshot: &RepositorySnapshot,
        key: &str,
    ) -> Result<Option<ValueInfo>, StoreError> {
        match found::find(&self.0.source, snapshot, key).await? {
            None => Ok(None),
            Some(found) => self.0.places.info(&found).await.map(Some),
        }
    }

    /// The value of a key in a snapshot, or a part of it.
    pub(super) async fn read_in(
        &self,
        snapshot: &RepositorySnapshot,
        key: &str,
        range: ByteRange,
    ) -> Result<Option<Value>, StoreError> {
        match found::find(&self.0.source, snapshot, key).await? {
            None => Ok(None),
            Some(found) => self.0.places.read(&found, range).await.map(Some),
        }
    }
}
