//! [`ExportBody`]: the bytes of a response as parts of known length, of which any range can be sent.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use super::error::ExportError;
use crate::array::{ReadContext, Snapshot};
use crate::render::dataset::ElementEncoding;
use crate::services::engine::ArrayEngine;

/// A part of a response.
enum ExportPart {
    /// Bytes that are known.
    Bytes(BytesMut),
    /// Elements that are read and encoded.
    Elements { snapshot: Snapshot, encoding: Arc<ElementEncoding> },
}

impl ExportPart {
    fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Elements { snapshot, encoding } => encoding.encoded_bytes(snapshot.plan().response_bytes()),
        }
    }
}

/// The parts of a response, in their order.
#[derive(Default)]
pub(crate) struct ExportBody {
    parts: Vec<ExportPart>,
}

impl ExportBody {
    /// Appends bytes.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        match self.parts.last_mut() {
            Some(ExportPart::Bytes(last)) => last.extend_from_slice(bytes),
            _ if bytes.is_empty() => {}
            _ => self.parts.push(ExportPart::Bytes(BytesMut::from(bytes))),
        }
    }

    /// Appends elements.
    pub(crate) fn push_elements(&mut self, snapshot: Snapshot, encoding: ElementEncoding) {
        self.parts.push(ExportPart::Elements { snapshot, encoding: Arc::new(encoding) });
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
                ExportPart::Bytes(bytes) => {
                    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                    let (start, end) = (place(within.start), place(within.end));
                    let bytes = bytes.freeze().slice(start..end);
                    stream::once(std::future::ready(Ok(bytes))).boxed()
                }
                ExportPart::Elements { snapshot, encoding } => {
                    encoded(&engine, snapshot, encoding, within, &trace)
                }
            })
            .boxed()
    }
}

/// A byte range of encoded elements. It may start and end within a value; whole elements are encoded.
fn encoded(
    engine: &ArrayEngine,
    snapshot: Snapshot,
    encoding: Arc<ElementEncoding>,
    wanted: Range<u64>,
    trace: &Arc<ReadContext>,
) -> BoxStream<'static, Result<Bytes, ExportError>> {
    let (element, value) = (encoding.element_bytes() as u64, encoding.value_bytes() as u64);
    let source =
        (wanted.start / value).saturating_mul(element)..wanted.end.div_ceil(value).saturating_mul(element);
    let mut at = encoding.encoded_bytes(source.start);
    let (cpu, timed) = (engine.cpu.clone(), Arc::clone(trace));
    engine
        .reader
        .elements(snapshot, source, trace)
        .map_err(ExportError::from)
        .and_then(move |part| {
            let (cpu, encoding, items) = (cpu.clone(), Arc::clone(&encoding), part.into_items());
            let (trace, wanted, start) = (Arc::clone(&timed), wanted.clone(), at);
            at += encoding.encoded_bytes(items.len() as u64);
            async move {
                let begun = Instant::now();
                let part = if encoding.is_identity() {
                    items
                } else {
                    let encode = move || {
                        let mut out = Vec::new();
                        encoding.encode(&items, &mut out).map(|()| Bytes::from(out))
                    };
                    cpu.run(encode).await??
                };
                trace.add_encode_time(begun);
                let within = |place: u64| usize::try_from(place.saturating_sub(start)).unwrap_or(usize::MAX);
                let length = part.len();
                Ok(part.slice(within(wanted.start).min(length)..within(wanted.end).min(length)))
            }
        })
        .boxed()
}
