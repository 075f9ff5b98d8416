//! The schema of node documents in the OpenAPI document.

use serde_json::Value;
use utoipa::ToSchema;

use super::summary_document::SummaryDocument;
use crate::api::dataset::DatasetDocument;

/// What is known of a node, or the dataset that it is.
#[derive(ToSchema)]
#[schema(as = NodeOrDataset)]
#[serde(untagged)]
#[expect(dead_code, reason = "a schema alone")]
pub(crate) enum NodeOrDatasetSchema {
    Node(Box<NodeSchema>),
    Dataset(Box<DatasetDocument>),
}

/// A node, whatever format version is stored.
#[derive(ToSchema)]
#[schema(as = NodeDocument)]
#[expect(dead_code, reason = "a schema alone: documents are written member by member")]
pub(crate) struct NodeSchema {
    /// The name of the mount.
    mount: String,
    /// The path of the node; empty for the root.
    path: String,
    /// `array` or `group`.
    node_type: String,
    /// The Zarr format of the stored documents.
    zarr_format: u8,
    /// The node as a Zarr v3 document.
    #[schema(value_type = Object)]
    metadata: Value,
    /// The chunk grid of an array.
    #[schema(value_type = Option<Object>)]
    chunks: Option<Value>,
    /// Why the elements of an array cannot be read, if so.
    unreadable: Option<String>,
    /// The nodes below a group; null if they are unknown.
    #[schema(value_type = Option<Vec<Object>>)]
    children: Option<Vec<Value>>,
    /// Whether a group has more children than `children`.
    children_truncated: Option<bool>,
    /// Whether consolidated metadata is stored with a group.
    consolidated: Option<bool>,
    /// The nodes of the levels of a group by the convention `multiscales`.
    #[schema(value_type = Option<Vec<Object>>)]
    multiscales: Option<Vec<Value>>,
    /// The dependent arrays of an array.
    #[schema(value_type = Option<Vec<Object>>)]
    dependents: Option<Vec<Value>>,
    /// Links to the node in other routes, by what they are.
    #[schema(value_type = Object)]
    links: Value,
    summary: SummaryDocument,
}
