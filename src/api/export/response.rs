//! [`ExportResponse`]: a response made of several arrays, with its entity tag, conditions and attempts.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};

use super::error::ExportError;
use super::respond::{snapshots, version_of};
use super::sources::ExportSources;
use crate::array::{Plan, ReadContext, Snapshot};
use crate::error::ErrorClass;
use crate::http::conditions::{Conditions, Verdict};
use crate::http::problem::Problem;
use crate::http::validators::put_validators;
use crate::services::state::AppState;
use crate::store::{ValueInfo, Version};

/// Maximum number of attempts for a response whose chunks change while it starts.
const TRIES: usize = 3;

/// A response made of several arrays.
pub(crate) trait ExportResponse: Sync {
    /// The arrays.
    fn sources(&self) -> &ExportSources;

    /// The part of the entity tag beside the versions of the arrays. It changes whenever a release writes the same arrays as
    /// other bytes.
    fn form(&self) -> String;

    /// The response at these versions of the chunks if the conditions of the request hold, and the bytes of the texts that it
    /// holds.
    ///
    /// # Errors
    /// Failures of reading the first elements.
    fn send(
        &self,
        state: &AppState,
        head: &Parts,
        snapshots: Vec<Snapshot>,
        version: &Version,
        trace: &Arc<ReadContext>,
    ) -> impl Future<Output = Result<(Response, u64), ExportError>> + Send;
}

/// The response to GET or HEAD, and the bytes of the texts that it holds. Where chunks change while it starts, it is made again.
///
/// # Errors
/// Failures of reading the first elements.
pub(crate) async fn respond_to(
    request: &impl ExportResponse,
    state: &AppState,
    head: &Parts,
    plans: &[Plan],
) -> Result<(Response, u64), ExportError> {
    let mut tries = 1;
    loop {
        match attempt(request, state, head, plans).await {
            Err(error) if error.is_changed() && tries < TRIES => tries += 1,
            answered => return answered,
        }
    }
}

async fn attempt(
    request: &impl ExportResponse,
    state: &AppState,
    head: &Parts,
    plans: &[Plan],
) -> Result<(Response, u64), ExportError> {
    let (engine, sources) = (&state.engine, request.sources());
    let mount = sources.sources.first().map(|source| Arc::clone(source.array.mount()));
    let trace = engine.reader.read_context(&mount.unwrap_or_else(|| "".into()));
    let snapshots = snapshots(engine, plans, &trace).await?;
    let version = version_of(&request.form(), sources, &snapshots);
    let (mut answer, text_bytes) = match Conditions::from_headers(&head.headers).for_read(&version, None) {
        Verdict::Failed => {
            return Ok((Problem::from_class(ErrorClass::PreconditionFailed).into_response(), 0));
        }
        Verdict::NotModified => (StatusCode::NOT_MODIFIED.into_response(), 0),
        Verdict::Proceed => request.send(state, head, snapshots, &version, &trace).await?,
    };
    put_validators(answer.headers_mut(), &ValueInfo { size: 0, version, modified: None });
    Ok((answer, text_bytes))
}
