//! [`WriteLines`]: one line of writers for each stored value, with group commit.
//!
//! The first writer of a value starts a task, which takes all writes that wait, stores them together, answers them, and goes on
//! until none is left. The task does not end with the requests: once a write is in the line, a disconnect of its client does not
//! stop it.
//!
//! A writer that must do more between reading a value's version and storing it takes a [`ValueTurn`]: it waits in the line as a write
//! does, and while it has its turn no other write of this process changes the value. So it comes through however many others write.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::checks::WriteChecks;
use super::chunk_part::ChunkPart;
use super::error::WriteError;
use super::pause::{ATTEMPTS, pause};
use super::stored_chunk::{StoreAttempt, StoredChunk, ValuePlace};
use super::written::StoredValueReport;
use crate::cpu::ComputePool;
use crate::key::StorePrefix;
use crate::store::Version;

/// The most writes that are stored together.
const MAX_TOGETHER: usize = 1024;

/// A write of one stored value.
pub(super) struct ValueWrite {
    pub(super) chunk: StoredChunk,
    pub(super) part: ChunkPart,
    pub(super) checks: WriteChecks,
    /// Whether a chunk of nothing but the fill value is erased.
    pub(super) erases_fill: bool,
}

/// Where the outcome of a write goes.
type WriteAnswer = oneshot::Sender<Result<StoredValueReport, WriteError>>;

/// Who waits in a line.
enum LinePlace {
    /// A write, and where its outcome goes.
    Write(Box<ValueWrite>, WriteAnswer),
    /// Who wants the value for itself.
    Turn(oneshot::Sender<ValueTurn>),
    /// Who waits until all before it have ended, and keeps no one waiting.
    End(oneshot::Sender<()>),
}

/// What the head of a line does next.
enum HeadStep {
    /// It stores these writes together, and answers them.
    Store(Vec<ValueWrite>, Vec<WriteAnswer>),
    /// It gives the value away for a while.
    GiveTurn(oneshot::Sender<ValueTurn>),
}

/// The right to change one stored value, which no other writer of this process has at the same time. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct ValueTurn(
    #[expect(dead_code, reason = "the line waits until it is dropped")] oneshot::Sender<()>,
);

/// The lines of all stored values that are being written. Clones share them.
#[derive(Clone)]
pub(super) struct WriteLines {
    cpu: ComputePool,
    waiting: Arc<Mutex<HashMap<ValuePlace, VecDeque<LinePlace>>>>,
}

impl WriteLines {
    /// Lines of writers that encode on this pool.
    pub(super) fn new(cpu: ComputePool) -> Self {
        Self { cpu, waiting: Arc::default() }
    }

    /// Writes a part of a value, together with all others that wait.
    ///
    /// # Errors
    /// [`WriteError`].
    pub(super) async fn write(&self, write: ValueWrite) -> Result<StoredValueReport, WriteError> {
        let name = write.chunk.name();
        let key = name.1.clone();
        let (answer, answered) = oneshot::channel();
        self.enter([(name, LinePlace::Write(Box::new(write), answer))]);
        answered.await.unwrap_or(Err(WriteError::Lost { key }))
    }

    /// Waits until a value is its own.
    ///
    /// # Errors
    /// [`WriteError::Lost`].
    pub(super) async fn turn(&self, name: ValuePlace) -> Result<ValueTurn, WriteError> {
        let key = name.1.clone();
        let (turn, promised) = oneshot::channel();
        self.enter([(name, LinePlace::Turn(turn))]);
        promised.await.map_err(|_gone| WriteError::Lost { key })
    }

    /// Waits until all of these values are its own. It has a place in all lines at the same time, so that of two that want the
    /// same values one gets all of them.
    ///
    /// # Errors
    /// [`WriteError::Lost`].
    pub(super) async fn turns(&self, chunks: &[StoredChunk]) -> Result<Vec<ValueTurn>, WriteError> {
        let (places, promised): (Vec<_>, Vec<_>) = chunks
            .iter()
            .map(|chunk| {
                let (turn, promised) = oneshot::channel();
                ((chunk.name(), LinePlace::Turn(turn)), (chunk, promised))
            })
            .unzip();
        self.enter(places);
        let mut turns = Vec::with_capacity(chunks.len());
        for (chunk, promised) in promised {
            let lost = |_gone| WriteError::Lost { key: chunk.place.key.clone() };
            turns.push(promised.await.map_err(lost)?);
        }
        Ok(turns)
    }

    /// Waits until all writes of values below a prefix have ended that are in a line now.
    pub(super) async fn wait_below(&self, mount: &str, prefix: &StorePrefix) {
        let ends: Vec<_> = self
            .waiting()
            .iter_mut()
            .filter(|((of, key), _)| &**of == mount && key.as_str().starts_with(prefix.as_str()))
            .map(|(_, line)| {
                let (end, ended) = oneshot::channel();
                line.push_back(LinePlace::End(end));
                ended
            })
            .collect();
        for ended in ends {
            // A line that is gone has no writes.
            let _ = ended.await;
        }
    }

    /// Writes a part of a value in a turn of the caller.
    ///
    /// # Errors
    /// [`WriteError`].
    pub(super) async fn write_in_turn(
        &self,
        _turn: &ValueTurn,
        write: ValueWrite,
    ) -> Result<StoredValueReport, WriteError> {
        let version = commit(&self.cpu, std::slice::from_ref(&write)).await?;
        Ok(StoredValueReport { version, is_whole: write.chunk.is_covered(&write.part) })
    }

    /// Gives each its place at the end of the line of its value, all at the same time.
    fn enter(&self, places: impl IntoIterator<Item = (ValuePlace, LinePlace)>) {
        let mut waiting = self.waiting();
        for (name, place) in places {
            if let Some(line) = waiting.get_mut(&name) {
                line.push_back(place);
            } else {
                waiting.insert(name.clone(), VecDeque::from([place]));
                tokio::spawn(LineHead { lines: self.clone(), name, has_ended: false }.run());
            }
        }
    }

    /// No code panics while it holds the lock.
    fn waiting(&self) -> MutexGuard<'_, HashMap<ValuePlace, VecDeque<LinePlace>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task at the head of a line. When it is dropped, however it ends, the line is gone.
struct LineHead {
    lines: WriteLines,
    name: ValuePlace,
    /// Whether the line has ended. There may be a new one of the same name since.
    has_ended: bool,
}

impl LineHead {
    async fn run(mut self) {
        while let Some(next) = self.next() {
            match next {
                HeadStep::Store(batch, answers) => {
                    let outcome = commit(&self.lines.cpu, &batch).await;
                    for (write, answer) in batch.into_iter().zip(answers) {
                        let is_whole = write.chunk.is_covered(&write.part);
                        let outcome = outcome.clone().map(|version| StoredValueReport { version, is_whole });
                        // The request may be gone.
                        let _ = answer.send(outcome);
                    }
                }
                HeadStep::GiveTurn(turn) => {
                    let (held, ended) = oneshot::channel();
                    // Who wanted it may be gone. The turn ends when it is dropped.
                    if turn.send(ValueTurn(held)).is_ok() {
                        let _ = ended.await;
                    }
                }
            }
        }
    }

    /// What is at the front: the writes that can be stored together, or a turn; `None` if none waits, and then the line has ended.
    fn next(&mut self) -> Option<HeadStep> {
        let mut waiting = self.lines.waiting();
        let line = waiting.get_mut(&self.name)?;
        let (mut batch, mut answers) = loop {
            match line.pop_front() {
                Some(LinePlace::Write(write, answer)) => break (vec![*write], vec![answer]),
                Some(LinePlace::Turn(turn)) => return Some(HeadStep::GiveTurn(turn)),
                // Who waited may be gone.
                Some(LinePlace::End(ended)) => drop(ended.send(())),
                None => {
                    waiting.remove(&self.name);
                    self.has_ended = true;
                    return None;
                }
            }
        };
        while batch.len() < MAX_TOGETHER
            && let (Some(first), Some(LinePlace::Write(next, _))) = (batch.first(), line.front())
            && next.can_be_stored_with(first)
        {
            if let Some(LinePlace::Write(write, answer)) = line.pop_front() {
                batch.push(*write);
                answers.push(answer);
            }
        }
        Some(HeadStep::Store(batch, answers))
    }
}

impl ValueWrite {
    /// Whether both can be stored in one step. A check is for the value before its write, and for that write alone: where it fails,
    /// the others are still stored.
    fn can_be_stored_with(&self, first: &Self) -> bool {
        first.checks.value.is_none()
            && self.checks.value.is_none()
            && self.erases_fill == first.erases_fill
            && self.chunk.is_same_as(&first.chunk)
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
///
/// The array is checked after the value's version is read and before the write at that version: had it been erased before, the
/// value would be another one. Where there was no value, another array may have been created just before the write: then the value is
/// erased again.
async fn commit(cpu: &ComputePool, batch: &[ValueWrite]) -> Result<Option<Version>, WriteError> {
    let Some(ValueWrite { chunk, checks, erases_fill, .. }) = batch.first() else { return Ok(None) };
    let array = batch.iter().find_map(|write| write.checks.array.as_ref());
    // Nothing remains of what is before a write of the whole value.
    let last_whole = batch.iter().rposition(|write| chunk.is_covered(&write.part));
    let parts = batch.iter().skip(last_whole.unwrap_or(0)).map(|write| write.part.clone());
    let parts: Arc<Vec<ChunkPart>> = Arc::new(parts.collect());
    let needs_conditions = last_whole.is_none() || checks.value.is_some();
    for attempt in 0..ATTEMPTS {
        pause(attempt).await;
        let mut current = match (last_whole, array) {
            (None, _) => Some(chunk.read().await?),
            (Some(_), None) if !needs_conditions => None,
            (Some(_), _) => Some(chunk.lookup().await?),
        };
        let found = Instant::now();
        if let (Some(current), Some(check)) = (&current, &checks.value)
            && !current.passes(check)
        {
            return Err(WriteError::ConditionFailed);
        }
        let stored = current.as_mut().and_then(|current| current.bytes.take());
        let encoded = chunk.encode(cpu, stored, &parts, *erases_fill).await?;
        if let Some(array) = array {
            array.check_since(found).await?;
        }
        let outcome = match chunk.store(encoded.clone(), current.as_ref()).await {
            Err(WriteError::NoConditions { .. }) if !needs_conditions => chunk.store(encoded, None).await?,
            outcome => outcome?,
        };
        let StoreAttempt::Done(version) = outcome else { continue };
        if let (Some(array), Some(version)) = (array, &version)
            && current.is_some_and(|current| current.is_absent())
            && let Err(error @ WriteError::Replaced { .. }) = array.check_since(Instant::now()).await
        {
            chunk.withdraw(version.clone()).await?;
            return Err(error);
        }
        return Ok(version);
    }
    Err(WriteError::Contended { key: chunk.place.key.clone() })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::cpu::ComputePoolOptions;
    use crate::key::{NodePath, StoreKey};

    fn place(key: &str) -> ValuePlace {
        ("m".into(), StoreKey::parse(key).unwrap())
    }

    #[tokio::test]
    async fn who_waits_for_the_end_of_writes_holds_up_none_of_them() {
        let lines = WriteLines::new(ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap());
        let held = lines.turn(place("g/zarr.json")).await.unwrap();
        let other = lines.turn(place("other/c/0")).await.unwrap();
        let waiting = tokio::spawn({
            let lines = lines.clone();
            async move { lines.wait_below("m", NodePath::parse("g").unwrap().prefix()).await }
        });
        let first = lines.turn(place("g/a/c/0")).await.unwrap();
        tokio::task::yield_now().await;
        drop(first);
        // The value that it waits for is held by one who needs another value below the same path.
        let second = timeout(Duration::from_secs(10), lines.turn(place("g/a/c/0"))).await;
        let second = second.expect("no one holds it").unwrap();
        assert!(!waiting.is_finished());
        drop((held, second));
        waiting.await.unwrap();
        lines.wait_below("m", NodePath::parse("g").unwrap().prefix()).await;
        drop(other);
    }
}
