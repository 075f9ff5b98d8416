//! [`Collector`]: takes the bytes of a value as they pass to a reader, and queues them for the disk in aligned parts.
//!
//! A part ends at a multiple of [`MAX_DATA`] in its value, or where the range that was requested does; so what is written is
//! exactly what was fetched. The queue has a bound in bytes, and a part is charged to it before its first byte is copied: what does
//! not fit is not written, and the reader never waits.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use bytes::{Bytes, BytesMut};
use futures::stream::{StreamExt, TryStreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::engine::{Engine, ValueName};
use super::options::QUEUE_BYTES;
use super::record::MAX_DATA;
use super::writer::{Message, PendingPart};
use crate::cache::generation::Generation;
use crate::store::{Value, ValueBody, ValueInfo};

/// The queue to the thread that writes. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) sender: Sender<Message>,
    free: Arc<Semaphore>,
}

impl Queue {
    pub(super) fn new(sender: Sender<Message>) -> Self {
        let kib = usize::try_from(QUEUE_BYTES >> 10).unwrap_or(Semaphore::MAX_PERMITS);
        Self { sender, free: Arc::new(Semaphore::new(kib)) }
    }

    /// A part of the queue for this many bytes, if that is free now.
    pub(super) fn reserve(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes.div_ceil(1 << 10)).ok()?;
        Arc::clone(&self.free).try_acquire_many_owned(kib).ok()
    }
}

/// Collects the parts of one range of a value.
#[derive(Debug)]
pub(super) struct Collector {
    engine: Arc<Engine>,
    queue: Queue,
    name: ValueName,
    info: ValueInfo,
    since: Generation,
    /// What is still to come.
    left: Range<u64>,
    part: Current,
}

/// The part of which bytes come now.
#[derive(Debug)]
struct Current {
    end: u64,
    /// None if it is not written.
    kept: Option<(BytesMut, OwnedSemaphorePermit)>,
}

impl Collector {
    /// The same value, whose bytes are collected as they pass.
    pub(super) fn tap(
        engine: &Arc<Engine>,
        queue: &Queue,
        name: ValueName,
        since: Generation,
        value: Value,
    ) -> Value {
        let Value { info, range, body, .. } = value;
        let part = Current { end: range.start, kept: None };
        let mut collector = Self {
            engine: Arc::clone(engine),
            queue: queue.clone(),
            name,
            info: info.clone(),
            since,
            left: range.clone(),
            part,
        };
        let body = match body {
            ValueBody::Bytes(bytes) => {
                collector.add(&bytes);
                ValueBody::Bytes(bytes)
            }
            longer @ (ValueBody::Stream(_) | ValueBody::File(_)) => {
                let bytes = longer.into_stream();
                ValueBody::Stream(bytes.inspect_ok(move |bytes| collector.add(bytes)).boxed())
            }
        };
        Value::new(info, range, body)
    }

    /// Adds the next bytes. More than the range has are no bytes of the value.
    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.left.start < self.left.end {
            if self.left.start == self.part.end {
                self.begin();
            }
            let missing = usize::try_from(self.part.end - self.left.start).unwrap_or(usize::MAX);
            let (next, rest) = bytes.split_at(missing.min(bytes.len()));
            if let Some((kept, _)) = &mut self.part.kept {
                kept.extend_from_slice(next);
            }
            self.left.start += next.len() as u64;
            bytes = rest;
            if self.left.start == self.part.end {
                self.finish();
            }
        }
    }

    /// Begins the part at the next byte.
    fn begin(&mut self) {
        let start = self.left.start;
        let end = (start / MAX_DATA as u64 + 1).saturating_mul(MAX_DATA as u64).min(self.left.end);
        let length = usize::try_from(end - start).unwrap_or(MAX_DATA);
        self.part = Current { end, kept: None };
        if !self.engine.admits(&self.name, &self.info.version, start, end) {
            return;
        }
        match self.queue.reserve(length) {
            Some(permit) => self.part.kept = Some((BytesMut::with_capacity(length), permit)),
            None => {
                self.engine.counts.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Queues the part that has all of its bytes.
    fn finish(&mut self) {
        let Some((kept, permit)) = self.part.kept.take() else { return };
        let start = self.part.end - kept.len() as u64;
        let (name, info) = (self.name.clone(), self.info.clone());
        let part =
            PendingPart { name, info, start, data: Bytes::from(kept), since: self.since, _permit: permit };
        // After the end of the thread nothing is written.
        let _ = self.queue.sender.send(Message::Part(part));
    }
}
