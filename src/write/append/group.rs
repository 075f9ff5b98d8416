//! [`GroupAppend`]: elements for the ends of several arrays of a group, which grow in one step.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use tokio::sync::Mutex;

use super::appender::AppendWriter;
use super::error::AppendError;
use super::guard::AppendGuard;
use super::rows::{Append, Appended, check_array, end_of};
use crate::array::{Array, OpenNode};
use crate::key::NodePath;
use crate::write::each::each;
use crate::write::lease::{
    AppendKey, ArrayLease, DecidedStep, GroupStep, LeaseError, LeaseOwner, RecordedAppend,
};
use crate::write::line::ValueTurn;
use crate::write::nodes::{ArrayDocument, ChangedNode};
use crate::write::pause::{ATTEMPTS, pause};
use crate::write::{ArrayWriter, NodeWriteError, NodeWriter, WriteError, WritePlan};

/// The name of a group's line of appends among those of stored values.
const GROUP_DOCUMENT: &str = "zarr.json";

/// Elements for the ends of several arrays of a group. The arrays have the same length along their dimensions.
#[derive(Debug)]
pub struct GroupAppend {
    /// The path of the group.
    pub group: NodePath,
    /// The arrays, each once, with the same number of indices for each.
    pub parts: Vec<GroupPart>,
    /// The length that the arrays must have before.
    pub at: Option<u64>,
    /// What the client calls it.
    pub key: Option<AppendKey>,
}

/// An array of a group, and elements for its end.
#[derive(Debug)]
pub struct GroupPart {
    /// The path of the array.
    pub path: NodePath,
    /// The array as it was opened.
    pub opened: Arc<OpenNode>,
    /// The elements.
    pub append: Append,
}

impl GroupPart {
    /// Checks that the elements were made for the array of a document.
    fn check_array(&self, document: &ArrayDocument) -> Result<(), AppendError> {
        Ok(check_array(&self.path, &self.opened, document)?)
    }
}

impl AppendWriter {
    /// Appends to several arrays of a group: all of them grow, or none does.
    ///
    /// # Errors
    /// [`AppendError`].
    pub async fn append_to_group(
        &self,
        nodes: &NodeWriter,
        mut append: GroupAppend,
    ) -> Result<Appended, AppendError> {
        // Of two that append to the same arrays, one has the first lease.
        append.parts.sort_by(|one, other| one.path.cmp(&other.path));
        let keys_used = match &append.key {
            Some(_) => Some(ArrayLease::keys_used_at(&**nodes.store(), &append.group).await?),
            None => None,
        };
        let _turn = self.turn_of(&append).await?;
        let step = GroupStepWriter { nodes, writer: self.writer(), append, keys_used };
        for attempt in 0..ATTEMPTS {
            pause(attempt).await;
            match step.run().await {
                Err(AppendError::Lease(LeaseError::Lost)) => {}
                Err(error) if error.is_overtaken() => {}
                outcome => return outcome,
            }
        }
        Err(AppendError::Contended)
    }

    /// Waits for the appends of this process to the same group that came before, in the line of its document: the lease is for
    /// other processes, which ask for it again and again.
    async fn turn_of(&self, append: &GroupAppend) -> Result<Option<ValueTurn>, AppendError> {
        let part = append.parts.first().ok_or(AppendError::NoArrays)?;
        let mount = part.opened.array().map_err(WriteError::from)?.mount();
        // A path that is too long for a document is of no group.
        let Ok(key) = append.group.prefix().key(GROUP_DOCUMENT) else { return Ok(None) };
        Ok(Some(self.writer().lines().turn((Arc::clone(mount), key)).await?))
    }
}

/// An array within a step.
struct Participant<'s> {
    part: &'s GroupPart,
    lease: ArrayLease,
    document: ArrayDocument,
}

/// One step of a group.
struct GroupStepWriter<'s> {
    nodes: &'s NodeWriter,
    writer: &'s ArrayWriter,
    append: GroupAppend,
    /// How many keys had been used when it arrived, if it has one.
    keys_used: Option<u64>,
}

impl GroupStepWriter<'_> {
    /// Makes the step once. It has not been made if the error says so.
    async fn run(&self) -> Result<Appended, AppendError> {
        let owner = self.writer.new_owner();
        let mut group = self.nodes.take_lease(&self.append.group, &owner).await?;
        let mut arrays = Vec::new();
        let outcome = self.run_leased(&owner, &mut group, &mut arrays).await;
        // While a decision or a shape may still arrive, the leases end by themselves. Who takes an array next finds out.
        if group.has_broken_off || outcome.as_ref().is_err_and(AppendError::may_arrive) {
            return outcome;
        }
        release_all(arrays).await;
        group.release().await;
        outcome
    }

    async fn run_leased<'s>(
        &'s self,
        owner: &LeaseOwner,
        group: &mut ArrayLease,
        arrays: &mut Vec<Participant<'s>>,
    ) -> Result<Appended, AppendError> {
        if let Some(decided) = group.decided().cloned() {
            group.hold(self.finish(owner, &decided)).await??;
            group.clear_decided();
        }
        group.is_unsettled = false;
        group.hold(self.take_leases(owner, arrays)).await??;
        if let Some(done) = self.done(group, arrays)? {
            // What another server has appended since could be taken for what was pending before.
            check_leases(arrays).await?;
            group.check().await?;
            return Ok(done);
        }
        if self.keys_used.is_some_and(|used| !group.has_keys_since(used)) {
            return Err(AppendError::TooLate);
        }
        let (start, stop) = self.place(arrays)?;
        let step = GroupStep { group: self.append.group.as_str().to_owned(), id: owner.name().to_owned() };
        let stored = arrays.iter_mut().map(|participant| {
            let shape = participant.shape(stop);
            let axis = participant.part.append.axis;
            // With its key, which an array that is created again does not have.
            let (key, step) = (self.append.key.clone(), Some(step.clone()));
            let pending = RecordedAppend { key, axis, start, stop, shape, step };
            async move {
                participant.lease.wait_for_late_writes().await?;
                participant.lease.note(vec![pending]).await?;
                self.store_elements(participant, start, stop).await
            }
            .boxed()
        });
        group.hold(each(stored.collect())).await??;
        group.hold(check_leases(arrays)).await??;
        let paths = arrays.iter().map(|participant| participant.part.path.as_str().to_owned()).collect();
        let key = self.append.key.clone();
        let done = RecordedAppend { key, axis: 0, start, stop, shape: Vec::new(), step: None };
        match group.decide(DecidedStep { id: step.id, arrays: paths }, done).await {
            Ok(()) => {}
            Err(LeaseError::Lost) => return Err(AppendError::TakenOver),
            Err(error) if error.is_settled() => return Err(error.into()),
            Err(error) => return Err(AppendError::Undecided(error)),
        }
        match self.show(arrays, (start, stop)).await {
            Ok((changed, are_all_shown)) => {
                // As long as the step is decided, who has taken an array over gives it its shape.
                if are_all_shown {
                    group.clear_decided();
                }
                self.nodes.update_copies(&changed).await?;
                Ok(Appended { start, stop, shape: Vec::new() })
            }
            Err(error) => {
                // The step is decided: who takes one of these arrays next gives it its shape.
                for Participant { lease, .. } in &mut *arrays {
                    lease.is_unsettled = lease.part_of_step().is_some();
                }
                Err(AppendError::Unknown(Box::new(error)))
            }
        }
    }

    /// Takes the leases of all arrays. While it waits for one, it has those of the arrays before it in the order of their paths and no
    /// other: so of two steps with arrays in common, one has them all in the end. Those that are taken are in the list also after a failure.
    async fn take_leases<'s>(
        &'s self,
        owner: &LeaseOwner,
        arrays: &mut Vec<Participant<'s>>,
    ) -> Result<(), AppendError> {
        while let Some((next, others)) =
            self.append.parts.get(arrays.len()..).and_then(<[GroupPart]>::split_first)
        {
            each(arrays.iter_mut().map(|array| array.lease.renew().boxed()).collect()).await?;
            let (document, lease) = self.nodes.take_settled(&next.path, &next.opened, owner).await?;
            arrays.push(Participant { part: next, lease, document });
            // Of the others, as many as are free one after the other.
            let free = Mutex::new(BTreeMap::new());
            let take =
                others.iter().enumerate().map(|(place, part)| self.take_free(owner, (place, part), &free));
            let taken = each(take.collect()).await;
            let mut unused = Vec::new();
            for (number, (place, participant)) in free.into_inner().into_iter().enumerate() {
                if number == place {
                    arrays.push(participant);
                } else {
                    unused.push(participant);
                }
            }
            release_all(unused).await;
            taken?;
        }
        Ok(())
    }

    /// Takes the lease of an array, which is at a place among others, if no other owner has it.
    fn take_free<'f, 's: 'f>(
        &'s self,
        owner: &'f LeaseOwner,
        (place, part): (usize, &'s GroupPart),
        free: &'f Mutex<BTreeMap<usize, Participant<'s>>>,
    ) -> BoxFuture<'f, Result<(), AppendError>> {
        let take = async move {
            let taken = self.nodes.take_settled_if_free(&part.path, &part.opened, owner).await?;
            if let Some((document, lease)) = taken {
                free.lock().await.insert(place, Participant { part, lease, document });
            }
            Ok(())
        };
        take.boxed()
    }

    /// Finishes the step that was decided last, if its owner broke off before its arrays had their shapes.
    async fn finish(&self, owner: &LeaseOwner, decided: &DecidedStep) -> Result<(), AppendError> {
        let finish = decided.arrays.iter().map(|path| self.finish_array(owner, path).boxed());
        each(finish.collect()).await.map(drop)
    }

    /// Gives an array the shape that it has after a decided step: who takes it does that.
    async fn finish_array(&self, owner: &LeaseOwner, path: &str) -> Result<(), AppendError> {
        let Ok(path) = NodePath::parse(path) else { return Ok(()) };
        let Some(opened) = self.nodes.find(&path).await?.filter(|opened| opened.array().is_ok()) else {
            // Another node is there by now, or none.
            return Ok(());
        };
        match self.nodes.take_settled(&path, &opened, owner).await {
            Ok((_document, lease)) => lease.release().await,
            Err(NodeWriteError::Unsupported(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// The append with the same key that was done, if the arrays still have it.
    fn done(&self, group: &ArrayLease, arrays: &[Participant<'_>]) -> Result<Option<Appended>, AppendError> {
        let Some(key) = &self.append.key else { return Ok(None) };
        let done = group.done_as(&key.name);
        // An array that has shrunk, or was created again since, lacks the elements.
        let has_it = |array: &Participant<'_>, done: &RecordedAppend| {
            let own = array.lease.done_as(&key.name);
            array.length() >= done.stop
                && own.is_some_and(|own| own.is_in_shape(&array.document.metadata.shape))
        };
        let Some(done) = done.filter(|done| arrays.iter().all(|array| has_it(array, done))) else {
            return Ok(None);
        };
        if done.key.as_ref() == Some(key) {
            return Ok(Some(done.clone().into()));
        }
        Err(AppendError::KeyUsed { name: key.name.clone() })
    }

    /// The place of the elements in all arrays.
    fn place(&self, arrays: &[Participant<'_>]) -> Result<(u64, u64), AppendError> {
        let Some(first) = arrays.first() else { return Err(AppendError::NoArrays) };
        let start = first.length();
        if let Some(other) = arrays.iter().find(|other| other.length() != start) {
            return Err(AppendError::DifferentLengths {
                one: (first.part.path.clone(), start),
                other: (other.part.path.clone(), other.length()),
            });
        }
        if let Some(at) = self.append.at.filter(|at| *at != start) {
            return Err(AppendError::NotTheEnd { at, length: start });
        }
        let stop = start.saturating_add(first.part.append.length());
        for participant in arrays {
            participant.part.check_array(&participant.document)?;
            if !participant.part.append.fits(&participant.document.metadata.shape) {
                let shape = participant.document.metadata.shape.clone();
                return Err(AppendError::AnotherShape { shape });
            }
            let array = self.array(participant, stop)?;
            let place = end_of(&array.metadata().shape, participant.part.append.axis, start);
            WritePlan::new(&array, place, u64::MAX, self.writer.options())?;
        }
        Ok((start, stop))
    }

    /// The array with its new length.
    fn array(&self, participant: &Participant<'_>, stop: u64) -> Result<Arc<Array>, AppendError> {
        let (path, document) = (&participant.part.path, &participant.document);
        Ok(Arc::new(self.nodes.array_of_shape(path, document, participant.shape(stop))?))
    }

    async fn store_elements(
        &self,
        participant: &mut Participant<'_>,
        start: u64,
        stop: u64,
    ) -> Result<(), AppendError> {
        let array = self.array(participant, stop)?;
        let Participant { part, document, lease, .. } = participant;
        let place = end_of(&array.metadata().shape, part.append.axis, start);
        let (store, path) = (self.nodes.store(), &part.path);
        let mut guard = AppendGuard { lease, store, path, document: &document.key };
        self.writer.write_guarded::<_, AppendError>(&array, &place, &part.append.elements, &mut guard).await
    }

    /// Gives all arrays their shapes. Returns those whose documents it has stored, and whether all have their shapes: one that another
    /// server has taken over may get it a little later, from that one.
    async fn show(
        &self,
        arrays: &mut [Participant<'_>],
        place: (u64, u64),
    ) -> Result<(Vec<ChangedNode>, bool), NodeWriteError> {
        let shown = each(arrays.iter_mut().map(|array| self.show_array(array, place).boxed()).collect());
        let shown: Vec<Shown> = shown.await?;
        let are_all_shown = !shown.iter().any(|shown| matches!(shown, Shown::Later));
        let stored = |shown| if let Shown::Stored(changed) = shown { Some(changed) } else { None };
        Ok((shown.into_iter().filter_map(stored).collect(), are_all_shown))
    }

    /// Gives an array its shape.
    async fn show_array(
        &self,
        participant: &mut Participant<'_>,
        (start, stop): (u64, u64),
    ) -> Result<Shown, NodeWriteError> {
        let part = participant.part;
        let mut is_lost = false;
        let mut attempt = 0;
        let shown = loop {
            pause(attempt).await;
            if participant.length() != start {
                break Shown::ByAnother;
            }
            if is_lost {
                if attempt == ATTEMPTS {
                    break Shown::Later;
                }
                match self.nodes.array_document(&part.path, &part.opened).await {
                    Ok(document) => participant.document = document,
                    // It is erased, or another node is there.
                    Err(NodeWriteError::ConditionFailed) => break Shown::ByAnother,
                    Err(error) => return Err(error),
                }
            } else {
                match self.nodes.store_shape(&participant.document, participant.shape(stop)).await {
                    Ok(text) => {
                        break Shown::Stored(ChangedNode::stored(&part.path, &participant.document, text));
                    }
                    Err(NodeWriteError::ConditionFailed) if attempt.saturating_add(1) < ATTEMPTS => {
                        match participant.lease.check().await {
                            Ok(()) => {
                                participant.document =
                                    self.nodes.array_document(&part.path, &part.opened).await?;
                            }
                            // Who has it now gives the array its shape first, and may change that afterwards.
                            Err(LeaseError::Lost) => is_lost = true,
                            Err(error) => return Err(error.into()),
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
            attempt += 1;
        };
        participant.lease.finish();
        Ok(shown)
    }
}

/// Whether an array has its shape after a step.
enum Shown {
    /// Its document was stored.
    Stored(ChangedNode),
    /// Another server has given it the shape, or has erased or changed it since.
    ByAnother,
    /// Another server has the array, and gives it the shape.
    Later,
}

/// Gives the leases of arrays back.
async fn release_all(arrays: Vec<Participant<'_>>) {
    let release = |array: Participant<'_>| array.lease.release().map(Ok::<_, Infallible>).boxed();
    let _ = each(arrays.into_iter().map(release).collect()).await;
}

/// Checks that the leases of all arrays are held.
async fn check_leases(arrays: &mut [Participant<'_>]) -> Result<(), LeaseError> {
    each(arrays.iter_mut().map(|participant| participant.lease.check().boxed()).collect()).await.map(drop)
}

impl Participant<'_> {
    /// The length along the dimension.
    fn length(&self) -> u64 {
        self.document.metadata.shape.get(self.part.append.axis).copied().unwrap_or(0)
    }

    /// The shape with another length.
    fn shape(&self, stop: u64) -> Vec<u64> {
        let mut shape = self.document.metadata.shape.clone();
        if let Some(length) = shape.get_mut(self.part.append.axis) {
            *length = stop;
        }
        shape
    }
}
