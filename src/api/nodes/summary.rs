//! The summary of a node: which documents it is made from, and its text.
//!
//! Besides the node's own documents, a bounded number of others is read: levels, the first wells, the groups above an array,
//! coordinates beside it, and the first arrays of a group. Of the first coordinates of a dataset, the chunks with their first
//! and last values are read, if these are small. What the caller may not read counts as absent. The text is cached by the
//! versions of all these documents and chunks.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream;

use super::open_in;
use super::summary_document::SummaryDocument;
use crate::array::{Array, ArrayError, NodeOpener, OpenNode, RenderedText};
use crate::auth::{KeyScope, Permission, Rights, Scope};
use crate::conventions::{
    ArrayFacts, MAX_DATASET_ARRAYS, Needed, Neighbour, Neighbours, NodeFacts, WayOut, summarize_array,
    summarize_group,
};
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::{Children, Node};
use crate::http::options::HttpOptions;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::metadata::NodeKind;
use crate::services::coordinate_ends::coordinate_ends;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::store::Version;

/// Nodes that are opened concurrently.
const CONCURRENCY: usize = 16;
/// Most bytes of documents of other nodes that one summary is made from; further nodes count as unreadable.
const MAX_NEIGHBOUR_BYTES: u64 = 8 << 20;
/// Most coordinates whose ends are read.
const MAX_COORDINATES: usize = 8;
/// Most decoded bytes that are read of a coordinate; the ends of others are not known.
const MAX_COORDINATE_BYTES: u64 = 1 << 20;
/// The pixels of a thumbnail's longer side.
const THUMBNAIL_PIXELS: u32 = 128;

/// What a summary is of.
pub(super) struct Summarized<'a> {
    pub(super) state: &'a AppState,
    pub(super) target: &'a NodeTarget,
    pub(super) rights: &'a Rights,
    pub(super) node: &'a Arc<OpenNode>,
    pub(super) children: &'a Children,
    /// The base path of links.
    pub(super) base: &'a str,
    /// The mount and the path in URLs.
    pub(super) url_path: &'a str,
}

/// The nodes around another one, and the versions of their documents.
#[derive(Default)]
struct Around {
    neighbours: Neighbours,
    versions: Vec<Option<Version>>,
    bytes: u64,
    /// The coordinates among the nodes, in the order of their paths.
    coordinates: Vec<(NodePath, Arc<Array>)>,
    /// Whether the ends of a coordinate could not be read now.
    lacks_ends: bool,
}

/// The links of a summary.
struct SummaryLinks {
    base: String,
    url_path: String,
    /// The options for links to viewers; `None` if they could not read the node.
    viewers: Option<HttpOptions>,
}

impl Summarized<'_> {
    /// The text of the summary.
    ///
    /// # Errors
    /// Failures of the caches and of the compute pool.
    pub(super) async fn text(&self) -> Result<RenderedText, Problem> {
        let mut around = Around::default();
        let mut facts = facts(self.node);
        let needed = self.needed(&facts).await?;
        around.add(self, needed.declared, true).await;
        around.add(self, needed.possible, false).await;
        match &facts {
            NodeFacts::Array(array) => {
                let above = around.neighbours.clone();
                let (path, array) = (self.target.path.clone(), array.clone());
                let bytes = above.attribute_bytes();
                let beside = move || Needed::beside_array(&path, &array, &above);
                let beside = self.state.engine.cpu.run_document(bytes, beside).await?;
                around.add(self, beside.possible, false).await;
            }
            NodeFacts::Group(_) if needed.arrays_below => {
                around.add(self, self.arrays_below(), false).await;
            }
            NodeFacts::Group(_) => {}
        }
        around.read_ends(self, &mut facts).await;
        self.rendered(facts, around).await
    }

    /// The documents that the summary needs, cached by the versions of the node's own.
    async fn needed(&self, facts: &NodeFacts) -> Result<Needed, Problem> {
        let NodeFacts::Group(group) = facts else { return Ok(Needed::of_array(&self.target.path)) };
        let versions = self.node.located.versions().map(Option::<&Version>::cloned).collect();
        let (cpu, path, group) = (self.state.engine.cpu.clone(), self.target.path.clone(), Arc::clone(group));
        let making = Box::pin(async move {
            let bytes = group.attributes.text().len() as u64;
            let make = move || {
                let text = Needed::of_group(&path, &group).to_text();
                let version = Version::from_text(text.as_bytes());
                (text.into(), version)
            };
            Ok(Some(cpu.run_document(bytes, make).await?))
        });
        let found =
            self.target.opener.rendered_text(&self.target.path, "summary needs", versions, making).await?;
        Ok(found.map(|(text, _)| Needed::from_text(&text)).unwrap_or_default())
    }

    /// The first arrays directly below the group that the caller may list.
    fn arrays_below(&self) -> Vec<NodePath> {
        let children = self.children.children.iter().flatten();
        let arrays = children.filter(|child| child.kind == Some(NodeKind::Array));
        let paths = arrays.filter_map(|child| self.target.path.child(&child.name).ok());
        paths.take(MAX_DATASET_ARRAYS).collect()
    }

    /// Whether the caller may read a node.
    fn may_read(&self, path: &NodePath) -> bool {
        self.rights.allows(&self.target.mount.name, &permission(path))
    }

    /// Renders the text, or takes it from the cache if every node around could be read.
    async fn rendered(&self, facts: NodeFacts, around: Around) -> Result<RenderedText, Problem> {
        let is_public = self.rights.is_for_all(&self.target.mount.name, &permission(&self.target.path));
        let viewers = is_public.then(|| HttpOptions::clone(&self.state.options));
        let links = SummaryLinks { base: self.base.to_owned(), url_path: self.url_path.to_owned(), viewers };
        let names: Vec<&str> = around.neighbours.0.keys().map(NodePath::as_str).collect();
        let nodes = Version::from_text(names.join("\n").as_bytes());
        let is_stale = self.children.is_stale;
        let form = format!("summary {} {is_public} {is_stale} {}", self.base, nodes.tag());
        let own = self.node.located.versions().map(Option::<&Version>::cloned);
        let versions = own.chain(around.versions).collect();
        let is_complete = around.neighbours.is_complete() && !around.lacks_ends;
        let (cpu, path, neighbours) =
            (self.state.engine.cpu.clone(), self.target.path.clone(), around.neighbours);
        let making = Box::pin(async move {
            let own = match &facts {
                NodeFacts::Array(array) => array.metadata.attributes.text().len(),
                NodeFacts::Group(group) => group.attributes.text().len(),
            };
            let bytes = neighbours.attribute_bytes().saturating_add(own as u64);
            let make = move || links.text(&path, &facts, &neighbours, is_stale);
            Ok(Some(cpu.run_document(bytes, make).await?))
        });
        let made = if is_complete {
            self.target.opener.rendered_text(&self.target.path, &form, versions, making).await?
        } else {
            // What could not be read now may be readable at the same versions later.
            making.await.map_err(|error: ArrayError| Problem::from(error))?
        };
        made.ok_or_else(|| Problem::from_class(ErrorClass::NotFound))
    }
}

impl SummaryLinks {
    fn text(
        &self,
        path: &NodePath,
        facts: &NodeFacts,
        neighbours: &Neighbours,
        is_stale: bool,
    ) -> (bytes::Bytes, Version) {
        let (kind, summary) = match facts {
            NodeFacts::Array(array) => (NodeKind::Array, summarize_array(path, array, neighbours)),
            NodeFacts::Group(group) => (NodeKind::Group, summarize_group(path, group, neighbours, is_stale)),
        };
        let stored = format!("store/{}", self.url_path.trim_end_matches('/'));
        let viewers = self.viewers.as_ref();
        let viewers = viewers.map(|options| open_in::viewers(options, &stored, kind, &summary));
        let thumbnail = format!("{}/v1/image/{}?size={THUMBNAIL_PIXELS}", self.base, self.url_path);
        let way_out = |way_out| match way_out {
            WayOut::Pyramid => self.view("pyramid", "auto/auto/raw"),
            WayOut::Rechunk => self.view("rechunk", "auto/zstd-1"),
        };
        let document = SummaryDocument::new(summary, Some(thumbnail), viewers.unwrap_or_default(), way_out);
        let text = serde_json::to_string(&document).unwrap_or_else(|_| "null".to_owned());
        let version = Version::from_text(text.as_bytes());
        (text.into(), version)
    }

    /// The link to a view of the node, whose recipe stands after the mount.
    fn view(&self, view: &str, recipe: &str) -> String {
        let (mount, path) = self.url_path.split_once('/').unwrap_or((&self.url_path, ""));
        format!("{}/{view}/{mount}/{recipe}/{path}", self.base)
    }
}

impl Around {
    /// Opens nodes and adds them. Attributes declare some, which may then be dependent arrays.
    async fn add(&mut self, of: &Summarized<'_>, paths: Vec<NodePath>, is_declared: bool) {
        let paths: Vec<NodePath> =
            paths.into_iter().filter(|path| !self.neighbours.0.contains_key(path)).collect();
        let opener = &of.target.opener;
        let mut opened = stream::iter(paths)
            .map(|path| async move {
                if !of.may_read(&path) {
                    return (path, Ok(None));
                }
                let found = Box::pin(open(opener, &path, is_declared)).await;
                (path, found)
            })
            .buffered(CONCURRENCY);
        let mut added = BTreeMap::new();
        while let Some((path, found)) = opened.next().await {
            let neighbour = match found {
                Ok(None) => {
                    self.versions.push(None);
                    Neighbour::Absent
                }
                Ok(Some(node)) => {
                    self.bytes = self.bytes.saturating_add(node.located.document_bytes());
                    if self.bytes > MAX_NEIGHBOUR_BYTES {
                        Neighbour::Unknown
                    } else {
                        self.versions.extend(node.located.versions().map(Option::<&Version>::cloned));
                        let facts = facts(&node);
                        if let (NodeFacts::Array(array), Ok(bound)) = (&facts, node.array())
                            && array.is_coordinate(path.name())
                        {
                            self.coordinates.push((path.clone(), Arc::clone(bound)));
                        }
                        Neighbour::Present(facts)
                    }
                }
                Err(error) => {
                    tracing::debug!(%path, %error, "a summary is made without a node that cannot be read");
                    Neighbour::Unknown
                }
            };
            added.insert(path, neighbour);
        }
        self.neighbours.0.append(&mut added);
    }

    /// Reads the first and the last value of the coordinates, that of the node itself among them.
    async fn read_ends(&mut self, of: &Summarized<'_>, own: &mut NodeFacts) {
        let itself = match (&*own, of.node.array()) {
            (NodeFacts::Array(array), Ok(bound)) if array.is_coordinate(of.target.path.name()) => {
                Some((of.target.path.clone(), Arc::clone(bound)))
            }
            _ => None,
        };
        let all = itself.into_iter().chain(self.coordinates.drain(..)).take(MAX_COORDINATES);
        let mut read = stream::iter(all.collect::<Vec<_>>())
            .map(|(path, array)| async move {
                let ends = coordinate_ends(of.state, &array, MAX_COORDINATE_BYTES).await;
                (path, ends)
            })
            .buffered(MAX_COORDINATES);
        while let Some((path, found)) = read.next().await {
            let found = match found {
                Ok(found) => found,
                // Its chunks are too large, today and later.
                Err(ArrayError::TooLarge { .. }) => continue,
                Err(error) => {
                    tracing::debug!(%path, %error, "a summary is made without the ends of a coordinate");
                    self.lacks_ends = true;
                    continue;
                }
            };
            self.versions.extend(found.versions);
            if path == of.target.path {
                own.set_ends(found.values);
            } else if let Some(Neighbour::Present(facts)) = self.neighbours.0.get_mut(&path) {
                facts.set_ends(found.values);
            }
        }
    }
}

/// A node; `None` if there is none.
async fn open(
    opener: &NodeOpener,
    path: &NodePath,
    is_declared: bool,
) -> Result<Option<Arc<OpenNode>>, ArrayError> {
    if !is_declared {
        return opener.find(path).await;
    }
    match opener.open(path).await {
        Ok(node) => Ok(Some(node)),
        Err(error) if error.class() == ErrorClass::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn facts(opened: &OpenNode) -> NodeFacts {
    match &opened.node {
        Node::Group(group) => NodeFacts::Group(Arc::clone(group)),
        Node::Array(metadata) => NodeFacts::Array(ArrayFacts {
            metadata: Arc::clone(metadata),
            decoded_chunk_shape: opened.array().ok().and_then(|array| array.decoded_chunk_shape()),
            ends: None,
        }),
    }
}

/// The permission to read a node.
fn permission(path: &NodePath) -> Permission {
    Permission::derived(Scope::Read, KeyScope::Prefix(path.prefix().clone()))
}
