//! `/v1/nodes/{mount}/{path}`: what a node is, in one form for all format versions.

use axum::extract::Query;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Map, Value, json};

use crate::array::{Array, Opened};
use crate::hierarchy::{Child, Children, Node};
use crate::http::access::{Need, Reach, Scope};
use crate::http::base::Base;
use crate::http::caller::Caller;
use crate::http::dependents::{self, NodeQuery, problem_of};
use crate::http::extract::{NodeTarget, encode};
use crate::http::json_answer::json_answer;
use crate::http::levels;
use crate::http::missing;
use crate::http::problem::Problem;
use crate::http::state::Mount;
use crate::key::NodePath;
use crate::metadata::dependents::{Diagnostic, DiagnosticCode, is_declared};
use crate::metadata::{ChunkEdges, ChunkGridMetadata, NodeKind};

/// The views that a node has a link to.
const VIEWS: [&str; 2] = ["plain", "unshard"];

/// Children that are listed of a group.
const MOST_CHILDREN: usize = 1000;

/// Normalised metadata of a node of any format version.
///
/// `metadata` is the node as a Zarr v3 document, whatever version it is stored in. Arrays have their chunk grid besides,
/// groups their children, and whether consolidated metadata is stored with them (`consolidated`), which names the children
/// where the backend cannot list. Who may not list is told no children.
///
/// An array that declares dependent arrays lists them (`dependents`). Each is a node at its name below the array
/// (`virtual`), with the members that it takes from the array (`inherited`) and what is odd about it (`diagnostics`).
///
/// A group with the attribute `multiscales` of the convention of that name has each of its levels' nodes (`multiscales`),
/// which may be dependent arrays.
///
/// Where there is no node, but a folder of some, the 404 lists them (`children`), as far as the caller may list; else it says
/// what is nearest to the path (`nearest`), and which node may have been meant (`did_you_mean`).
#[utoipa::path(
    method(get, head),
    path = "/v1/nodes/{mount}/{*path}",
    tag = "nodes",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("path" = String, Path, description = "Path of the node; empty for the root"),
        NodeQuery,
    ),
    responses(
        (status = 200, description = "The node", content_type = "application/json"),
        (status = 304, description = "Not modified"),
        (status = 404, description = "No such mount or node"),
        (status = 422, description = "The declaration of a dependent array cannot be used"),
        (status = 500, description = "The stored metadata breaks the specification"),
        (status = 501, description = "The metadata uses an extension that is not supported"),
    )
)]
pub(in crate::http) async fn get_node(
    target: NodeTarget,
    caller: Caller,
    Query(query): Query<NodeQuery>,
    base: Base,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let listed = Need::derived(Scope::List, Reach::Below(target.path.prefix().clone()));
    let reading = query.reading();
    let node = match target.opener.open_as(&target.path, reading).await {
        Ok(node) => node,
        Err(error) => {
            return Err(Box::pin(missing::problem_of(error, caller.rights(), &target, &target.path)).await);
        }
    };
    let found = target.opener.dependents(&target.path, &node, reading).await.map_err(problem_of)?;
    let children = match &node.node {
        Node::Group(_) if !caller.rights().meet(&target.mount.name, &listed) => Children::default(),
        Node::Group(group) => target.opener.hierarchy().children(&target.path, group, MOST_CHILDREN).await?,
        Node::Array(_) => Children::default(),
    };
    let at = Links { base: base.as_str(), mount: &target.mount };
    let mut document = describe(at, &target.path, &node, &children);
    if let Some(dependent) = &node.dependent {
        dependents::describe(&mut document, dependent, query.view())?;
    }
    let href = |path: &NodePath| at.of_node(path);
    if let Node::Group(group) = &node.node {
        levels::describe(&mut document, &target.opener, &target.path, group, href).await?;
    }
    if let Some(found) = &found {
        dependents::list(&mut document, &target.path, found, query.view(), href);
    }
    Ok(json_answer(&headers, &Value::Object(document)))
}

/// The node at the root of a mount.
#[utoipa::path(
    method(get, head),
    path = "/v1/nodes/{mount}",
    tag = "nodes",
    params(("mount" = String, Path, description = "Name of a mount"), NodeQuery),
    responses(
        (status = 200, description = "The node", content_type = "application/json"),
        (status = 404, description = "No such mount, or no node at its root"),
    )
)]
pub(in crate::http) async fn get_root_node(
    target: NodeTarget,
    caller: Caller,
    query: Query<NodeQuery>,
    base: Base,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    get_node(target, caller, query, base, headers).await
}

fn describe(at: Links<'_>, path: &NodePath, opened: &Opened, below: &Children) -> Map<String, Value> {
    let mut document = Map::new();
    let mut put = |name: &str, value: Value| document.insert(name.to_owned(), value);
    put("mount", json!(at.mount.name));
    put("path", json!(path.as_str()));
    match &opened.node {
        Node::Group(group) => {
            put("node_type", json!("group"));
            put("zarr_format", json!(group.zarr_format.number()));
            put("metadata", group.to_document());
            // Where nobody knows, there is no list rather than an empty one.
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
            put("metadata", metadata.to_document());
            match opened.array() {
                Ok(array) => put("chunks", chunks_of(array)),
                // The metadata can be read though the elements cannot: say why.
                Err(error) => put("unreadable", json!(error.to_string())),
            };
        }
    }
    put("links", links_of(at, path, opened));
    document
}

/// The grid of stored chunks, and the shape that is decoded on its own (an inner chunk, if the array is sharded). A shape is
/// null where chunks differ; then `chunk_edges` has the edges along each dimension, as a rectilinear grid gives them.
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
    children.iter().map(|child| one(&child.name, json!(child.kind.map(NodeKind::name)))).collect()
}

/// Makes links to what is in a mount.
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

fn links_of(link: Links<'_>, path: &NodePath, opened: &Opened) -> Value {
    let slash_of = |path: &NodePath| if path.as_str().is_empty() { "" } else { "/" };
    let (at, slash) = (url_path(link.mount, path), slash_of(path));
    // What is declared is stored where the array stands that declares it.
    let stored = opened.dependent.as_ref().map_or(path, |dependent| &dependent.primary);
    let store = link.to("store", &format!("{}{}", url_path(link.mount, stored), slash_of(stored)));
    let mut links = json!({ "self": link.to("v1/nodes", &at), "store": store });
    // What is withheld from a path of its own is in no view.
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

/// `mount/a/b`, percent-encoded; `mount/` for the root.
fn url_path(mount: &Mount, path: &NodePath) -> String {
    let segments: Vec<String> = path.as_str().split('/').map(encode).collect();
    format!("{}/{}", encode(&mount.name), segments.join("/"))
}
