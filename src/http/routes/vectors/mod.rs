//! `/v1/vectors/{mount}/{path}/…`: stores in Zarr Vector Format.
//!
//! What is asked of a store stands behind its path; which part of a URL is the path, `tail` finds out. Each question has a
//! file of its own. How a store is read is the business of the room `vectors`.

pub(in crate::http) mod amplification;
pub(in crate::http) mod chunks;
mod filter;
pub(in crate::http) mod links;
pub(in crate::http) mod objects;
mod params;
pub(in crate::http) mod stats;
pub(in crate::http) mod summary;
mod tail;
pub(in crate::http) mod validate;
pub(in crate::http) mod vertices;

use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use serde_json::Value;
use utoipa::IntoParams;

use self::params::Params;
use self::tail::{Subresource, SubresourcePath, tails};
use crate::error::Classify;
use crate::error::ErrorClass;
use crate::http::admission::{AdmissionRequest, ClientBucket, Priority};
use crate::http::download;
use crate::http::extract::NodeTarget;
use crate::http::json_answer::{json_answer, text_answer};
use crate::http::json_body::read_json;
use crate::http::problem::Problem;
use crate::http::state::AppState;
use crate::key::NodePath;
use crate::store::Version;
use crate::vectors::{Context, Level, VectorError, VectorStore};

/// What an answer that reads chunks, and gives no vertices, is taken to hold in memory.
const HELD_BYTES: u64 = 4 << 20;

type Pairs = Query<Vec<(String, String)>>;

/// A question to a store.
pub(in crate::http) struct VectorRequest<'a> {
    state: &'a AppState,
    share: ClientBucket,
    method: &'a Method,
    headers: &'a HeaderMap,
    store: VectorStore,
    tail: SubresourcePath,
    params: Params,
}

/// A store in Zarr Vector Format, or what is asked of it.
///
/// The store's profile, axes, shapes, bounds and levels. What stands behind the store's path asks for more: see the other
/// routes here.
#[utoipa::path(
    method(get, head),
    path = "/v1/vectors/{mount}/{*path}",
    tag = "vectors",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("path" = String, Path, description = "Path of the store"),
    ),
    responses(
        (status = 200, description = "The store", content_type = "application/json"),
        (status = 304, description = "Not modified"),
        (status = 404, description = "No such mount or node, or it is no store in Zarr Vector Format (`not_a_zvf_store`)"),
        (status = 422, description = "Its metadata cannot be used (`invalid_metadata`)"),
    )
)]
pub(in crate::http) async fn get_vectors(
    State(state): State<AppState>,
    target: NodeTarget,
    Query(pairs): Pairs,
    share: ClientBucket,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    driven(state, target, share, Params::new(pairs), method, headers).await
}

/// The store at the root of a mount.
#[utoipa::path(
    method(get, head),
    path = "/v1/vectors/{mount}",
    tag = "vectors",
    params(("mount" = String, Path, description = "Name of a mount")),
    responses(
        (status = 200, description = "The store", content_type = "application/json"),
        (status = 404, description = "No such mount, or no store at its root"),
    )
)]
pub(in crate::http) async fn get_root_vectors(
    state: State<AppState>,
    target: NodeTarget,
    query: Pairs,
    share: ClientBucket,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    get_vectors(state, target, query, share, method, headers).await
}

/// The vertices in boxes that are too long for a URL.
///
/// The parameters of the GET as members of an object, and `boxes`: what lies in any of them, each vertex once.
#[utoipa::path(
    post,
    path = "/v1/vectors/{mount}/{*path}",
    tag = "vectors",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("path" = String, Path, description = "Path of the store, then `vertices` or `levels/N/vertices`"),
    ),
    request_body(content = Object, description = "The parameters: numbers, texts, or lists of them"),
    responses(vertices::VerticesResponses)
)]
pub(in crate::http) async fn post_vectors(
    State(state): State<AppState>,
    target: NodeTarget,
    Query(pairs): Pairs,
    request: Request,
) -> Result<Response, Problem> {
    let (headers, share) = (request.headers().clone(), ClientBucket::of(request.extensions()));
    let body: serde_json::Map<String, Value> = read_json(&state, Priority::Elements, request).await?;
    let params = Params::new(pairs).with_body(body).map_err(problem_of)?;
    driven(state, target, share, params, Method::POST, headers).await
}

/// The node furthest up that a path may be asked of.
pub(in crate::http) fn shortest_store(path: &NodePath) -> NodePath {
    tails(path).into_iter().next().map_or_else(|| path.clone(), |(store, _)| store)
}

/// What requests read stores with.
fn context(state: &AppState, target: &NodeTarget) -> Context {
    let mount = target.mount.name.as_str().into();
    Context {
        trace: state.reader().trace(&mount),
        mount,
        opener: target.opener.clone(),
        reader: state.reader().clone(),
        cpu: state.cpu().clone(),
        read: *state.read_limits(),
        metadata: state.metadata_limits(),
        codec: state.codec_limits(),
    }
}

/// The answer, made on the pool: documents are long, and much is parsed, put together and written of them.
async fn driven(
    state: AppState,
    target: NodeTarget,
    share: ClientBucket,
    params: Params,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let cpu = state.cpu().clone();
    cpu.spawn_future(async move { answer(&state, target, share, params, &method, &headers).await }).await?
}

async fn answer(
    state: &AppState,
    target: NodeTarget,
    share: ClientBucket,
    params: Params,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let context = Arc::new(context(state, &target));
    let mut absent = None;
    for (path, tail) in tails(&target.path) {
        if tail.what == Subresource::Validate && *method != Method::POST {
            let permit = state
                .admission()
                .acquire(AdmissionRequest::of(Priority::Background, share), HELD_BYTES)
                .await?;
            match validate::answer(state, &context, path.clone(), &params, headers).await {
                Err(error) if error.is_absence() => {
                    absent.get_or_insert(error);
                    continue;
                }
                answered => return answered.map_err(problem_of)?.map(|answer| permit.hold(answer)),
            }
        }
        let store = match VectorStore::open(Arc::clone(&context), path).await {
            // A store may be called as a question is.
            Err(error) if error.is_absence() => {
                absent.get_or_insert(error);
                continue;
            }
            opened => opened.map_err(problem_of)?,
        };
        if *method == Method::POST && tail.what != Subresource::Vertices {
            return Err(Problem::from_class(ErrorClass::NotAllowed));
        }
        let question = VectorRequest { state, share, method, headers, store, tail, params };
        return question.answer().await;
    }
    let error = absent.unwrap_or_else(|| VectorError::NotAStore { path: target.path.clone() });
    Err(problem_of(error))
}

impl VectorRequest<'_> {
    async fn answer(self) -> Result<Response, Problem> {
        // Vertices are admitted once it is known how many there are.
        if matches!(self.tail.what, Subresource::Vertices) {
            return self.respond().await;
        }
        let permit = self.state.admission().acquire(self.entrant(), HELD_BYTES).await?;
        Ok(permit.hold(self.respond().await?))
    }

    /// The caller, to be admitted.
    fn entrant(&self) -> AdmissionRequest {
        AdmissionRequest::of(Priority::Elements, self.share)
    }

    async fn respond(&self) -> Result<Response, Problem> {
        match &self.tail.what {
            Subresource::Store => self.json(summary::of_store(&self.store).await),
            Subresource::Level => self.json(summary::of_level(&self.level().await?).await),
            Subresource::Chunks => self.json(chunks::of_box(&self.level().await?, &self.params).await),
            Subresource::Chunk(chunk) => {
                self.json(chunks::of_one(&self.level().await?, chunk, &self.params).await)
            }
            Subresource::Amplification => {
                self.json(amplification::of_box(&self.level().await?, &self.params).await)
            }
            Subresource::Vertices => {
                let mut answer = vertices::answer(self).await?;
                self.name(answer.headers_mut());
                Ok(answer)
            }
            Subresource::Objects => self.json(objects::of_level(&self.level().await?, &self.params).await),
            Subresource::Object(id) => {
                self.json(objects::of_one(&self.level().await?, id, &self.params).await)
            }
            Subresource::ObjectEdges(id) => {
                self.json(objects::edges_of(&self.level().await?, id, &self.params).await)
            }
            Subresource::ObjectVertices(id) => {
                let most = self.state.options().max_buffered_response_size;
                let text = objects::vertices_of(&self.level().await?, id, &self.params, most).await;
                let text = text.map_err(problem_of)?;
                let version = Version::of_text(&text);
                Ok(text_answer(self.headers, [text.into()], version))
            }
            Subresource::Links => self.json(links::of_box(&self.level().await?, &self.params).await),
            Subresource::Stats => self.json(stats::of_level(&self.level().await?, &self.params).await),
            // Answered before the store is opened: it may be too broken for that.
            Subresource::Validate => Err(Problem::from_class(ErrorClass::NotFound)),
        }
    }

    /// Says what vertices are called if they are saved.
    fn name(&self, headers: &mut HeaderMap) {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let offer = vertices::OFFERS.iter().find(|offer| Some(offer.media_type) == kind);
        if let Some(offer) = offer {
            let (context, path) = (&self.store.context, &self.store.path);
            let name = download::name_of(&context.mount, path, path);
            download::put(headers, &format!("{name}.vertices"), download::extension(*offer));
        }
    }

    fn json(&self, document: Result<Value, VectorError>) -> Result<Response, Problem> {
        Ok(json_answer(self.headers, &document.map_err(problem_of)?))
    }

    /// The level that is asked of: the path's, the query's, or the finest.
    async fn level(&self) -> Result<Level, Problem> {
        let finest = self.store.levels.first().map_or(0, |level| level.index);
        let asked = self.tail.level.as_deref().or_else(|| self.params.get("level"));
        let index = asked.map_or(Ok(finest), |text| {
            tail::number(text).ok_or_else(|| VectorError::BadLevel(text.chars().take(40).collect()))
        });
        self.store.level(index.map_err(problem_of)?).await.map_err(problem_of)
    }
}

/// Why a store has no answer: each reason under its own name.
pub(super) fn problem_of(error: VectorError) -> Problem {
    let status = match &error {
        VectorError::Array(_) | VectorError::Store { .. } | VectorError::Key(_) | VectorError::Cpu(_) => {
            return Problem::from(error);
        }
        // The server and the bytes are in order: whoever wrote the metadata can mend it.
        VectorError::InvalidMetadata { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        _ => Problem::from_class(error.class()).status(),
    };
    let problem = Problem::new(status, error.code()).detail(error.to_string());
    match error {
        VectorError::LevelNotFound { known, .. } => problem.extension("levels", known),
        VectorError::ObjectNotFound { ids } => problem.extension("missing", ids),
        VectorError::AttributeNotFound { known, .. } => problem.extension("attributes", known),
        VectorError::Corrupt { path, chunk, reason } => {
            problem.extension("path", path).extension("chunk", chunk).extension("reason", reason)
        }
        VectorError::CorruptManifest { object, reason } => {
            problem.extension("object_id", object).extension("reason", reason)
        }
        VectorError::TooMany { estimate, limit, .. } => {
            problem.extension("estimate", estimate).extension("limit", limit)
        }
        VectorError::InvalidMetadata { checks, .. } => problem.extension("checks", checks),
        VectorError::UnsupportedEncoding { path, encoding } => {
            problem.extension("path", path).extension("encoding", encoding)
        }
        _ => problem,
    }
}

/// Which vertices are asked for, as `filter` reads it.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query for the API document; `filter` reads it")]
pub(in crate::http) struct BoxParams {
    /// The least coordinate along each axis, then the largest along each: `0,0,0,10,10,10`; `inf` and `-inf` too. All of
    /// space if it is left out. Instead: `min` and `max`.
    bbox: Option<String>,
    /// `closed` (the default: a box holds its upper end) or `half-open`.
    interval: Option<String>,
    /// The value of the attribute that chunks are cut by: `gene:Sst`.
    #[param(rename = "where")]
    only: Option<String>,
    /// The level, where the path has none.
    level: Option<u64>,
}
