//! The values of a dataset: in XDR after the descriptor, or as text ("DAP 2.0", sections 6.2 and 7.3).
//!
//! In XDR (RFC 4506) an array of numbers is its length twice, and then the numbers; an array of bytes the same, padded to four
//! bytes; an array of texts is its length once, and then each text behind its own length, padded. A single byte takes four.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::Response;

use super::ascii::ascii;
use super::open_dataset::OpenDataset;
use super::sent_array::SentArray;
use super::text_response::{put_description, text_response, with_version};
use crate::admission::AdmissionRequest;
use crate::admission::text_memory::TextMemory;
use crate::api::export::body::ExportBody;
use crate::api::export::error::ExportError;
use crate::api::export::limits::plans;
use crate::api::export::respond::{held_bytes, respond};
use crate::api::export::response::{ExportResponse, respond_to};
use crate::api::export::sources::{ExportSource, ExportSources};
use crate::api::export::texts::{check_texts, read_texts};
use crate::array::{ArrayError, Plan, ReadContext, Snapshot};
use crate::chunk::Subset;
use crate::http::dap_path::DapResponse;
use crate::http::problem::Problem;
use crate::render::dap::{ConstrainedArray, ConstrainedDataset};
use crate::render::dataset::{ExportedTexts, ExternalType};
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::store::Version;

/// Part of every entity tag. It changes whenever a release writes the same arrays as other bytes.
const FORM: &str = "dap2 2";

/// A request for values.
pub(super) struct DapRequest {
    pub(super) opened: OpenDataset,
    pub(super) constrained: ConstrainedDataset,
    /// The descriptor of what is selected.
    pub(super) described: String,
    /// The memory in bytes that the description takes.
    pub(super) held: u64,
}

impl DapRequest {
    /// The response to GET or HEAD.
    pub(super) async fn respond(
        self,
        state: &AppState,
        target: &NodeTarget,
        head: &Parts,
        asked: DapResponse,
    ) -> Result<Response, Problem> {
        let (leaves, arrays) = self.leaves();
        let most_text = state.options.max_buffered_response_size;
        let plans = plans(&leaves, &state.engine.read)?;
        let has_texts = arrays.iter().any(|array| array.encoding.is_none());
        let held = self.held.saturating_add(held_bytes(&leaves, &plans));
        // Texts as they are read, and what is written of them.
        let whole = |limit: u64| {
            if has_texts || asked == DapResponse::Ascii { limit.saturating_mul(2) } else { 0 }
        };
        let memory_bytes = |limit| held.saturating_add(whole(limit));
        let (admission, entrant) = (&state.traffic.admission, AdmissionRequest::to_elements(head));
        let mut memory = TextMemory::acquire(admission, entrant, most_text, memory_bytes).await?;
        let values = loop {
            let limit = memory.limit();
            let plans: Vec<Plan> = plans.iter().map(|plan| plan.clone().with_heap_limit(limit)).collect();
            let values = if asked == DapResponse::Ascii {
                ascii(state, &self.opened, &leaves, &arrays, &plans, limit).await.map(DapValues::Ascii)
            } else {
                let described = &self.described;
                let values = SentValues { described, leaves: &leaves, arrays: &arrays, text_limit: limit };
                let sent = respond_to(&values, state, head, &plans).await;
                sent.map(|(answer, text_bytes)| DapValues::Xdr(answer, text_bytes))
            };
            match values {
                Err(error) if memory.can_extend(error.exceeded_limit()) => memory.extend().await?,
                values => break values?,
            }
        };
        let whole = whole(memory.limit());
        let mut permit = memory.into_permit();
        let (mut answer, text_bytes) = match values {
            DapValues::Xdr(answer, text_bytes) => (answer, text_bytes),
            DapValues::Ascii(text) => {
                let bytes = text.len() as u64;
                permit.release(whole.saturating_sub(bytes));
                let text = state.engine.cpu.run_document(bytes, move || with_version(text)).await?;
                return Ok(permit.hold(text_response(head, text, HeaderValue::from_static("dods-ascii"))));
            }
        };
        permit.release(whole.saturating_sub(text_bytes));
        let headers = answer.headers_mut();
        headers.insert(header::CACHE_CONTROL, target.mount.cache_control.of_decoded());
        put_description(headers, HeaderValue::from_static("dods-data"));
        Ok(permit.hold(answer))
    }

    /// The arrays of the response, in the order of their values.
    fn leaves(&self) -> (ExportSources, Vec<SentArray>) {
        let mut leaves =
            ExportSources { group: self.opened.sources.group.clone(), ..ExportSources::default() };
        let mut arrays = Vec::new();
        for ConstrainedArray { variable, ranges } in self.constrained.arrays() {
            let Some(source) = self.opened.sources.sources.get(*variable) else { continue };
            let encoding = self.opened.encodings.get(*variable).cloned().flatten();
            let subset = Subset(ranges.clone());
            arrays.push(SentArray { shape: subset.shape(), encoding });
            leaves.sources.push(ExportSource { subset, ..source.clone() });
        }
        (leaves, arrays)
    }
}

/// Values that were read.
enum DapValues {
    Ascii(String),
    /// A response, and the bytes of the texts that it holds.
    Xdr(Response, u64),
}

/// The values of the arrays that a request selects.
struct SentValues<'a> {
    described: &'a str,
    leaves: &'a ExportSources,
    arrays: &'a [SentArray],
    /// The most bytes of texts.
    text_limit: u64,
}

impl ExportResponse for SentValues<'_> {
    fn sources(&self) -> &ExportSources {
        self.leaves
    }

    fn form(&self) -> String {
        format!("{FORM} {}", self.described)
    }

    async fn send(
        &self,
        state: &AppState,
        head: &Parts,
        snapshots: Vec<Snapshot>,
        version: &Version,
        trace: &Arc<ReadContext>,
    ) -> Result<(Response, u64), ExportError> {
        let (body, text_bytes) = body(state, self, snapshots, trace).await?;
        let content_type = HeaderValue::from_static("application/octet-stream");
        Ok((respond(&state.engine, head, version, content_type, body, trace).await?, text_bytes))
    }
}

/// The parts of a response with values, and the bytes of the texts among them.
async fn body(
    state: &AppState,
    values: &SentValues<'_>,
    snapshots: Vec<Snapshot>,
    trace: &Arc<ReadContext>,
) -> Result<(ExportBody, u64), ExportError> {
    let SentValues { described, arrays, text_limit, .. } = *values;
    let mut body = ExportBody::default();
    body.push_bytes(described.as_bytes());
    body.push_bytes(b"Data:\n");
    let mut text_bytes = 0_u64;
    for (array, snapshot) in arrays.iter().zip(snapshots) {
        let count = array.shape.iter().fold(1, |product: u64, &length| product.saturating_mul(length));
        let length = i32::try_from(count).map_err(|_too_many| ArrayError::TooLarge {
            what: "elements of one array",
            requested: count.into(),
            limit: i32::MAX as u64,
        })?;
        let length = length.to_be_bytes();
        let is_scalar = array.shape.is_empty();
        let Some(encoding) = &array.encoding else {
            let texts = read_texts(&state.engine, snapshot, text_limit, trace).await?;
            if !is_scalar {
                body.push_bytes(&length);
            }
            let written =
                state.engine.cpu.run_or_inline(texts.memory_bytes(), move || xdr_texts(&texts)).await?;
            text_bytes = text_bytes.saturating_add(written.len() as u64);
            check_texts(text_bytes, text_limit)?;
            body.push_long(written.into());
            continue;
        };
        let are_bytes = encoding.external() == ExternalType::UByte;
        if is_scalar && are_bytes {
            body.push_bytes(&[0; 3]);
        } else if !is_scalar {
            body.push_bytes(&length);
            body.push_bytes(&length);
        }
        body.push_elements(snapshot, encoding.clone());
        if !is_scalar && are_bytes {
            let padding = usize::try_from(count.next_multiple_of(4) - count).unwrap_or(0);
            body.push_bytes(&[0; 3][..padding.min(3)]);
        }
    }
    Ok((body, text_bytes))
}

/// Texts in XDR.
fn xdr_texts(texts: &ExportedTexts) -> Vec<u8> {
    let mut out = Vec::new();
    for text in texts.iter() {
        out.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(text);
        let length = out.len().next_multiple_of(4);
        out.resize(length, 0);
    }
    // The unused capacity would stay in memory until the client has received everything.
    out.shrink_to_fit();
    out
}
