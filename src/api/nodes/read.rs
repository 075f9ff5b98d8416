//! GET of `/v1/nodes`: the node document.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::missing;
use super::multiscales::{self, MultiscaleLevel};
use super::schema::NodeOrDatasetSchema;
use super::specs::{NODE, ROOT_NODE};
use super::summary::Summarized;
use super::url::url_path;
use crate::admission::{AdmissionRequest, ClientBucket, Priority};
use crate::api::dataset::DatasetRequest;
use crate::api::dependents;
use crate::api::dependents::{NodeQuery, View, problem_of};
use crate::api::documented::MountParam;
use crate::api::json_response::text_answer;
use crate::array::{Array, OpenNode, RenderedText};
use crate::auth::caller::Caller;
use crate::auth::{KeyScope, Permission, Scope};
use crate::error::ErrorClass;
use crate::hierarchy::{Child, Children, Dependents, Node};
use crate::http::base_path::BasePath;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::metadata::dependents::{Diagnostic, DiagnosticCode, is_declared};
use crate::metadata::{ChunkEdges, ChunkGridMetadata, NodeKind};
use crate::services::extract::NodeTarget;
use crate::services::mount::Mount;
use crate::services::state::AppState;
use crate::store::Version;

/// The views that the links of a node include.
const VIEWS: [&str; 2] = ["plain", "unshard"];

/// The member with the metadata document of the node.
const METADATA: &str = "metadata";

/// Maximum number of children that are listed of a group.
const MOST_CHILDREN: usize = 1000;

/// Read the normalised metadata of a node
///
/// `metadata` is the node as a Zarr v3 metadata document, whatever format version is stored. An array also has its chunk
/// grid (`chunks`). A group has its `children`, and `consolidated` states whether consolidated metadata is stored with it;
/// on a backend that cannot list, the children come from there. A caller without the right to list gets no children.
///
/// An array that declares dependent arrays lists them in `dependents`. Each of them is a node at its name below the array,
/// with `virtual` set to true. Its node document has the members that it inherits from the array (`inherited`) and remarks
/// on its declaration (`diagnostics`).
///
/// A group with the attribute `multiscales` of the convention of that name lists the nodes of its levels in `multiscales`.
/// A level may be a dependent array.
///
/// `summary` says what the node is, by the conventions of its attributes: OME-Zarr, CF, `spatial:` and `proj:`, Zarr Vector
/// Format. It is made from metadata and the ends of small coordinates, and has the axes, levels and channels, what a picture shows by default, and
/// warnings about layouts that read badly, with a link to a view that reads better.
///
/// With `?dataset`, the document has what a program needs to select by labels instead: the dimensions of a group's arrays, their
/// coordinates with first and last label, step and units, the other arrays and which of them share dimensions, the range of
/// times, the bounding box and the coordinate reference system. Of an array, it is a dataset of the array and its coordinates.
/// No other elements are read than those of coordinates.
///
/// If the path is a folder of nodes but not a node itself, the 404 lists them in `children`, provided the caller may list.
/// Otherwise the 404 has the `nearest` existing ancestor and, if a name is similar, a suggestion in `did_you_mean`.
#[utoipa::path(
    method(get, head),
    path = NODE.template,
    tag = "nodes",
    params(
        MountParam,
        ("path" = String, Path, description = "Path of the node; empty for the root"),
        NodeQuery,
    ),
    responses(
        (status = 200, description = "The node document", body = NodeOrDatasetSchema),
        (status = 304, description = "The document still has an entity tag of `If-None-Match`"),
        (status = 404, description = "The mount or the node does not exist"),
        (status = 422, description = "The declaration of a dependent array is invalid"),
        (status = 500, description = "The stored metadata violates the Zarr specification"),
        (status = 501, description = "The metadata uses an unsupported extension"),
    )
)]
pub(crate) async fn get_node(
    State(state): State<AppState>,
    target: NodeTarget,
    (caller, share): (Caller, ClientBucket),
    query: Result<Query<NodeQuery>, QueryRejection>,
    base: BasePath,
    head: Parts,
) -> Result<Response, Problem> {
    let headers = &head.headers;
    let Query(query) = query.map_err(|rejection| Problem::from_query_error(&rejection))?;
    let listed = Permission::derived(Scope::List, KeyScope::Prefix(target.path.prefix().clone()));
    let reading = query.reading();
    let node = match target.opener.open_as(&target.path, reading).await {
        Ok(node) => node,
        Err(error) => {
            return Err(Box::pin(missing::problem_of(error, caller.rights(), &target, &target.path)).await);
        }
    };
    if query.is_of_dataset() {
        let names = query.variables();
        let request = DatasetRequest { state: &state, head: &head, target: &target, names: names.as_deref() };
        let (text, version) = Box::pin(request.text(node)).await?;
        let permit = state.traffic.admission.uncharged(AdmissionRequest::of(Priority::Metadata, share));
        let text = state.responses.texts.hold(&version, text, permit)?;
        return Ok(text_answer(headers, [text], version));
    }
    if query.variables().is_some() {
        let detail = "`vars` names the arrays of a dataset: it needs `dataset` beside it";
        return Err(Problem::from_class(ErrorClass::InvalidRequest).detail(detail));
    }
    let is_rebased = query.view() == View::Rebased;
    let found =
        target.opener.dependents(&target.path, &node, reading, is_rebased).await.map_err(problem_of)?;
    let children = match &node.node {
        Node::Group(_) if !caller.rights().allows(&target.mount.name, &listed) => Children::default(),
        Node::Group(group) => target.opener.hierarchy().children(&target.path, group, MOST_CHILDREN).await?,
        Node::Array(_) => Children::default(),
    };
    let levels = match &node.node {
        Node::Group(group) => {
            multiscales::multiscale_levels(&target.opener, &state.engine.cpu, &target.path, group).await?
        }
        Node::Array(_) => None,
    };
    let found = found.map(Arc::new);
    let (metadata, of_metadata) = metadata(&state, &target, &node, found.as_ref(), &query).await?;
    let permit = state.traffic.admission.uncharged(AdmissionRequest::of(Priority::Metadata, share));
    let metadata = state.responses.texts.hold(&of_metadata, metadata, permit)?;
    let summarized = Summarized {
        state: &state,
        target: &target,
        rights: caller.rights(),
        node: &node,
        children: &children,
        base: base.as_str(),
        url_path: &url_path(&target.mount, &target.path),
    };
    let (summary, of_summary) = Box::pin(summarized.text()).await?;
    let permit = state.traffic.admission.uncharged(AdmissionRequest::of(Priority::Metadata, share));
    let summary = state.responses.texts.hold(&of_summary, summary, permit)?;
    let document = NodeDocument { base, target, node, children, found, levels };
    let bytes = document.bytes();
    let around = move || document.around(&of_metadata, &of_summary);
    let (before, behind, version) = state.engine.cpu.run_document(bytes, around).await?;
    Ok(text_answer(headers, [before.into(), metadata, behind.into(), summary, "}".into()], version))
}

/// Read the normalised metadata of the node at the root of a mount
#[utoipa::path(
    method(get, head),
    path = ROOT_NODE.template,
    tag = "nodes",
    params(MountParam, NodeQuery),
    responses(
        (status = 200, description = "The node document", body = NodeOrDatasetSchema),
        (status = 404, description = "The mount does not exist, or its root is not a node"),
    )
)]
pub(crate) async fn get_root_node(
    state: State<AppState>,
    target: NodeTarget,
    callers: (Caller, ClientBucket),
    query: Result<Query<NodeQuery>, QueryRejection>,
    base: BasePath,
    head: Parts,
) -> Result<Response, Problem> {
    get_node(state, target, callers, query, base, head).await
}

/// The metadata document of a node as text, rendered once for each version of the stored documents.
async fn metadata(
    state: &AppState,
    target: &NodeTarget,
    node: &Arc<OpenNode>,
    found: Option<&Arc<Dependents>>,
    query: &NodeQuery,
) -> Result<RenderedText, Problem> {
    let view = query.view();
    if let Some(dependent) = &node.dependent {
        dependents::metadata(dependent, view)?;
    }
    // The chunk key encoding is part of the form: for a v2 array it may be inferred from the stored chunks.
    let keys = match &node.node {
        Node::Array(array) => Some(&array.chunk_key_encoding),
        Node::Group(_) => None,
    };
    let form = format!("{} {keys:?}", query.form());
    let versions = node.located.versions().map(Option::<&Version>::cloned).collect();
    let (cpu, node, found) = (state.engine.cpu.clone(), Arc::clone(node), found.map(Arc::clone));
    let making = Box::pin(async move {
        let bytes = node.located.document_bytes();
        let make = move || {
            let text = text_of(&node, found.as_deref(), view);
            let version = Version::from_text(text.as_bytes());
            (text.into(), version)
        };
        Ok(Some(cpu.run_document(bytes, make).await?))
    });
    let made = target.opener.rendered_text(&target.path, &form, versions, making).await?;
    made.ok_or_else(|| Problem::from_class(ErrorClass::NotFound))
}

fn text_of(node: &OpenNode, found: Option<&Dependents>, view: View) -> String {
    match (&node.dependent, &node.node) {
        (Some(dependent), _) => {
            let text = dependents::metadata(dependent, view).unwrap_or_default();
            if text.is_empty() { "null".to_owned() } else { text.to_owned() }
        }
        (None, Node::Group(group)) => group.to_text(),
        (None, Node::Array(array)) => match found.and_then(|found| found.rebased.clone()) {
            Some(rebased) => rebased,
            None => array.to_text(),
        },
    }
}

/// The parts of a node document besides the metadata.
struct NodeDocument {
    base: BasePath,
    target: NodeTarget,
    node: Arc<OpenNode>,
    children: Children,
    found: Option<Arc<Dependents>>,
    levels: Option<Vec<MultiscaleLevel>>,
}

impl NodeDocument {
    /// Approximate size of these parts in bytes.
    fn bytes(&self) -> u64 {
        /// A name, a kind and a link.
        const ENTRY_BYTES: usize = 200;
        let children = self.children.children.as_ref().map_or(0, Vec::len);
        let dependents = self.found.as_ref().map_or(0, |found| found.dependents.len());
        let chunks = match &self.node.node {
            Node::Group(_) => 0,
            Node::Array(array) => {
                let attributes = array.attributes.text().len() as u64;
                self.node.located.document_bytes().saturating_sub(attributes)
            }
        };
        chunks.saturating_add((children.saturating_add(dependents).saturating_mul(ENTRY_BYTES)) as u64)
    }

    /// The text of the node document before the metadata, and between the metadata and the summary, with which it ends; and
    /// the version of the whole document, given the versions of these two.
    fn around(self, metadata: &Version, summary: &Version) -> (String, String, Version) {
        let path = &self.target.path;
        let at = Links { base: self.base.as_str(), mount: &self.target.mount };
        let href = |path: &NodePath| at.of_node(path);
        let mut document = describe(at, path, &self.node, &self.children);
        if let Some(dependent) = &self.node.dependent {
            dependents::describe(&mut document, dependent);
        }
        if let Some(levels) = &self.levels {
            multiscales::describe(&mut document, levels, href);
        }
        if let Some(found) = &self.found {
            dependents::list(&mut document, path, found, href);
        }
        let (mut before, mut behind, mut is_behind) = ("{".to_owned(), String::new(), false);
        for (place, (name, value)) in document.iter().enumerate() {
            let text = if is_behind { &mut behind } else { &mut before };
            text.push_str(if place == 0 { "" } else { "," });
            text.push_str(&Value::from(name.as_str()).to_string());
            text.push(':');
            if name == METADATA {
                is_behind = true;
            } else {
                text.push_str(&value.to_string());
            }
        }
        behind.push_str(",\"summary\":");
        let version =
            Version::from_text([&before, metadata.tag(), &behind, summary.tag()].concat().as_bytes());
        (before, behind, version)
    }
}

/// The node document, with a placeholder for the metadata.
fn describe(at: Links<'_>, path: &NodePath, opened: &OpenNode, below: &Children) -> Map<String, Value> {
    let mut document = Map::new();
    let mut put = |name: &str, value: Value| document.insert(name.to_owned(), value);
    put("mount", json!(at.mount.name));
    put("path", json!(path.as_str()));
    match &opened.node {
        Node::Group(group) => {
            put("node_type", json!("group"));
            put("zarr_format", json!(group.zarr_format.number()));
            put(METADATA, Value::Null);
            // Unknown children are null, not an empty list.
            let children = below.children.as_ref();
            put("children", children.map_or(Value::Null, |children| children_of(at, path, children)));
            put("children_truncated", json!(below.truncated));
            put("consolidated", json!(below.is_consolidated));
            if is_declared(&group.attributes) {
                let detail = "only arrays can declare dependent arrays";
                let remark = Diagnostic::new(DiagnosticCode::DeclaredOnGroup, detail);
                put("diagnostics", dependents::remarks(&[remark]));
            }
        }
        Node::Array(metadata) => {
            put("node_type", json!("array"));
            put("zarr_format", json!(metadata.zarr_format.number()));
            put(METADATA, Value::Null);
            match opened.array() {
                Ok(array) => put("chunks", chunks_of(array)),
                // The metadata is valid but the elements cannot be read: `unreadable` has the reason.
                Err(error) => put("unreadable", json!(error.to_string())),
            };
        }
    }
    put("links", links_of(at, path, opened));
    document
}

/// The grid of stored chunks, and the shape of the smallest unit of decoding (an inner chunk, if the array is sharded). A
/// shape is null where chunks differ. For a rectilinear grid `chunk_edges` has the edge lengths along each dimension.
fn chunks_of(array: &Array) -> Value {
    let grid = array.grid();
    let mut chunks = json!({
        "chunk_shape": grid.chunk_shape(),
        "grid_shape": grid.grid_shape(),
        "sharded": array.is_sharded(),
        "decoded_chunk_shape": array.decoded_chunk_shape(),
    });
    let metadata = &array.metadata().chunk_grid;
    if let (ChunkGridMetadata::Rectilinear { edges }, Some(chunks)) = (metadata, chunks.as_object_mut()) {
        let edges = edges.iter().map(ChunkEdges::to_document).collect();
        chunks.insert("chunk_edges".to_owned(), edges);
    }
    chunks
}

fn children_of(at: Links<'_>, path: &NodePath, children: &[Child]) -> Value {
    let one = |name: &str, node_type: Value| {
        let href = path.child(name).map_or_else(|_| at.to("v1/nodes", ""), |child| at.of_node(&child));
        json!({ "name": name, "node_type": node_type, "href": href })
    };
    children.iter().map(|child| one(&child.name, json!(child.kind.map(NodeKind::as_str)))).collect()
}

/// Builds links to the resources of a mount.
#[derive(Clone, Copy)]
struct Links<'a> {
    base: &'a str,
    mount: &'a Mount,
}

impl Links<'_> {
    fn to(self, word: &str, path: &str) -> String {
        format!("{}/{word}/{path}", self.base)
    }

    fn of_node(self, path: &NodePath) -> String {
        self.to("v1/nodes", &url_path(self.mount, path))
    }
}

fn links_of(link: Links<'_>, path: &NodePath, opened: &OpenNode) -> Value {
    let slash_of = |path: &NodePath| if path.as_str().is_empty() { "" } else { "/" };
    let (at, slash) = (url_path(link.mount, path), slash_of(path));
    // A dependent array is stored with the array that declares it.
    let stored = opened.dependent.as_ref().map_or(path, |dependent| &dependent.primary);
    let store = link.to("store", &format!("{}{}", url_path(link.mount, stored), slash_of(stored)));
    let mut links = json!({ "self": link.to("v1/nodes", &at), "store": store });
    // A dependent array without a rebased document is in no view.
    let is_shown = opened.dependent.as_ref().is_none_or(|dependent| dependent.rebased.is_some());
    for view in VIEWS.into_iter().filter(|_| is_shown) {
        links[view] = json!(link.to(view, &format!("{at}{slash}")));
    }
    if let (Node::Array(_), Some(links)) = (&opened.node, links.as_object_mut()) {
        links.insert("data".to_owned(), json!(link.to("v1/data", &at)));
        links.insert("chunk".to_owned(), json!(link.to("v1/chunk", &format!("{at}{slash}c/"))));
    }
    links
}
