//! [`Dap4Request`]: a request for values, which are sent in chunks behind the metadata of what is selected.

use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::super::text_response::put_dap4_description;
use super::body::{Dap4Body, Dap4Part};
use super::groups::encoding_of;
use crate::admission::AdmissionRequest;
use crate::api::export::error::ExportError;
use crate::api::export::limits::plans;
use crate::api::export::respond::{held_bytes, snapshots, version_of};
use crate::api::export::sources::{ExportSource, ExportSources};
use crate::array::Plan;
use crate::chunk::Subset;
use crate::error::ErrorClass;
use crate::http::body::NoBody;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::problem::Problem;
use crate::http::timing::put_trace;
use crate::http::validators::put_validators;
use crate::render::dap4::Dap4Selection;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::store::ValueInfo;

/// Maximum number of attempts for a response whose chunks change while it starts.
const TRIES: usize = 3;
/// Part of every entity tag. It changes whenever a release writes the same arrays as other bytes.
const FORM: &str = "dap4 2";
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
    /// The response to GET or HEAD. Its length is not known: an error may end it.
    pub(super) async fn respond(
        self,
        state: &AppState,
        target: &NodeTarget,
        head: &Parts,
    ) -> Result<Response, Problem> {
        let selected = self.selected();
        let most_text = state.options.max_buffered_response_size;
        let plans = plans(&selected, &state.engine.read)?;
        let plans: Vec<Plan> = plans.into_iter().map(|plan| plan.with_heap_limit(most_text)).collect();
        let has_texts = selected.sources.iter().any(|source| encoding_of(source).is_none());
        // Texts of one array as they are read, and what is written of them.
        let texts = if has_texts { most_text.saturating_mul(2) } else { 0 };
        let held = self.held.saturating_add(held_bytes(&selected, &plans)).saturating_add(texts);
        let permit = state.traffic.admission.acquire(AdmissionRequest::to_elements(head), held).await?;
        let mut tries = 1;
        let mut answer = loop {
            match self.attempt(state, head, &selected, &plans).await {
                Err(error) if error.is_changed() && tries < TRIES => tries += 1,
                answered => break answered?,
            }
        };
        answer.headers_mut().insert(header::CACHE_CONTROL, target.mount.cache_control.of_decoded());
        put_dap4_description(answer.headers_mut(), HeaderValue::from_static("dap4-data"));
        Ok(permit.hold(answer))
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

    async fn attempt(
        &self,
        state: &AppState,
        head: &Parts,
        selected: &ExportSources,
        plans: &[Plan],
    ) -> Result<Response, ExportError> {
        let engine = &state.engine;
        let mount = selected.sources.first().map(|source| Arc::clone(source.array.mount()));
        let trace = engine.reader.read_context(&mount.unwrap_or_else(|| "".into()));
        let snapshots = snapshots(engine, plans, &trace).await?;
        let form = format!("{FORM} {} {}", self.has_checksums, self.described);
        let version = version_of(&form, selected, &snapshots);
        let mut answer = match Conditions::from_headers(&head.headers).for_read(&version, None) {
            Verdict::Failed => {
                return Ok(Problem::from_class(ErrorClass::PreconditionFailed).into_response());
            }
            Verdict::NotModified => StatusCode::NOT_MODIFIED.into_response(),
            Verdict::Proceed => {
                let body = if head.method == Method::GET {
                    let parts = selected.sources.iter().zip(snapshots).map(|(source, snapshot)| {
                        match encoding_of(source) {
                            Some(encoding) => Dap4Part::Numbers(snapshot, Arc::new(encoding)),
                            None => Dap4Part::Texts(snapshot),
                        }
                    });
                    let most_text = state.options.max_buffered_response_size;
                    let mut body = Dap4Body::new(
                        Arc::clone(engine),
                        Arc::clone(&trace),
                        parts.collect(),
                        &self.described,
                        self.has_checksums,
                        most_text,
                    );
                    // A failure to read the first elements still has a status.
                    body.begin().await?;
                    Body::from_stream(body.into_stream())
                } else {
                    Body::new(NoBody)
                };
                let mut answer = Response::new(body);
                answer.headers_mut().insert(header::CONTENT_TYPE, DATA);
                put_trace(answer.headers_mut(), &trace);
                answer
            }
        };
        put_validators(answer.headers_mut(), &ValueInfo { size: 0, version, modified: None });
        Ok(answer)
    }
}
