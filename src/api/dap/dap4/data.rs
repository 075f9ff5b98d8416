//! [`Dap4Request`]: a request for values, which are sent in chunks behind the metadata of what is selected.

use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;

use super::super::text_response::put_dap4_description;
use super::body::{Dap4Body, Dap4Part};
use super::groups::encoding_of;
use crate::admission::text_memory::TextMemory;
use crate::admission::{AdmissionRequest, BufferedBytes};
use crate::api::export::error::ExportError;
use crate::api::export::limits::plans;
use crate::api::export::respond::held_bytes;
use crate::api::export::response::{ExportResponse, respond_to};
use crate::api::export::sources::{ExportSource, ExportSources};
use crate::array::{Plan, ReadContext, Snapshot};
use crate::chunk::Subset;
use crate::http::body::NoBody;
use crate::http::problem::Problem;
use crate::http::timing::put_trace;
use crate::render::dap4::Dap4Selection;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::store::Version;

/// Part of every entity tag. It changes whenever a release writes the same arrays as other bytes.
const FORM: &str = "dap4 3";
/// The media type of values.
const DATA: HeaderValue = HeaderValue::from_static("application/vnd.opendap.dap4.data");

/// A request for values.
pub(super) struct Dap4Request {
    /// All arrays of the dataset, in its order.
    pub(super) sources: ExportSources,
    pub(super) selection: Dap4Selection,
    /// The metadata of what is selected.
    pub(super) described: String,
    /// The memory in bytes that the description takes.
    pub(super) held: u64,
    pub(super) has_checksums: bool,
}

impl Dap4Request {
    /// The response to GET or HEAD. The length of a long one is not known: an error may end it.
    pub(super) async fn respond(
        self,
        state: &AppState,
        target: &NodeTarget,
        head: &Parts,
    ) -> Result<Response, Problem> {
        let selected = self.selected();
        let most_text = state.options.max_buffered_response_size;
        let plans = plans(&selected, &state.engine.read)?;
        let held = self.held.saturating_add(held_bytes(&selected, &plans));
        let (admission, entrant) = (&state.traffic.admission, AdmissionRequest::to_elements(head));
        let has_texts = selected.sources.iter().any(|source| encoding_of(source).is_none());
        let described = self.described.len() as u64;
        let numbers = plans.iter().map(Plan::response_bytes).fold(described, u64::saturating_add);
        // Texts of one array as they are read, and what is written of them.
        let most_memory = if has_texts { held.saturating_add(most_text.saturating_mul(2)) } else { held };
        // The same, and a response that is made whole.
        let whole_memory = |limit: u64| held.saturating_add(numbers).saturating_add(limit.saturating_mul(3));
        let can_be_short = whole_memory(TextMemory::short_bytes(admission)) <= admission.short_bytes();
        let memory_bytes = |limit| {
            if limit < most_text && has_texts && can_be_short { whole_memory(limit) } else { most_memory }
        };
        let mut memory = TextMemory::acquire(admission, entrant, most_text, memory_bytes).await?;
        let mut answer = loop {
            let text_limit = memory.limit();
            let plans: Vec<Plan> =
                plans.iter().map(|plan| plan.clone().with_heap_limit(text_limit)).collect();
            let whole_beside = (text_limit < most_text).then_some(numbers);
            let values = SelectedValues { request: &self, selected: &selected, text_limit, whole_beside };
            match respond_to(&values, state, head, &plans).await {
                Err(error) if memory.can_extend(error.exceeded_limit()) => memory.extend().await?,
                sent => break sent?.0,
            }
        };
        answer.headers_mut().insert(header::CACHE_CONTROL, target.mount.cache_control.of_decoded());
        put_dap4_description(answer.headers_mut(), HeaderValue::from_static("dap4-data"));
        // Texts are sent as they are read: their memory is held until the end.
        Ok(memory.into_permit().hold(answer))
    }

    /// The arrays of the response, in the order of their values.
    fn selected(&self) -> ExportSources {
        let mut selected = ExportSources { group: self.sources.group.clone(), ..ExportSources::default() };
        for array in &self.selection.arrays {
            let Some(source) = self.sources.sources.get(array.variable) else { continue };
            let subset = Subset(array.ranges.clone());
            selected.sources.push(ExportSource { subset, ..source.clone() });
        }
        selected
    }
}

/// The values of the arrays that a request selects.
struct SelectedValues<'a> {
    request: &'a Dap4Request,
    selected: &'a ExportSources,
    /// The most bytes of texts.
    text_limit: u64,
    /// The bytes of the response beside texts, if it is made whole before its head is sent.
    whole_beside: Option<u64>,
}

impl ExportResponse for SelectedValues<'_> {
    fn sources(&self) -> &ExportSources {
        self.selected
    }

    fn form(&self) -> String {
        format!("{FORM} {} {}", self.request.has_checksums, self.request.described)
    }

    async fn send(
        &self,
        state: &AppState,
        head: &Parts,
        snapshots: Vec<Snapshot>,
        _version: &Version,
        trace: &Arc<ReadContext>,
    ) -> Result<(Response, u64), ExportError> {
        let mut length = None;
        let body = if head.method == Method::GET {
            let parts = self.selected.sources.iter().zip(snapshots);
            let parts = parts.map(|(source, snapshot)| match encoding_of(source) {
                Some(encoding) => Dap4Part::Numbers(snapshot, Arc::new(encoding)),
                None => Dap4Part::Texts(snapshot),
            });
            let mut body = Dap4Body::new(
                Arc::clone(&state.engine),
                Arc::clone(trace),
                parts.collect(),
                &self.request.described,
                self.request.has_checksums,
                self.text_limit,
            );
            if let Some(other_bytes) = self.whole_beside {
                let whole = body.whole(other_bytes).await?;
                length = Some(whole.len());
                Body::from(whole)
            } else {
                // A failure to read the first elements still has a status.
                body.begin().await?;
                Body::from_stream(body.into_stream())
            }
        } else {
            Body::new(NoBody)
        };
        let mut answer = Response::new(body);
        if let Some(length) = length {
            BufferedBytes::put(length as u64, answer.extensions_mut());
        }
        answer.headers_mut().insert(header::CONTENT_TYPE, DATA);
        put_trace(answer.headers_mut(), trace);
        Ok((answer, 0))
    }
}
