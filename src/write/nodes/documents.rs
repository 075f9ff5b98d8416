//! [`NodeDocuments`]: the metadata documents of a node to be stored (Zarr core 3.1, "Stored representation"; Zarr v2,
//! "Hierarchies").

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::error::NodeWriteError;
use super::mark::marked;
use crate::codec::v2_codec;
use crate::metadata::{ArrayMetadata, MetadataLimits, ZarrFormat, v2, v3};

/// The document of a node of v3.
pub(super) const ZARR_JSON: &str = "zarr.json";
/// The document of an array of v2.
pub(super) const ZARRAY: &str = ".zarray";
/// The document of a group of v2.
pub(super) const ZGROUP: &str = ".zgroup";
/// The document of an array of v1.
pub(super) const META: &str = "meta";
/// The attributes of a node of v2.
pub(super) const ZATTRS: &str = ".zattrs";

/// Documents of more bytes than this, without indentation, are stored without it.
const MAX_INDENTED_BYTES: usize = 64 << 10;

/// The documents of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeDocuments {
    /// The format version.
    pub(super) format: ZarrFormat,
    /// The documents by their names. The one that makes it a node is the last. Attributes of v2 are always among them, also if
    /// there are none, so that two clients that create a node both claim them.
    pub(super) texts: Vec<(&'static str, String)>,
    /// The metadata of an array; `None` for a group.
    pub(super) array: Option<Arc<ArrayMetadata>>,
}

impl NodeDocuments {
    /// The documents of an array of v3.
    ///
    /// # Errors
    /// [`NodeWriteError::Document`] if they are not those of an array or a group that can be read.
    pub(super) fn of_v3(document: &Value, limits: &MetadataLimits) -> Result<Self, NodeWriteError> {
        let text = document_text(document);
        let node = v3::parse(text.as_bytes(), limits).map_err(NodeWriteError::Document)?;
        let array = match node {
            v3::V3Node::Array(array) => Some(Arc::new(array)),
            v3::V3Node::Group(_) => None,
        };
        Self { format: ZarrFormat::V3, texts: vec![(ZARR_JSON, text)], array }.checked()
    }

    /// The documents of an array of v2.
    ///
    /// # Errors
    /// As [`NodeDocuments::of_v3`].
    pub(super) fn of_v2_array(
        zarray: &Value,
        attributes: &Map<String, Value>,
        limits: &MetadataLimits,
    ) -> Result<Self, NodeWriteError> {
        let (zarray, zattrs) = (document_text(zarray), document_text(attributes));
        let array = v2::parse_array(zarray.as_bytes(), Some(zattrs.as_bytes()), v2_codec, limits);
        let array = array.map_err(NodeWriteError::Document)?;
        let texts = vec![(ZATTRS, zattrs), (ZARRAY, zarray)];
        Self { format: ZarrFormat::V2, texts, array: Some(Arc::new(array)) }.checked()
    }

    /// The documents of a group.
    ///
    /// # Errors
    /// As [`NodeDocuments::of_v3`].
    pub(super) fn of_group(
        format: ZarrFormat,
        attributes: &Map<String, Value>,
        limits: &MetadataLimits,
    ) -> Result<Self, NodeWriteError> {
        if format == ZarrFormat::V3 {
            let document = json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes });
            return Self::of_v3(&document, limits);
        }
        let (zgroup, zattrs) = (document_text(&json!({ "zarr_format": 2 })), document_text(attributes));
        v2::parse_group(zgroup.as_bytes(), Some(zattrs.as_bytes()), limits)
            .map_err(NodeWriteError::Document)?;
        Ok(Self { format, texts: vec![(ZATTRS, zattrs), (ZGROUP, zgroup)], array: None })
    }

    /// The document of a group without attributes, which is made above a new node. It claims nothing but its own name, so that
    /// of several clients which make it each goes on.
    pub(super) fn of_group_above(format: ZarrFormat) -> Self {
        let (name, text) = if format == ZarrFormat::V3 {
            (ZARR_JSON, json!({ "zarr_format": 3, "node_type": "group", "attributes": {} }))
        } else {
            (ZGROUP, json!({ "zarr_format": 2 }))
        };
        Self { format, texts: vec![(name, document_text(&text))], array: None }
    }

    /// The name of the document that makes it a node.
    pub(super) fn own_name(&self) -> &'static str {
        self.texts.last().map_or(ZARR_JSON, |(name, _)| name)
    }

    /// The same documents of an array at a path that was taken over this often, if it ever was: with a mark, so that no change of an
    /// earlier array of the same description takes this one for its own.
    pub(super) fn marked(&self, epoch: Option<u64>) -> Self {
        let mut documents = self.clone();
        if let (Some(epoch), Some(_), Some((_, own))) = (epoch, &self.array, documents.texts.last_mut()) {
            *own = marked(own.as_bytes(), epoch);
        }
        documents
    }

    /// The metadata of an array; `None` for a group.
    #[must_use]
    pub fn array(&self) -> Option<&Arc<ArrayMetadata>> {
        self.array.as_ref()
    }

    /// Rejects an array with more elements, or bytes, than a signed number of 64 bits counts: no reader can address them.
    fn checked(self) -> Result<Self, NodeWriteError> {
        if let Some(array) = &self.array {
            let elements = array.shape.iter().try_fold(1_u64, |product, length| product.checked_mul(*length));
            let item = array.data_type.element_bytes().max(1) as u64;
            let bytes = elements.and_then(|elements| elements.checked_mul(item));
            if bytes.is_none_or(|bytes| i64::try_from(bytes).is_err()) {
                let text = "`shape`: an array has at most 2^63 - 1 elements, and as many bytes";
                return Err(NodeWriteError::Invalid(text.to_owned()));
            }
        }
        Ok(self)
    }
}

/// A document as text, indented for people to read unless it is long. Indented, a long one could exceed the limit of documents.
pub(super) fn document_text(document: &impl serde::Serialize) -> String {
    // Values have text as names, so that this does not fail.
    let text = serde_json::to_string(document).unwrap_or_default();
    if text.len() > MAX_INDENTED_BYTES {
        return text;
    }
    let indented = serde_json::to_string_pretty(document).unwrap_or_default();
    // Values that are nested deep have more indentation than text.
    if indented.len() > 4 * MAX_INDENTED_BYTES { text } else { indented }
}
