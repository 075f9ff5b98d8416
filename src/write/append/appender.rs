//! [`AppendWriter`]: one line of appends for each array, with group commit.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};

use super::arrival::Arrival;
use super::batch::AppendBatch;
use super::error::AppendError;
use super::line_lease::LineLease;
use super::rows::{Append, Appended};
use crate::array::OpenNode;
use crate::cpu::ComputePool;
use crate::key::NodePath;
use crate::write::{ArrayWriter, NodeWriter};

/// The most appends, and the most bytes of them, that are stored together.
const MAX_TOGETHER: usize = 256;
const MAX_TOGETHER_BYTES: usize = 64 << 20;
/// How long a server keeps the lease of an array to which no client appends.
const IDLE: Duration = Duration::from_millis(250);
/// After this time, and while others append here, another server has its turn. It waits for longer than that.
const TURN: Duration = Duration::from_millis(1500);
/// How long that one has to take it.
const GAP: Duration = Duration::from_millis(150);

/// An array: its mount and its path.
type ArrayName = (Arc<str>, NodePath);

/// An append that waits.
struct WaitingAppend {
    append: Append,
    nodes: NodeWriter,
    opened: Arc<OpenNode>,
    arrival: Arrival,
    answer: oneshot::Sender<Result<Appended, Arc<AppendError>>>,
}

/// The appends to one array that wait.
#[derive(Default)]
struct AppendLine {
    waiting: VecDeque<WaitingAppend>,
    /// How many keys were used, as long as the task at its head has the lease.
    keys_used: Option<u64>,
    /// Notifies the task at its head that one more waits.
    arrived: Arc<Notify>,
}

/// Appends to arrays. Clones share the lines, so a process has one.
#[derive(Clone)]
pub struct AppendWriter {
    writer: ArrayWriter,
    cpu: ComputePool,
    lines: Arc<Mutex<HashMap<ArrayName, AppendLine>>>,
}

impl AppendWriter {
    /// Appends with this writer of elements.
    #[must_use]
    pub fn new(writer: ArrayWriter, cpu: ComputePool) -> Self {
        Self { writer, cpu, lines: Arc::default() }
    }

    /// Appends elements to an array, together with all others that wait. Once this is called, it goes on without its caller.
    ///
    /// # Errors
    /// [`AppendError`].
    pub async fn append(
        &self,
        (mount, path): (&Arc<str>, &NodePath),
        (nodes, opened): (NodeWriter, Arc<OpenNode>),
        append: Append,
    ) -> Result<Appended, Arc<AppendError>> {
        let name = (Arc::clone(mount), path.clone());
        let (answer, answered) = oneshot::channel();
        let is_first = {
            let mut lines = self.lines();
            let is_first = !lines.contains_key(&name);
            let line = lines.entry(name.clone()).or_default();
            let arrival = Arrival::now(line.keys_used);
            line.waiting.push_back(WaitingAppend { append, nodes, opened, arrival, answer });
            line.arrived.notify_one();
            is_first
        };
        if is_first {
            tokio::spawn(LineHead { appends: self.clone(), name, has_ended: false }.run());
        }
        answered.await.unwrap_or_else(|_gone| Err(Arc::new(AppendError::Lost)))
    }

    /// The writer of elements.
    pub(super) fn writer(&self) -> &ArrayWriter {
        &self.writer
    }

    /// No code panics while it holds the lock.
    fn lines(&self) -> MutexGuard<'_, HashMap<ArrayName, AppendLine>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task at the head of a line. When it is dropped, however it ends, the line is gone.
struct LineHead {
    appends: AppendWriter,
    name: ArrayName,
    /// Whether the line has ended. There may be a new one of the same name since.
    has_ended: bool,
}

impl LineHead {
    async fn run(mut self) {
        let mut lease = LineLease::new(self.appends.writer.clone());
        loop {
            let batch = self.next_batch();
            if batch.is_empty() {
                if lease.taken().is_some() && self.is_asked_again().await {
                    continue;
                }
                self.note_keys_used(None);
                lease.release().await;
                if self.end_if_idle() {
                    return;
                }
                continue;
            }
            if lease.taken().is_some_and(|taken| taken.elapsed() > TURN) {
                self.note_keys_used(None);
                lease.release().await;
                sleep(GAP).await;
            }
            self.store(batch, &mut lease).await;
            self.note_keys_used(lease.keys_used());
        }
    }

    /// Notes how many keys were used, if that is known, for those who arrive from now on.
    fn note_keys_used(&self, keys_used: Option<u64>) {
        if let Some(line) = self.appends.lines().get_mut(&self.name) {
            line.keys_used = keys_used;
        }
    }

    async fn store(&self, batch: Vec<WaitingAppend>, lease: &mut LineLease) {
        let (mut appends, mut answers, mut made_for, mut first) = (Vec::new(), Vec::new(), Vec::new(), None);
        for WaitingAppend { append, nodes, opened, arrival, answer } in batch {
            appends.push(append);
            answers.push(answer);
            made_for.push((Arc::clone(&opened), arrival));
            first.get_or_insert((nodes, opened));
        }
        let Some((nodes, opened)) = first else { return };
        let (writer, cpu) = (self.appends.writer.clone(), self.appends.cpu.clone());
        let path = self.name.1.clone();
        let batch = AppendBatch { path, opened, nodes, writer, cpu, appends: appends.into(), made_for };
        for (answer, outcome) in answers.into_iter().zip(batch.commit(lease).await) {
            // The request may be gone.
            let _ = answer.send(outcome);
        }
    }

    /// The appends at the front that can be stored together.
    fn next_batch(&self) -> Vec<WaitingAppend> {
        let mut lines = self.appends.lines();
        let Some(line) = lines.get_mut(&self.name) else { return Vec::new() };
        let (mut batch, mut bytes) = (Vec::<WaitingAppend>::new(), 0_usize);
        while let Some(next) = line.waiting.front() {
            bytes = bytes.saturating_add(next.append.elements.bytes());
            let fits = bytes <= MAX_TOGETHER_BYTES && batch.len() < MAX_TOGETHER;
            let is_alike = batch.first().is_none_or(|first| first.append.axis == next.append.axis && fits);
            if !is_alike {
                break;
            }
            batch.extend(line.waiting.pop_front());
        }
        batch
    }

    /// Waits a moment for another append. Returns whether there is one.
    async fn is_asked_again(&self) -> bool {
        let arrived = self.appends.lines().get(&self.name).map(|line| Arc::clone(&line.arrived));
        let Some(arrived) = arrived else { return false };
        timeout(IDLE, arrived.notified()).await.is_ok()
    }

    /// Ends the line if none waits.
    fn end_if_idle(&mut self) -> bool {
        let mut lines = self.appends.lines();
        let is_idle = lines.get(&self.name).is_none_or(|line| line.waiting.is_empty());
        if is_idle {
            lines.remove(&self.name);
            self.has_ended = true;
        }
        is_idle
    }
}

impl Drop for LineHead {
    fn drop(&mut self) {
        if !self.has_ended {
            self.appends.lines().remove(&self.name);
        }
    }
}

impl fmt::Debug for AppendWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppendWriter").finish_non_exhaustive()
    }
}
