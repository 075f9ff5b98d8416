//! POST of `/v1/data` with `append`: elements are added to the end of an array. `write::append` has what that promises.

mod key;
mod problem;
mod query;
mod rows;

use std::sync::Arc;

use axum::extract::Request;
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::opening::open;
use super::put::{BodyFormat, ParseBody, too_long_to_hold, unparsed};
use crate::admission::AdmissionRequest;
use crate::api::held::Held;
use crate::api::nodes::node_changes::writer;
use crate::api::store::write::{check_coding, check_writable, length_in};
use crate::array::{Array, OpenNode};
use crate::chunk::Elements;
use crate::error::ErrorClass;
use crate::http::body::collect;
use crate::http::conditions::Conditions;
use crate::http::digest::Checking;
use crate::http::problem::Problem;
use crate::parse::{JsonElements, ParseError, is_bounded_by_type};
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::write::{Append, AppendKey, Appended, WriteError, WriteOptions};
pub(crate) use query::AppendParams;
use query::AppendQuery;

/// Bytes of memory for each byte of JSON of elements that may be lists of any length.
const JSON_RATIO: u64 = 64;
/// How often the elements of a body are in memory, beside the body: parsed, which grows by doubling, and joined with others.
const COPIES: u64 = 3;

/// Where elements were appended.
#[derive(Serialize, ToSchema)]
pub(crate) struct AppendedSchema {
    /// The first index along the dimension.
    start: u64,
    /// The index behind the last.
    stop: u64,
    /// The shape of the array with them.
    shape: Vec<u64>,
}

/// Appends the elements of a request.
///
/// # Errors
/// The problem of what is wrong, with what was written.
pub(super) async fn append(
    state: &AppState,
    target: NodeTarget,
    request: Request,
) -> Result<Response, Problem> {
    check_writable(&target.mount)?;
    let query = AppendQuery::from_uri(request.uri())?;
    let (head, body) = request.into_parts();
    let prepare = async {
        let node = open(&head, &target, &target.path, &query.array).await?;
        AppendRequest::new(node, &query, &head)
    };
    let request = prepare.await.map_err(|problem: Problem| problem.extension("written", false))?;
    let (limit, permit) = (request.limit(state), request.permit(state, &head).await?);
    let too_long = || too_long(limit);
    let checking = Checking::from_headers(&head.headers, &state.engine.cpu)?;
    let body = collect(&state.options, request.declared, limit, Some(checking), body, too_long).await?;
    let (request, append) = request.parse(state, body).await?;
    let nodes = writer(state, &target, &head.extensions);
    let appends = state.engine.appends.clone();
    let place = (Arc::clone(&target.mount.cache_name), target.path.clone());
    let appended = tokio::spawn(async move {
        let _permit = permit;
        appends.append((&place.0, &place.1), (nodes, request.node), append).await
    });
    match timeout(state.options.response_timeout, appended).await {
        Ok(Ok(Ok(Appended { start, stop, shape }))) => {
            Ok(axum::Json(AppendedSchema { start, stop, shape }).into_response())
        }
        Ok(Ok(Err(error))) => Err(problem::problem(error)),
        Ok(Err(panic)) => Err(Problem::internal(Arc::new(panic)).extension("written", "unknown")),
        Err(_) => Err(Problem::from_class(ErrorClass::TimedOut).extension("written", "unknown")),
    }
}

/// An append whose head is in order.
struct AppendRequest {
    node: Arc<OpenNode>,
    array: Arc<Array>,
    axis: usize,
    at: Option<u64>,
    format: BodyFormat,
    query: AppendQuery,
    /// The name in `Idempotency-Key`.
    key: Option<String>,
    /// The length in `Content-Length`.
    declared: Option<u64>,
    /// The parameters, as far as they say what the body is.
    parameters: String,
}

impl AppendRequest {
    fn new(node: Arc<OpenNode>, query: &AppendQuery, head: &Parts) -> Result<Self, Problem> {
        let array = Arc::clone(node.array()?);
        if node.dependent.is_some() {
            return Err(WriteError::Declared { path: array.path().clone() }.into());
        }
        if !Conditions::from_headers(&head.headers).is_empty() {
            return Err(Problem::from_class(ErrorClass::InvalidRequest)
                .detail("an append has no conditions but `at`: leave the others out"));
        }
        query.array.check_shape(&array.metadata().shape)?;
        let axis = query.axis(array.metadata())?;
        let format = BodyFormat::of(&head.headers, &query.body)?;
        check_coding(&head.headers, &[])?;
        let declared = length_in(&head.headers, &header::CONTENT_LENGTH);
        let key = key::name_in(&head.headers)?;
        let parameters = format!("{axis} {:?} {format:?} {:?}", query.at(), query.body);
        let (at, query) = (query.at(), query.clone());
        Ok(Self { node, array, axis, at, format, query, key, declared, parameters })
    }

    /// The longest body: it is in memory as a whole.
    fn limit(&self, state: &AppState) -> u64 {
        let WriteOptions { band_size, max_whole_size, .. } = *state.engine.writer.options();
        let is_compact = self.format != BodyFormat::Json && !self.array.metadata().data_type.is_variable();
        if is_compact { band_size.max(max_whole_size) } else { max_whole_size }
    }

    async fn permit(&self, state: &AppState, head: &Parts) -> Result<Held, Problem> {
        let body = self.declared.unwrap_or(u64::MAX).min(self.limit(state));
        let data_type = &self.array.metadata().data_type;
        let of_elements = match self.format {
            BodyFormat::Json if !is_bounded_by_type(data_type) => body.saturating_mul(JSON_RATIO),
            // Two bytes of text make at most one element.
            BodyFormat::Json => body.saturating_mul(data_type.element_bytes().max(1) as u64),
            BodyFormat::Npy | BodyFormat::Bytes => body,
        };
        let working = state.engine.writer.most_working_bytes(&self.array);
        let bytes = body.saturating_add(of_elements.saturating_mul(COPIES)).saturating_add(working);
        let permit = state.traffic.admission.acquire(AdmissionRequest::to_elements(head), bytes).await;
        Ok(Held::new(permit.map_err(|problem| problem.extension("written", false))?))
    }

    /// The elements of the body.
    async fn parse(self, state: &AppState, body: Bytes) -> Result<(Self, Append), Problem> {
        let parse = move || {
            let shape = rows::shape_of(self.format, &body, self.array.metadata(), self.axis)?;
            let elements = self.elements(&body, &shape)?;
            let key = self.key.clone().map(|name| key::with_digest(name, &self.parameters, &body));
            let append = self.append(shape, elements, key);
            Ok((self, append))
        };
        state.engine.cpu.run(parse).await?.map_err(unparsed)
    }

    fn elements(&self, body: &Bytes, shape: &[u64]) -> Result<Elements, ParseError> {
        let metadata = self.array.metadata();
        let elements = shape.iter().fold(1_u64, |product, length| product.saturating_mul(*length));
        let parse = ParseBody {
            format: self.format,
            data_type: metadata.data_type.clone(),
            endian: self.query.body.endian(),
            may_cast: self.query.body.may_cast(),
            shape: shape.to_vec(),
            elements,
        };
        match parse.elements(body)? {
            JsonElements::Each(elements) => Ok(elements),
            JsonElements::One(_) => Err(ParseError::Malformed {
                format: "nested lists",
                reason: "one element for all places says not how many are appended".to_owned(),
            }),
        }
    }

    fn append(&self, shape: Vec<u64>, elements: Elements, key: Option<AppendKey>) -> Append {
        Append { axis: self.axis, shape, elements, at: self.at, key }
    }
}

fn too_long(limit: u64) -> Problem {
    too_long_to_hold(ErrorClass::TooLarge.as_str(), None, limit).detail(format!(
        "an append is held in memory, and a body may have at most {limit} bytes (`write.band_size`; of JSON and elements of \
         variable length `write.max_whole_size`): append in several requests"
    ))
}
