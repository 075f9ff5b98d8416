//! One step of appends to an array: all that wait become part of it together, or none.

use std::sync::Arc;

use tokio::time::Instant;

use super::arrival::Arrival;
use super::error::AppendError;
use super::guard::AppendGuard;
use super::line_lease::LineLease;
use super::rows::{Append, Appended, check_array, end_of, joined};
use crate::array::OpenNode;
use crate::cpu::ComputePool;
use crate::key::NodePath;
use crate::write::lease::{ArrayLease, LeaseError, RecordedAppend};
use crate::write::nodes::{ArrayDocument, ChangedNode};
use crate::write::pause::{ATTEMPTS, pause};
use crate::write::{ArrayWriter, NodeWriteError, NodeWriter, WritePlan};

/// The outcome of each append of a batch.
pub(super) type Outcomes = Vec<Result<Appended, Arc<AppendError>>>;

/// Appends to one array that are stored together. All are along the same dimension.
pub(super) struct AppendBatch {
    pub(super) path: NodePath,
    pub(super) opened: Arc<OpenNode>,
    pub(super) nodes: NodeWriter,
    pub(super) writer: ArrayWriter,
    pub(super) cpu: ComputePool,
    pub(super) appends: Arc<[Append]>,
    /// For each append, the array as it was opened, and when that was.
    pub(super) made_for: Vec<(Arc<OpenNode>, Arrival)>,
}

/// What becomes of each append.
enum Placed {
    /// It is answered without being stored.
    Answered(Result<Appended, AppendError>),
    /// It is stored: its place in the list of those that are.
    Stored(usize),
}

impl AppendBatch {
    /// Stores the appends under a lease, which is taken if there is none. What is left of it can be used for the next batch.
    pub(super) async fn commit(&self, lease: &mut LineLease) -> Outcomes {
        match self.try_commit(lease).await {
            Ok(outcomes) => outcomes,
            Err(error) => {
                let error = Arc::new(error);
                self.appends.iter().map(|_| Err(Arc::clone(&error))).collect()
            }
        }
    }

    async fn try_commit(&self, line: &mut LineLease) -> Result<Outcomes, AppendError> {
        let mut first_read = None;
        for attempt in 0..ATTEMPTS {
            pause(attempt).await;
            let mut lease = line.take(&self.nodes, &self.path).await?;
            let first_read = *first_read.get_or_insert(lease.first_read());
            let outcome = self.store(&mut lease, first_read).await;
            let is_lost = matches!(outcome, Err(AppendError::Lease(LeaseError::Lost)));
            // A lost lease is another server's, or will be taken again.
            if !is_lost || lease.has_broken_off {
                line.keep(lease);
            }
            match outcome {
                // Others have changed the document. It is read again.
                Err(error) if is_lost || error.is_overtaken() => {}
                outcome => return outcome,
            }
        }
        Err(AppendError::Contended)
    }

    async fn store(
        &self,
        lease: &mut ArrayLease,
        first_read: (Instant, u64),
    ) -> Result<Outcomes, AppendError> {
        let document = self.nodes.settled_document(&self.path, &self.opened, lease).await?;
        let (placed, pending) = self.place(&document, lease, first_read);
        let mut copies = Ok(());
        if let Some(last) = pending.last() {
            let shape = last.shape.clone();
            lease.wait_for_late_writes().await?;
            lease.note(pending.clone()).await?;
            self.store_elements(&document, &shape, &pending, &placed, lease).await?;
            lease.check().await?;
            lease.is_unsettled = true;
            let changed = match self.nodes.store_shape(&document, shape).await {
                Ok(text) => ChangedNode::stored(&self.path, &document, text),
                Err(NodeWriteError::ConditionFailed) => self.settle(&pending, lease).await?,
                Err(error) if error.is_settled() => {
                    lease.is_unsettled = false;
                    return Err(error.into());
                }
                Err(error) => return Err(AppendError::Unknown(Box::new(error))),
            };
            lease.finish();
            copies = self.nodes.update_copies(&[changed]).await.map_err(|error| Arc::new(error.into()));
        } else {
            // What another server has appended since could be taken for what was pending before.
            lease.check().await?;
        }
        let stored = |place: usize| {
            copies.clone()?;
            pending.get(place).cloned().map(Appended::from).ok_or_else(|| Arc::new(AppendError::Lost))
        };
        let outcome = |placed| match placed {
            Placed::Answered(outcome) => outcome.map_err(Arc::new),
            Placed::Stored(place) => stored(place),
        };
        Ok(placed.into_iter().map(outcome).collect())
    }

    /// Settles a change of the document that has failed on its condition: others have changed the document before it, or since. As no
    /// other owner gives the array another shape, the shape shows whether it was made. Returns the document if the array has the appends.
    ///
    /// # Errors
    /// [`NodeWriteError::ConditionFailed`] if it has not.
    async fn settle(
        &self,
        pending: &[RecordedAppend],
        lease: &mut ArrayLease,
    ) -> Result<ChangedNode, AppendError> {
        let unknown = |error| AppendError::Unknown(Box::new(error));
        let document = match self.nodes.settled_document(&self.path, &self.opened, lease).await {
            // The array is erased.
            Err(NodeWriteError::ConditionFailed) => {
                lease.is_unsettled = false;
                return Err(NodeWriteError::ConditionFailed.into());
            }
            settled => settled.map_err(unknown)?,
        };
        // Who has the lease by now may have appended as much.
        lease.check().await.map_err(|error| unknown(error.into()))?;
        if pending.iter().all(|append| append.is_in_shape(&document.metadata.shape)) {
            return Ok(ChangedNode::stored(&self.path, &document, document.text()));
        }
        Err(NodeWriteError::ConditionFailed.into())
    }

    /// Gives each append its place behind the end of the array.
    fn place(
        &self,
        document: &ArrayDocument,
        lease: &ArrayLease,
        first_read: (Instant, u64),
    ) -> (Vec<Placed>, Vec<RecordedAppend>) {
        let mut pending: Vec<RecordedAppend> = Vec::new();
        let mut shape = document.metadata.shape.clone();
        let placed = self.appends.iter().zip(&self.made_for).map(|(append, (made_for, arrival))| {
            if let Some(key) = &append.key {
                let earlier = pending
                    .iter()
                    .position(|earlier| earlier.key.as_ref().is_some_and(|earlier| earlier.name == key.name));
                // What has left the array since with its shape is appended again.
                let stored =
                    || lease.done_as(&key.name).filter(|done| done.is_in_shape(&document.metadata.shape));
                let done = earlier.and_then(|place| pending.get(place)).or_else(stored);
                if let Some(done) = done {
                    return match (done.key.as_ref() == Some(key), earlier) {
                        (false, _) => Placed::Answered(Err(AppendError::KeyUsed { name: key.name.clone() })),
                        (true, Some(place)) => Placed::Stored(place),
                        (true, None) => Placed::Answered(Ok(done.clone().into())),
                    };
                }
                if !arrival.is_covered_by(lease, first_read) {
                    return Placed::Answered(Err(AppendError::TooLate));
                }
            }
            let start = shape.get(append.axis).copied().unwrap_or(0);
            if let Some(at) = append.at.filter(|at| *at != start) {
                return Placed::Answered(Err(AppendError::NotTheEnd { at, length: start }));
            }
            if let Err(error) = check_array(&self.path, made_for, document) {
                return Placed::Answered(Err(error.into()));
            }
            if !append.fits(&shape) {
                return Placed::Answered(Err(AppendError::AnotherShape { shape: shape.clone() }));
            }
            let stop = start.saturating_add(append.length());
            let mut with_it = shape.clone();
            if let Some(length) = with_it.get_mut(append.axis) {
                *length = stop;
            }
            if let Err(error) = self.check(document, &with_it, (append.axis, start)) {
                return Placed::Answered(Err(error));
            }
            shape.clone_from(&with_it);
            let (key, axis) = (append.key.clone(), append.axis);
            pending.push(RecordedAppend { key, axis, start, stop, shape: with_it, step: None });
            Placed::Stored(pending.len().saturating_sub(1))
        });
        let placed = placed.collect();
        (placed, pending)
    }

    /// Checks that an array can have this shape, and that what is new in it can be written.
    fn check(
        &self,
        document: &ArrayDocument,
        shape: &[u64],
        (axis, start): (usize, u64),
    ) -> Result<(), AppendError> {
        let array = Arc::new(self.nodes.array_of_shape(&self.path, document, shape.to_vec())?);
        let place = end_of(shape, axis, start);
        WritePlan::new(&array, place, u64::MAX, self.writer.options())?;
        Ok(())
    }

    /// Stores elements beyond the shape, where no reader sees them.
    async fn store_elements(
        &self,
        document: &ArrayDocument,
        shape: &[u64],
        pending: &[RecordedAppend],
        placed: &[Placed],
        lease: &mut ArrayLease,
    ) -> Result<(), AppendError> {
        // Of two appends with the same key, the first is stored.
        let mut stored: Vec<usize> = Vec::with_capacity(pending.len());
        for (number, placed) in placed.iter().enumerate() {
            if matches!(placed, Placed::Stored(place) if *place == stored.len()) {
                stored.push(number);
            }
        }
        let Some(first) = pending.first() else { return Ok(()) };
        let array = self.nodes.array_of_shape(&self.path, document, shape.to_vec())?;
        let array = Arc::new(array);
        let data_type = &array.metadata().data_type;
        let item = data_type.element_bytes();
        let parts: Vec<_> = if data_type.is_variable() {
            // Their heaps are apart.
            let appends = stored.iter().filter_map(|&number| self.appends.get(number));
            let parts = appends.zip(pending);
            parts
                .map(|(append, place)| {
                    (end_of(&place.shape, place.axis, place.start), append.elements.clone())
                })
                .collect()
        } else {
            let all = Arc::clone(&self.appends);
            let join = move || {
                let appends: Vec<_> = stored.iter().filter_map(|&number| all.get(number)).collect();
                joined(&appends, item)
            };
            let joined = self.cpu.run(join).await?;
            vec![(end_of(shape, first.axis, first.start), joined)]
        };
        for (place, elements) in parts {
            let (store, path) = (self.nodes.store(), &self.path);
            let mut guard = AppendGuard { lease: &mut *lease, store, path, document: &document.key };
            self.writer.write_guarded::<_, AppendError>(&array, &place, &elements, &mut guard).await?;
        }
        Ok(())
    }
}
