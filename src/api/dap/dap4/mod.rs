//! The responses of DAP4: the metadata of a hierarchy of groups, and its values in chunks.

mod body;
mod data;
mod groups;

use std::sync::Arc;
use std::time::Instant;

use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::Response;

use super::text_response::{put_dap4_description, text_response, with_version};
use crate::admission::AdmissionRequest;
use crate::api::export::limits::check_attribute_bytes;
use crate::array::{ArrayError, OpenNode};
use crate::http::dap_path::DapResponse;
use crate::http::problem::Problem;
use crate::render::dap4::{Dap4Constraint, Dap4Dataset, Dap4Error, Dap4Selection, MAX_CHUNK_BYTES, dmr};
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use data::Dap4Request;
use groups::FoundGroups;

/// The media type of metadata.
const METADATA: HeaderValue = HeaderValue::from_static("application/vnd.opendap.dap4.dataset-metadata+xml");
/// How many times as large as its attributes metadata is, at most: a number of one digit becomes an element.
const GROWTH: u64 = 16;
/// Bytes of metadata of a variable beside its attributes, about.
const VARIABLE_BYTES: u64 = 16 << 10;

/// The response to a request for metadata or values of a node.
pub(super) async fn dap4(
    state: &AppState,
    head: &Parts,
    target: &NodeTarget,
    node: Arc<OpenNode>,
    began: Instant,
    asked: DapResponse,
) -> Result<Response, Problem> {
    let query = head.uri.query().unwrap_or_default();
    let constraint = Dap4Constraint::parse(query)?;
    let mut permit = state.traffic.admission.acquire(AdmissionRequest::to_elements(head), 0).await?;
    let found = FoundGroups::below(head, target, node, began).await?;
    let attributes = found.attribute_bytes();
    check_attribute_bytes(attributes)?;
    let variables = (found.sources.sources.len() as u64).saturating_mul(VARIABLE_BYTES);
    let held = attributes.saturating_mul(GROWTH).saturating_add(variables);
    permit.resize(held)?;
    let described = found.described();
    let has_checksums = constraint.has_checksums;
    let describe = move || {
        let dataset = Dap4Dataset::new(described());
        let selection = Dap4Selection::new(&dataset, &constraint)?;
        let text = dmr(&dataset, &selection);
        Ok::<_, Dap4Error>((selection, with_version(text)))
    };
    let (selection, text) = state.engine.cpu.run_document(held, describe).await??;
    if asked == DapResponse::Dap {
        let length = text.0.len() as u64;
        if length > MAX_CHUNK_BYTES as u64 {
            let (what, limit) = ("bytes of metadata", MAX_CHUNK_BYTES as u64);
            return Err(ArrayError::TooLarge { what, requested: length.into(), limit }.into());
        }
        let request =
            Dap4Request { sources: found.sources, selection, described: text.0, held, has_checksums };
        // With its permit: one request must not wait for what it holds itself.
        drop(permit);
        return request.respond(state, target, head).await;
    }
    let mut answer = text_response(head, text, HeaderValue::from_static("dap4-dmr"));
    put_dap4_description(answer.headers_mut(), HeaderValue::from_static("dap4-dmr"));
    if answer.headers().contains_key(header::CONTENT_TYPE) && answer.status().is_success() {
        answer.headers_mut().insert(header::CONTENT_TYPE, METADATA);
    }
    Ok(permit.hold(answer))
}
