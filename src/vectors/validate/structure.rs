//! Level 1: which nodes exist, read from their metadata documents alone.

use super::Report;
use crate::array::ArrayError;
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::{HierarchyError, Node};
use crate::key::NodePath;
use crate::metadata::{ArrayMetadata, DataType};
use crate::vectors::json::JsonObject;
use crate::vectors::root::Profile;
use crate::vectors::shapes::level_metadata;
use crate::vectors::store::VectorStore;
use crate::vectors::{LevelName, VectorError};

/// What is stored at a path.
#[derive(Clone, Debug)]
pub(super) enum NodeState {
    Missing,
    Group(std::sync::Arc<JsonObject>),
    Array(std::sync::Arc<ArrayMetadata>),
    /// A document that cannot be used, with the reason.
    Unusable(String),
}

/// A level to check.
#[derive(Clone, Debug)]
pub(super) struct CheckedLevel {
    pub(super) name: LevelName,
    pub(super) path: NodePath,
    /// Its own metadata; `None` if it has none.
    pub(super) metadata: Option<JsonObject>,
}

/// The levels to check.
#[derive(Clone, Debug)]
pub(super) struct CheckedLevels {
    pub(super) levels: Vec<CheckedLevel>,
}

impl CheckedLevels {
    pub(super) async fn read(store: &VectorStore, only: Option<&[u64]>) -> Result<Self, VectorError> {
        let mut levels = Vec::new();
        for name in store.levels.iter() {
            if only.is_some_and(|only| !only.contains(&name.index)) {
                continue;
            }
            let path = store.path.child(&name.name)?;
            let attributes = match store.level_attributes(&path).await {
                Ok(attributes) => attributes,
                Err(error) if is_document_error(&error) => None,
                Err(error) => return Err(error),
            };
            let block =
                attributes.and_then(|attributes| level_metadata(store.root.profile, &attributes).cloned());
            levels.push(CheckedLevel { name: name.clone(), path, metadata: block });
        }
        Ok(Self { levels })
    }
}

/// Whether an error is caused by a metadata document, and not by the backend.
fn is_document_error(error: &VectorError) -> bool {
    matches!(error, VectorError::Array(ArrayError::Hierarchy(HierarchyError::Metadata { .. })))
        || matches!(error.class(), ErrorClass::InvalidMetadata | ErrorClass::Unsupported)
}

/// Reads the node at a path.
pub(super) async fn read_node(store: &VectorStore, path: &NodePath) -> Result<NodeState, VectorError> {
    match store.context.node(path).await {
        Ok(None) => Ok(NodeState::Missing),
        Ok(Some(opened)) => Ok(match &opened.node {
            Node::Group(group) => NodeState::Group(store.context.parse_attributes(&group.attributes).await?),
            Node::Array(metadata) => match opened.array() {
                Ok(_) => NodeState::Array(std::sync::Arc::clone(metadata)),
                Err(error) => NodeState::Unusable(error.to_string()),
            },
        }),
        Err(error) if is_document_error(&error) => Ok(NodeState::Unusable(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Why a node cannot hold payloads of a profile; `None` if it can.
pub(super) fn node_problem(kind: &NodeState, profile: Profile) -> Option<String> {
    match (kind, profile) {
        (NodeState::Missing, _) => Some("it is missing".to_owned()),
        (NodeState::Unusable(reason), _) => Some(reason.clone()),
        (NodeState::Group(_), Profile::V9 | Profile::Doc) => Some("it is a group, not an array".to_owned()),
        (NodeState::Array(_), Profile::V7) => Some("it is an array, not a group".to_owned()),
        (NodeState::Array(array), Profile::V9) if array.data_type != DataType::VariableBytes => {
            Some(format!("it holds {}, not variable-length bytes", array.data_type.name()))
        }
        (NodeState::Group(_) | NodeState::Array(_), _) => None,
    }
}

pub(super) async fn check(
    store: &VectorStore,
    found: &CheckedLevels,
    report: &mut Report,
) -> Result<(), VectorError> {
    let root = &store.root;
    let at = store.path.as_str();
    let dims = root.dims();
    report.pass("chunk_shape_present", at);
    check_edges(root.chunk_shape().as_deref(), dims, "chunk_shape_present", "chunk_shape", at, report);
    if root.profile == Profile::Doc {
        report.pass("base_bin_shape_present", at);
        check_edges(
            root.base_bin_shape().as_deref(),
            dims,
            "base_bin_shape_present",
            "base_bin_shape",
            at,
            report,
        );
    }
    report.pass("level_0_exists", at);
    if store.levels.is_empty() {
        report.error("level_0_exists", at, "there is no level");
    } else if !store.levels.iter().any(|level| level.index == 0) {
        report.error("level_0_exists", at, "there is no level 0");
    }
    let is_doc = root.profile == Profile::Doc;
    for level in &found.levels {
        let vertices = level.path.child("vertices")?;
        report.pass("vertices_array", vertices.as_str());
        if let Some(problem) = node_problem(&read_node(store, &vertices).await?, root.profile) {
            report.error("vertices_array", vertices.as_str(), problem);
        }
        let fragments = level.path.child(if is_doc { "vertex_group_offsets" } else { "vertex_fragments" })?;
        report.pass("fragments_array", fragments.as_str());
        if let Some(problem) = node_problem(&read_node(store, &fragments).await?, root.profile) {
            report.error_or_warn(is_doc, "fragments_array", fragments.as_str(), problem);
        }
        report.pass("level_metadata", level.path.as_str());
        if level.metadata.is_none() {
            report.error_or_warn(is_doc, "level_metadata", level.path.as_str(), "the level has no metadata");
        }
        check_optional_nodes(store, level, report).await?;
    }
    Ok(())
}

/// Reports edge lengths that are missing, of the wrong number, or not above 0.
fn check_edges(
    edges: Option<&[f64]>,
    dims: Option<usize>,
    id: &'static str,
    name: &str,
    at: &str,
    report: &mut Report,
) {
    let Some(edges) = edges else {
        return report.error(id, at, format!("`{name}` is missing, or is not a list of finite numbers"));
    };
    if dims.is_some_and(|dims| edges.len() != dims) || edges.is_empty() {
        report.error(id, at, format!("`{name}` has {} numbers for {dims:?} axes", edges.len()));
    }
    if edges.iter().any(|&edge| edge <= 0.0) {
        report.error(id, at, format!("`{name}` has numbers that are not above 0"));
    }
}

/// Reports optional nodes that are of the wrong kind.
async fn check_optional_nodes(
    store: &VectorStore,
    level: &CheckedLevel,
    report: &mut Report,
) -> Result<(), VectorError> {
    let profile = store.root.profile;
    let (groups, arrays): (&[&str], &[&str]) = match profile {
        Profile::Doc => (&["attributes", "links"], &["object_index", "cross_chunk_links"]),
        Profile::V7 => (&["vertex_attributes", "object_index", "object_attributes"], &[]),
        Profile::V9 => (
            &[
                "vertex_attributes",
                "fragment_attributes",
                "links",
                "link_attributes",
                "object_index",
                "object_attributes",
                "group_attributes",
            ],
            &["groups", "link_fragments"],
        ),
    };
    report.pass("optional_nodes", level.path.as_str());
    for name in groups {
        let path = level.path.child(name)?;
        match read_node(store, &path).await? {
            NodeState::Missing | NodeState::Group(_) => {}
            NodeState::Array(_) => report.warn(
                "optional_nodes",
                level.path.as_str(),
                format!("`{name}` is an array, not a group"),
            ),
            NodeState::Unusable(reason) => {
                report.warn("optional_nodes", level.path.as_str(), format!("`{name}`: {reason}"));
            }
        }
    }
    for name in arrays {
        match read_node(store, &level.path.child(name)?).await? {
            NodeState::Missing | NodeState::Array(_) => {}
            NodeState::Group(_) => report.warn(
                "optional_nodes",
                level.path.as_str(),
                format!("`{name}` is a group, not an array"),
            ),
            NodeState::Unusable(reason) => {
                report.warn("optional_nodes", level.path.as_str(), format!("`{name}`: {reason}"));
            }
        }
    }
    let links = level.path.child("links")?;
    if profile == Profile::V9
        && matches!(read_node(store, &links).await?, NodeState::Group(_))
        && store.context.child_names(&links).await?.is_some_and(|names| names.is_empty())
    {
        report.warn("optional_nodes", level.path.as_str(), "`links` has no link families");
    }
    Ok(())
}
