//! Values are copied as they are stored, several at a time.

use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::future::try_join;
use futures::stream::{TryChunksError, TryStreamExt};

use super::copied_document::document_name;
use super::copied_versions::CopiedVersions;
use super::error::NodeCopyError;
use super::in_flight::CopiesInFlight;
use super::node_copy::{NodeCopy, NodeTransfer};
use super::plan::NodeCopyPlan;
use crate::key::StoreKey;
use crate::store::{ByteRange, ListEntry, StoreError, ValueInfo, ValueStream, WriteCondition};
use crate::write::each::{BATCH, each};
use crate::write::lease::ArrayLease;
use crate::write::nodes::error::NodeWriteError;
use crate::write::pause::{ATTEMPTS, pause};
use crate::write::uncached::as_stored;

/// The values of a node that were copied.
pub(super) struct CopiedValues {
    /// Which they were, of a move.
    pub(super) versions: CopiedVersions,
    pub(super) count: u64,
    /// The key of the first one at the target.
    pub(super) first: Option<StoreKey>,
}

/// What has become of a value.
enum CopiedValue {
    /// It is stored now.
    Stored,
    /// It was there already.
    Same,
    /// The source has none any more.
    Gone,
    /// There is another one at the target.
    Different,
}

/// Does a part of the work under a lease, which is checked before, and held to the end of it.
pub(super) async fn leased<T>(
    lease: &mut ArrayLease,
    work: impl Future<Output = Result<T, NodeCopyError>>,
) -> Result<T, NodeCopyError> {
    lease.check().await?;
    lease.hold(work).await?
}

impl NodeCopy {
    /// Copies all values but the documents.
    pub(super) async fn copy_values(
        &self,
        plan: &mut NodeCopyPlan,
        has_written: &AtomicBool,
    ) -> Result<CopiedValues, NodeCopyError> {
        let (from, budget) = (&self.from, &self.to.writer.budget);
        let (mut versions, in_flight) = (CopiedVersions::new(budget), CopiesInFlight::new(budget));
        let (limit, mut listed) = (from.writer.writer.options().max_values, 0_u64);
        let (mut count, mut first) = (0_u64, None);
        let has_leftovers = plan.has_leftovers;
        let listing = from.store().list_prefix(from.path.prefix(), None);
        let values = listing.try_filter(|entry| ready(document_name(from.relative(&entry.key)).is_none()));
        let mut batches = values.try_chunks(BATCH);
        let next = |ended: TryChunksError<ListEntry, StoreError>| {
            NodeCopyError::value(from.path.prefix().as_str(), ended.1)
        };
        while let Some(batch) = batches.try_next().await.map_err(next)? {
            // The target may be a part of the source by ways that a store does not know: then it grows with each value.
            listed = listed.saturating_add(batch.len() as u64);
            if listed > limit {
                return Err(NodeCopyError::TooManyValues { limit });
            }
            // What is copied into a group that is being erased would keep the erasure from its end.
            if let Some(first) = &first {
                self.check_stored(first).await?;
            }
            let in_flight = &in_flight;
            let copies = batch.into_iter().map(|entry| async move {
                let copied = self.copy_value(&entry, has_leftovers, in_flight, has_written).await?;
                Ok(copied.map(|info| (entry.key, info)))
            });
            let copied = leased(&mut plan.lease, each(copies.collect())).await?;
            for (key, info) in copied.into_iter().flatten() {
                count = count.saturating_add(1);
                if first.is_none() {
                    first = Some(self.to.key(from.relative(&key))?);
                }
                if self.transfer == NodeTransfer::Move {
                    versions.insert(from.relative(&key), &info.version)?;
                }
            }
        }
        Ok(CopiedValues { versions, count, first })
    }

    /// Checks that a value that was stored at the target is still there.
    ///
    /// # Errors
    /// [`NodeWriteError::ValuesChanged`]; a failure of the backend.
    pub(super) async fn check_stored(&self, key: &StoreKey) -> Result<(), NodeCopyError> {
        if self.to.writer.is_stored(key).await? { Ok(()) } else { Err(self.values_changed()) }
    }

    /// The error of a copy whose values others have erased.
    pub(super) fn values_changed(&self) -> NodeCopyError {
        NodeWriteError::ValuesChanged { path: self.to.path.clone() }.into()
    }

    /// Copies a value. Returns what was copied; `None` if it was erased meanwhile.
    async fn copy_value(
        &self,
        entry: &ListEntry,
        mut may_be_there: bool,
        in_flight: &CopiesInFlight,
        has_written: &AtomicBool,
    ) -> Result<Option<ValueInfo>, NodeCopyError> {
        let (from, to) = (&entry.key, self.to.key(self.from.relative(&entry.key))?);
        let failed = |source| NodeCopyError::value(from.as_str(), source);
        let mut info = entry.info.clone();
        for attempt in 0..ATTEMPTS {
            pause(attempt).await;
            let (size, limit) = (info.size, self.max_value_bytes);
            if size > limit {
                return Err(NodeCopyError::ValueTooLarge { key: from.clone(), size, limit });
            }
            match self.try_copy((from, &info), &to, may_be_there, in_flight).await? {
                Ok(CopiedValue::Stored) => {
                    has_written.store(true, Ordering::Relaxed);
                    return Ok(Some(info));
                }
                Ok(CopiedValue::Same) => return Ok(Some(info)),
                Ok(CopiedValue::Gone) => return Ok(None),
                Ok(CopiedValue::Different) => return Err(NodeCopyError::NotOfSource { key: to }),
                Err(StoreError::ConditionFailed) => may_be_there = true,
                Err(StoreError::VersionChanged) => {
                    match as_stored(&**self.from.store()).head(from).await.map_err(failed)? {
                        Some(now) => info = now,
                        None => return Ok(None),
                    }
                }
                Err(source) => return Err(failed(source)),
            }
        }
        Err(NodeCopyError::SourceChanged { key: from.clone() })
    }

    async fn try_copy(
        &self,
        (from, info): (&StoreKey, &ValueInfo),
        to: &StoreKey,
        may_be_there: bool,
        in_flight: &CopiesInFlight,
    ) -> Result<Result<CopiedValue, StoreError>, NodeCopyError> {
        let store = self.to.store();
        // Some backends hold a value that they store under a condition. A longer one is stored without: the lease keeps other copies
        // away, and what was there before is known.
        let held = store.held_by_set(&WriteCondition::IfAbsent);
        let condition =
            if held == 0 || info.size <= held { WriteCondition::IfAbsent } else { WriteCondition::Always };
        let may_be_there = may_be_there || condition == WriteCondition::Always;
        let _in_flight = in_flight.begin(store.held_by_set(&condition).min(info.size)).await?;
        Ok(self.copy_or_compare((from, info), to, may_be_there, condition).await)
    }

    async fn copy_or_compare(
        &self,
        (from, info): (&StoreKey, &ValueInfo),
        to: &StoreKey,
        may_be_there: bool,
        condition: WriteCondition,
    ) -> Result<CopiedValue, StoreError> {
        let (source, target, pin) = (self.from.store(), self.to.store(), info.version.pin());
        if may_be_there && let Some(found) = as_stored(&**target).head(to).await? {
            let is_same = self.is_same((from, info), (to, &found)).await?;
            return Ok(if is_same { CopiedValue::Same } else { CopiedValue::Different });
        }
        let copied = if self.is_within_store {
            source.copy(from, pin, to, condition).await?.map(drop)
        } else {
            match source.get(from, ByteRange::Whole, pin).await? {
                Some(value) => Some(target.set(to, value.into_exact_stream(), condition).await.map(drop)?),
                None => None,
            }
        };
        Ok(if copied.is_some() { CopiedValue::Stored } else { CopiedValue::Gone })
    }

    /// Whether a value of the source and one of the target have the same bytes.
    ///
    /// # Errors
    /// [`StoreError::VersionChanged`] if one of them is another one by now; any failure of a backend.
    pub(super) async fn is_same(
        &self,
        (from, info): (&StoreKey, &ValueInfo),
        (to, found): (&StoreKey, &ValueInfo),
    ) -> Result<bool, StoreError> {
        if found.size != info.size {
            return Ok(false);
        }
        let (source, target) = (as_stored(&**self.from.store()), as_stored(&**self.to.store()));
        let one = source.get(from, ByteRange::Whole, info.version.pin());
        let both = try_join(one, target.get(to, ByteRange::Whole, found.version.pin()));
        let (Some(one), Some(other)) = both.await? else { return Err(StoreError::VersionChanged) };
        is_same(one.into_exact_stream(), other.into_exact_stream()).await
    }
}

/// Whether two values have the same bytes.
async fn is_same(mut one: ValueStream, mut other: ValueStream) -> Result<bool, StoreError> {
    let (mut left, mut right) = (Bytes::new(), Bytes::new());
    loop {
        if left.is_empty() {
            left = next_piece(&mut one).await?;
        }
        if right.is_empty() {
            right = next_piece(&mut other).await?;
        }
        let length = left.len().min(right.len());
        if length == 0 {
            return Ok(left.is_empty() && right.is_empty());
        }
        if left.split_to(length) != right.split_to(length) {
            return Ok(false);
        }
    }
}

/// The next piece of a value; an empty one at its end.
async fn next_piece(stream: &mut ValueStream) -> Result<Bytes, StoreError> {
    while let Some(piece) = stream.try_next().await? {
        if !piece.is_empty() {
            return Ok(piece);
        }
    }
    Ok(Bytes::new())
}

#[cfg(test)]
mod tests {
    use futures::stream::{self, StreamExt};

    use super::*;

    #[tokio::test]
    async fn values_are_equal_however_they_are_cut() {
        let value = |pieces: &[&'static str]| {
            let pieces: Vec<_> =
                pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))).collect();
            stream::iter(pieces).boxed()
        };
        for (one, other, expected) in [
            (&["abcd"] as &[&str], &["a", "", "bcd"] as &[&str], true),
            (&[], &[""], true),
            (&["abcd"], &["abcx"], false),
            (&["abc"], &["abc", "d"], false),
            (&["ab", "cd"], &["abc"], false),
        ] {
            assert_eq!(is_same(value(one), value(other)).await.unwrap(), expected, "{one:?} {other:?}");
        }
    }
}
