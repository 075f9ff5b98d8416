//! [`VectorRequest`]: a request to an opened store.

use axum::http::HeaderMap;
use axum::http::Method;

use super::params::VectorParams;
use super::problem::problem_of;
use crate::admission::{AdmissionRequest, ClientBucket, Priority};
use crate::http::problem::Problem;
use crate::http::vectors_path::{SubresourcePath, parse_number};
use crate::services::state::AppState;
use crate::vectors::{ResolutionLevel, VectorError, VectorStore};

/// A request to an opened store.
pub(crate) struct VectorRequest<'a> {
    pub(crate) state: &'a AppState,
    pub(crate) client: ClientBucket,
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) store: VectorStore,
    pub(crate) subresource_path: SubresourcePath,
    pub(crate) params: VectorParams,
}

impl VectorRequest<'_> {
    /// What admission needs to know about the request.
    pub(crate) fn admission_request(&self) -> AdmissionRequest {
        AdmissionRequest::of(Priority::Elements, self.client)
    }

    /// The requested level: that of the path, of the query, or the finest.
    pub(crate) async fn level(&self) -> Result<ResolutionLevel, Problem> {
        let finest = self.store.levels.first().map_or(0, |level| level.index);
        if self.subresource_path.level.is_some() && self.params.get("level").is_some() {
            let error = VectorError::bad_param("level", "no value: the path has the level");
            return Err(problem_of(error));
        }
        let requested = self.subresource_path.level.as_deref().or_else(|| self.params.get("level"));
        let index = requested.map_or(Ok(finest), |text| {
            parse_number(text).ok_or_else(|| VectorError::BadLevel(text.chars().take(40).collect()))
        });
        self.store.level(index.map_err(problem_of)?).await.map_err(problem_of)
    }
}
