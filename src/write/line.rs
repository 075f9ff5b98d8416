//! [`WriteLines`]: one line of writers for each stored value, with group commit.
//!
//! The first writer of a value starts a task, which takes all writes that wait, stores them together, answers them, and goes on
//! until none is left. The task does not end with the requests: once a write is in the line, a disconnect of its client does not
//! stop it.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::chunk_part::ChunkPart;
use super::error::WriteError;
use super::pause::{ATTEMPTS, pause};
use super::stored_chunk::{StoreAttempt, StoredChunk, VersionCheck};
use super::written::StoredValueReport;
use crate::cpu::ComputePool;
use crate::key::StoreKey;
use crate::store::Version;

/// The most writes that are stored together.
const MAX_TOGETHER: usize = 1024;

/// A stored value: its mount and its key.
type ValueName = (Arc<str>, StoreKey);

/// A write of one stored value that waits.
struct WaitingWrite {
    chunk: StoredChunk,
    part: ChunkPart,
    check: Option<VersionCheck>,
    erases_fill: bool,
    answer: oneshot::Sender<Result<StoredValueReport, WriteError>>,
}

/// The lines of all stored values that are being written. Clones share them.
#[derive(Clone)]
pub(super) struct WriteLines {
    cpu: ComputePool,
    waiting: Arc<Mutex<HashMap<ValueName, VecDeque<WaitingWrite>>>>,
}

impl WriteLines {
    /// Lines of writers that encode on this pool.
    pub(super) fn new(cpu: ComputePool) -> Self {
        Self { cpu, waiting: Arc::default() }
    }

    /// Writes a part of a value, together with all others that wait. If `check` is given, it must allow the version that the
    /// value has before this write.
    ///
    /// # Errors
    /// [`WriteError`].
    pub(super) async fn write(
        &self,
        chunk: StoredChunk,
        part: ChunkPart,
        check: Option<VersionCheck>,
        erases_fill: bool,
    ) -> Result<StoredValueReport, WriteError> {
        let name = (Arc::clone(&chunk.place.mount), chunk.place.key.clone());
        let (answer, answered) = oneshot::channel();
        let write = WaitingWrite { chunk, part, check, erases_fill, answer };
        let is_first = {
            let mut waiting = self.waiting();
            if let Some(line) = waiting.get_mut(&name) {
                line.push_back(write);
                false
            } else {
                waiting.insert(name.clone(), VecDeque::from([write]));
                true
            }
        };
        let key = name.1.clone();
        if is_first {
            let head = LineHead { lines: self.clone(), name, has_ended: false };
            tokio::spawn(head.run());
        }
        answered.await.unwrap_or(Err(WriteError::Lost { key }))
    }

    /// No code panics while it holds the lock.
    fn waiting(&self) -> MutexGuard<'_, HashMap<ValueName, VecDeque<WaitingWrite>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task at the head of a line. When it is dropped, however it ends, the line is gone.
struct LineHead {
    lines: WriteLines,
    name: ValueName,
    /// Whether the line has ended. There may be a new one of the same name since.
    has_ended: bool,
}

impl LineHead {
    async fn run(mut self) {
        while let Some(batch) = self.next_batch() {
            let outcome = commit(&self.lines.cpu, &batch).await;
            for write in batch {
                let is_whole = write.chunk.is_covered(&write.part);
                let outcome = outcome.clone().map(|version| StoredValueReport { version, is_whole });
                // The request may be gone.
                let _ = write.answer.send(outcome);
            }
        }
    }

    /// The writes at the front that can be stored together; `None` if none waits, and then the line has ended.
    fn next_batch(&mut self) -> Option<Vec<WaitingWrite>> {
        let mut waiting = self.lines.waiting();
        let line = waiting.get_mut(&self.name)?;
        let Some(first) = line.pop_front() else {
            waiting.remove(&self.name);
            self.has_ended = true;
            return None;
        };
        let mut batch = vec![first];
        // A check is for the value before its write, and for that write alone: where it fails, the others are still stored.
        while let (Some(first), Some(next)) = (batch.first(), line.front())
            && batch.len() < MAX_TOGETHER
            && first.check.is_none()
            && next.check.is_none()
            && next.erases_fill == first.erases_fill
            && next.chunk.is_encoded_as(&first.chunk)
        {
            batch.extend(line.pop_front());
        }
        Some(batch)
    }
}

impl Drop for LineHead {
    fn drop(&mut self) {
        if !self.has_ended {
            self.lines.waiting().remove(&self.name);
        }
    }
}

/// Stores the parts of a batch in one step. Returns the new version, if the backend reports it.
async fn commit(cpu: &ComputePool, batch: &[WaitingWrite]) -> Result<Option<Version>, WriteError> {
    let Some(WaitingWrite { chunk, check, erases_fill, .. }) = batch.first() else { return Ok(None) };
    // Nothing remains of what is before a write of the whole value.
    let last_whole = batch.iter().rposition(|write| chunk.is_covered(&write.part));
    let parts = batch.iter().skip(last_whole.unwrap_or(0)).map(|write| write.part.clone());
    let parts: Arc<Vec<ChunkPart>> = Arc::new(parts.collect());
    let needs_read = last_whole.is_none() || check.is_some();
    for attempt in 0..ATTEMPTS {
        pause(attempt).await;
        let mut current = if needs_read { Some(chunk.read().await?) } else { None };
        if let (Some(current), Some(check)) = (&current, check)
            && !current.passes(check)
        {
            return Err(WriteError::ConditionFailed);
        }
        let stored =
            current.as_mut().and_then(|current| current.bytes.take()).filter(|_| last_whole.is_none());
        let encoded = chunk.encode(cpu, stored, &parts, *erases_fill).await?;
        if let StoreAttempt::Done(version) = chunk.store(encoded, current.as_ref()).await? {
            return Ok(version);
        }
    }
    Err(WriteError::Contended { key: chunk.place.key.clone() })
}
