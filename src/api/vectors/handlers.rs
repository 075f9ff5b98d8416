//! The handlers of `/v1/vectors`: they open the store and dispatch to the subresource in the path.

use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use serde_json::Value;

use super::params::{VectorParams, VectorsPath};
use super::problem::problem_of;
use super::request::VectorRequest;
use super::{amplification, chunks, links, objects, stats, summary, validate, vertices};
use crate::admission::{AdmissionRequest, ClientBucket, Permit, Priority};
use crate::api::documented::MountParam;
use crate::api::json_body::{VALUE_BYTES, read_values};
use crate::api::json_response::{json_answer, text_answer};
use crate::api::query_params::KnownParams;
use crate::error::ErrorClass;
use crate::http::download;
use crate::http::problem::Problem;
use crate::http::vectors_path::{Subresource, split_candidates};
use crate::render::VertexFormat;
use crate::services::engine::ArrayEngine;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::store::Version;
use crate::vectors::{VectorContext, VectorError, VectorStore};

/// The memory in bytes that admission counts for a response that reads chunks and returns no vertices.
const RESPONSE_BYTES: u64 = 4 << 20;

type Pairs = Query<Vec<(String, String)>>;

/// A store in Zarr Vector Format, or one of its subresources.
///
/// The store's profile, axes, shapes, bounds and levels. The other routes describe the subresources behind the store's
/// path.
#[utoipa::path(
    method(get, head),
    path = super::specs::VECTORS.template,
    tag = "vectors",
    params(VectorsPath),
    responses(
        (status = 200, description = "The store", content_type = "application/json"),
        (status = 304, description = "Not modified"),
        (status = 404, description = "No such mount or node, or it is not a store in Zarr Vector Format (`not_a_zvf_store`)"),
        (status = 422, description = "Its metadata cannot be used (`invalid_metadata`)"),
    )
)]
pub(crate) async fn get_vectors(
    State(state): State<AppState>,
    target: NodeTarget,
    Query(pairs): Pairs,
    client: ClientBucket,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    respond_on_pool(state, target, client, VectorParams::new(pairs), method, headers).await
}

/// The store at the root of a mount.
#[utoipa::path(
    method(get, head),
    path = super::specs::ROOT_VECTORS.template,
    tag = "vectors",
    params(MountParam),
    responses(
        (status = 200, description = "The store", content_type = "application/json"),
        (status = 404, description = "No such mount, or no store at its root"),
    )
)]
pub(crate) async fn get_root_vectors(
    state: State<AppState>,
    target: NodeTarget,
    query: Pairs,
    client: ClientBucket,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    get_vectors(state, target, query, client, method, headers).await
}

/// The vertices in boxes that are too long for a URL.
///
/// The body is an object with the query parameters of the GET as members, and `boxes`: vertices in any of them are
/// returned, each once.
#[utoipa::path(
    post,
    path = super::specs::VECTORS.template,
    tag = "vectors",
    params(
        MountParam,
        ("path" = String, Path, description = "Path of the store, then `vertices` or `levels/N/vertices`"),
    ),
    request_body(content = Object, description = "The parameters: numbers, strings, or lists of them"),
    responses(vertices::VerticesResponses)
)]
pub(crate) async fn post_vectors(
    State(state): State<AppState>,
    target: NodeTarget,
    Query(pairs): Pairs,
    request: Request,
) -> Result<Response, Problem> {
    let (headers, client) = (request.headers().clone(), ClientBucket::of(request.extensions()));
    let (body, held): (serde_json::Map<String, Value>, _) =
        read_values(&state, (Priority::Elements, VALUE_BYTES), request).await?;
    let params = state.engine.cpu.run(move || VectorParams::new(pairs).with_body(body));
    let params = params.await?.map_err(problem_of)?;
    drop(held);
    respond_on_pool(state, target, client, params, Method::POST, headers).await
}

/// The services with which a request reads stores.
fn vector_context(engine: &ArrayEngine, target: &NodeTarget) -> VectorContext {
    // The name that caches use: another store of the same mount name must not find these entries.
    let mount = Arc::clone(&target.mount.cache_name);
    VectorContext {
        read_context: engine.reader.read_context(&mount),
        mount,
        opener: target.opener.clone(),
        reader: engine.reader.clone(),
        cpu: engine.cpu.clone(),
        read_limits: engine.read,
        metadata_limits: engine.metadata,
        codec_limits: engine.codec,
    }
}

/// Responds on the compute pool: documents are long, and parsing and writing them takes time.
async fn respond_on_pool(
    state: AppState,
    target: NodeTarget,
    client: ClientBucket,
    params: VectorParams,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let cpu = state.engine.cpu.clone();
    cpu.spawn_future(async move { route_request(&state, target, client, params, &method, &headers).await })
        .await?
}

/// Finds the store in the path and responds with its subresource.
async fn route_request(
    state: &AppState,
    target: NodeTarget,
    client: ClientBucket,
    params: VectorParams,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let context = Arc::new(vector_context(&state.engine, &target));
    let mut not_found = None;
    for (path, subresource_path) in split_candidates(&target.path) {
        if subresource_path.subresource == Subresource::Validate && *method != Method::POST {
            let permit = state
                .traffic
                .admission
                .acquire(AdmissionRequest::of(Priority::Background, client), RESPONSE_BYTES)
                .await?;
            match validate::validate_store(&state.options, &context, path.clone(), &params, headers).await {
                Err(error) if error.is_not_found() => {
                    not_found.get_or_insert(error);
                    continue;
                }
                outcome => return outcome.map_err(problem_of)?.map(|response| permit.hold(response)),
            }
        }
        let store = match VectorStore::open(Arc::clone(&context), path).await {
            // The name of a store may be that of a subresource.
            Err(error) if error.is_not_found() => {
                not_found.get_or_insert(error);
                continue;
            }
            opened => opened.map_err(problem_of)?,
        };
        if *method == Method::POST && subresource_path.subresource != Subresource::Vertices {
            return Err(Problem::from_class(ErrorClass::NotAllowed));
        }
        let request = VectorRequest { state, client, method, headers, store, subresource_path, params };
        return request.admit_and_respond().await;
    }
    let error = not_found.unwrap_or_else(|| VectorError::NotAStore { path: target.path.clone() });
    Err(problem_of(error))
}

impl VectorRequest<'_> {
    /// Responds after admission.
    async fn admit_and_respond(self) -> Result<Response, Problem> {
        // Vertices are admitted once their number is known.
        if matches!(self.subresource_path.subresource, Subresource::Vertices) {
            let (mut response, format) = vertices::get_vertices(&self).await?;
            self.name_download(response.headers_mut(), format);
            return Ok(response);
        }
        let admission = &self.state.traffic.admission;
        let mut permit = admission.acquire(self.admission_request(), RESPONSE_BYTES).await?;
        let response = self.respond(&mut permit).await?;
        Ok(permit.hold(response))
    }

    async fn respond(&self, permit: &mut Permit) -> Result<Response, Problem> {
        match &self.subresource_path.subresource {
            Subresource::Store => {
                self.params.check(&KnownParams::default()).map_err(problem_of)?;
                self.json(summary::store_document(&self.store).await)
            }
            Subresource::Level => {
                self.params.check(&KnownParams::default()).map_err(problem_of)?;
                self.json(summary::get_level(&self.level().await?).await)
            }
            Subresource::Chunks => self.json(chunks::list_chunks(&self.level().await?, &self.params).await),
            Subresource::Chunk(chunk) => {
                self.json(chunks::get_chunk(&self.level().await?, chunk, &self.params).await)
            }
            Subresource::Amplification => {
                self.json(amplification::get_amplification(&self.level().await?, &self.params).await)
            }
            Subresource::Objects => {
                self.json(objects::list_objects(&self.level().await?, &self.params).await)
            }
            Subresource::Object(id) => {
                self.json(objects::get_object(&self.level().await?, id, &self.params).await)
            }
            Subresource::ObjectEdges(id) => {
                self.json(objects::get_object_edges(&self.level().await?, id, &self.params).await)
            }
            Subresource::ObjectVertices(id) => {
                let limit = self.state.options.max_buffered_response_size;
                let level = self.level().await?;
                let text = objects::get_object_vertices(&level, id, &self.params, limit, permit).await?;
                let version = Version::from_text(&text);
                Ok(text_answer(self.headers, [text], version))
            }
            Subresource::Links => self.json(links::list_links(&self.level().await?, &self.params).await),
            Subresource::Stats => self.json(stats::get_stats(&self.level().await?, &self.params).await),
            // Vertices are handled before admission, and validation before the store is opened, which may be impossible.
            Subresource::Vertices | Subresource::Validate => Err(Problem::from_class(ErrorClass::NotFound)),
        }
    }

    /// Sets the file name under which clients save vertices.
    fn name_download(&self, headers: &mut HeaderMap, format: VertexFormat) {
        let (context, path) = (&self.store.context, &self.store.path);
        let name = download::name_of(&context.mount, path, path);
        download::put(headers, &format!("{name}.vertices"), format.extension());
    }

    fn json(&self, document: Result<Value, VectorError>) -> Result<Response, Problem> {
        Ok(json_answer(self.headers, &document.map_err(problem_of)?))
    }
}
