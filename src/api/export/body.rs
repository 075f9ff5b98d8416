//! [`ExportBody`]: the bytes of a response as parts of known length, of which any range can be sent.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use super::error::ExportError;
use crate::array::{ReadContext, Snapshot};
use crate::render::CfDecoding;
use crate::render::dataset::{DatasetError, ElementEncoding};
use crate::services::engine::ArrayEngine;

/// A part of a response.
enum ExportPart {
    /// Few bytes, to which those that follow are appended.
    Short(BytesMut),
    /// Many bytes, which are not copied.
    Long(Bytes),
    /// Elements that are read and encoded.
    Elements { snapshot: Snapshot, steps: Arc<ElementSteps> },
}

/// What is done with elements that were read.
struct ElementSteps {
    /// Elements are decoded to the values that their attributes describe, if at all,
    decoding: Option<CfDecoding>,
    /// and written in the types and the byte order of the format.
    encoding: ElementEncoding,
}

impl ElementSteps {
    /// Bytes of an element as it is read.
    fn stored_bytes(&self) -> u64 {
        let decoded = self.decoding.as_ref().map(CfDecoding::stored_bytes);
        decoded.unwrap_or(self.encoding.element_bytes()) as u64
    }

    /// The bytes that elements of this many bytes become.
    fn written_bytes(&self, stored_bytes: u64) -> u64 {
        (stored_bytes / self.stored_bytes().max(1)).saturating_mul(self.encoding.value_bytes() as u64)
    }

    fn are_identity(&self) -> bool {
        self.decoding.is_none() && self.encoding.is_identity()
    }

    /// The values of whole elements as they are sent.
    fn apply(&self, items: Bytes) -> Result<Bytes, DatasetError> {
        match &self.decoding {
            None => self.encoding.encode_bytes(items),
            Some(decoding) => self.encoding.encode_bytes(decoding.decode(&items).into()),
        }
    }
}

impl ExportPart {
    fn bytes(&self) -> u64 {
        match self {
            Self::Short(bytes) => bytes.len() as u64,
            Self::Long(bytes) => bytes.len() as u64,
            Self::Elements { snapshot, steps } => steps.written_bytes(snapshot.plan().response_bytes()),
        }
    }
}

/// The parts of a response, in their order.
#[derive(Default)]
pub(crate) struct ExportBody {
    parts: Vec<ExportPart>,
}

impl ExportBody {
    /// Appends few bytes.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        match self.parts.last_mut() {
            Some(ExportPart::Short(last)) => last.extend_from_slice(bytes),
            _ if bytes.is_empty() => {}
            _ => self.parts.push(ExportPart::Short(BytesMut::from(bytes))),
        }
    }

    /// Appends bytes, which may be many.
    pub(crate) fn push_long(&mut self, bytes: Bytes) {
        self.parts.push(ExportPart::Long(bytes));
    }

    /// Appends elements as they are stored.
    pub(crate) fn push_elements(&mut self, snapshot: Snapshot, encoding: ElementEncoding) {
        self.push_decoded(snapshot, None, encoding);
    }

    /// Appends elements, decoded to the values that their attributes describe where there is a decoding.
    pub(crate) fn push_decoded(
        &mut self,
        snapshot: Snapshot,
        decoding: Option<CfDecoding>,
        encoding: ElementEncoding,
    ) {
        self.parts
            .push(ExportPart::Elements { snapshot, steps: Arc::new(ElementSteps { decoding, encoding }) });
    }

    /// The length of the response.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(ExportPart::bytes).fold(0, u64::saturating_add)
    }

    /// A range of the bytes. Elements of one part are read at a time.
    pub(crate) fn stream(
        self,
        engine: &ArrayEngine,
        wanted: &Range<u64>,
        trace: &Arc<ReadContext>,
    ) -> BoxStream<'static, Result<Bytes, ExportError>> {
        let mut start = 0_u64;
        let mut ranged = Vec::with_capacity(self.parts.len());
        for part in self.parts {
            let end = start.saturating_add(part.bytes());
            let within = wanted.start.clamp(start, end) - start..wanted.end.clamp(start, end) - start;
            if !within.is_empty() {
                ranged.push((part, within));
            }
            start = end;
        }
        let (engine, trace) = (engine.clone(), Arc::clone(trace));
        stream::iter(ranged)
            .flat_map(move |(part, within)| match part {
                ExportPart::Short(bytes) => ranged_bytes(&bytes.freeze(), &within),
                ExportPart::Long(bytes) => ranged_bytes(&bytes, &within),
                ExportPart::Elements { snapshot, steps } => written(&engine, snapshot, steps, within, &trace),
            })
            .boxed()
    }
}

/// A byte range of bytes.
fn ranged_bytes(bytes: &Bytes, within: &Range<u64>) -> BoxStream<'static, Result<Bytes, ExportError>> {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    let bytes = bytes.slice(place(within.start)..place(within.end));
    stream::once(std::future::ready(Ok(bytes))).boxed()
}

/// A byte range of elements as they are sent. It may start and end within a value; whole elements are encoded.
fn written(
    engine: &ArrayEngine,
    snapshot: Snapshot,
    steps: Arc<ElementSteps>,
    wanted: Range<u64>,
    trace: &Arc<ReadContext>,
) -> BoxStream<'static, Result<Bytes, ExportError>> {
    let (element, value) = (steps.stored_bytes(), steps.encoding.value_bytes() as u64);
    let source =
        (wanted.start / value).saturating_mul(element)..wanted.end.div_ceil(value).saturating_mul(element);
    let mut at = steps.written_bytes(source.start);
    let (cpu, timed) = (engine.cpu.clone(), Arc::clone(trace));
    engine
        .reader
        .elements(snapshot, source, trace)
        .map_err(ExportError::from)
        .and_then(move |part| {
            let (cpu, steps, items) = (cpu.clone(), Arc::clone(&steps), part.into_items());
            let (trace, wanted, start) = (Arc::clone(&timed), wanted.clone(), at);
            let bytes = items.len() as u64;
            at += steps.written_bytes(bytes);
            async move {
                let begun = Instant::now();
                let part = if steps.are_identity() {
                    items
                } else {
                    cpu.run_or_inline(bytes, move || steps.apply(items)).await??
                };
                trace.add_encode_time(begun);
                let within = |place: u64| usize::try_from(place.saturating_sub(start)).unwrap_or(usize::MAX);
                let length = part.len();
                Ok(part.slice(within(wanted.start).min(length)..within(wanted.end).min(length)))
            }
        })
        .boxed()
}
