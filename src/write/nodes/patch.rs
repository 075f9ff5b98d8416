//! [`NodePatch`]: a change of a node's attributes, or of an array's shape or its names of dimensions, as a merge patch (RFC 7396).

use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::documents::{ZARR_JSON, ZATTRS};
use super::error::NodeWriteError;
use crate::codec::v2_codec;
use crate::hierarchy::Node;
use crate::metadata::v2::ARRAY_DIMENSIONS;
use crate::metadata::{
    ArrayMetadata, MetadataError, MetadataLimits, RawObject, ZarrFormat, parse_attributes, v2, v3,
};
use crate::units::counted;

/// A change of a node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "PatchMembers")]
pub struct NodePatch {
    /// The new shape of an array.
    pub(super) shape: Option<Vec<u64>>,
    /// Attributes to set, of which those that are null are removed; or the removal of all.
    pub(super) attributes: Option<MemberChange<Arc<Map<String, Value>>>>,
    /// New names of dimensions, or the removal of all.
    pub(super) names: Option<MemberChange<Arc<[Option<String>]>>>,
    /// About the length, in bytes, of the text that sets the attributes.
    pub(super) attribute_bytes: u64,
}

/// A change of a member that a node need not have.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MemberChange<T> {
    /// It is removed.
    Remove,
    /// It gets a value, or is merged with it.
    Set(T),
}

/// The members of a patch, each at most once.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PatchMembers {
    #[serde(deserialize_with = "present")]
    shape: Option<Value>,
    #[serde(deserialize_with = "present")]
    attributes: Option<Value>,
    #[serde(deserialize_with = "present")]
    dimension_names: Option<Value>,
}

/// A value that is there, and may be null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl TryFrom<PatchMembers> for NodePatch {
    type Error = &'static str;

    fn try_from(members: PatchMembers) -> Result<Self, &'static str> {
        let PatchMembers { shape, attributes, dimension_names } = members;
        let lengths = |shape: Value| {
            let lengths = shape.as_array().map(|lengths| lengths.iter().map(Value::as_u64).collect());
            lengths.flatten().ok_or("`shape` must be a list of numbers from 0 on")
        };
        let object = |attributes| match attributes {
            Value::Null => Ok(MemberChange::Remove),
            Value::Object(attributes) => Ok(MemberChange::Set(Arc::new(attributes))),
            _ => Err("`attributes` must be an object, or null"),
        };
        let names = |names| match names {
            Value::Null => Ok(MemberChange::Remove),
            names => serde_json::from_value::<Vec<Option<String>>>(names)
                .map(|names| MemberChange::Set(names.into()))
                .map_err(|_error| "`dimension_names` must be a list of names and nulls, or null"),
        };
        Ok(Self {
            attribute_bytes: attributes.as_ref().map_or(0, text_bytes),
            shape: shape.map(lengths).transpose()?,
            attributes: attributes.map(object).transpose()?,
            names: dimension_names.map(names).transpose()?,
        })
    }
}

impl NodePatch {
    /// Checks the new shape of an array, which is as it is now if there is none.
    ///
    /// # Errors
    /// [`NodeWriteError::Invalid`] for another number of dimensions, or too many elements.
    pub(super) fn shape_of(&self, array: &ArrayMetadata) -> Result<Vec<u64>, NodeWriteError> {
        let shape = self.shape.clone().unwrap_or_else(|| array.shape.clone());
        if shape.len() != array.shape.len() {
            return Err(invalid("`shape` has another number of dimensions than the array"));
        }
        let bytes =
            shape.iter().try_fold(array.data_type.element_bytes().max(1) as u64, |product, length| {
                product.checked_mul(*length)
            });
        match bytes {
            Some(bytes) if i64::try_from(bytes).is_ok() => Ok(shape),
            _ => Err(invalid("`shape`: an array has at most 2^63 - 1 elements, and as many bytes")),
        }
    }

    /// Whether it changes the document that has the attributes, which in v2 have the names of dimensions.
    pub(super) fn changes_attributes(&self) -> bool {
        self.attributes.is_some() || self.names.is_some()
    }

    /// Checks that a node can have these names of dimensions.
    ///
    /// # Errors
    /// [`NodeWriteError::Invalid`].
    pub(super) fn check_names(&self, node: &Node) -> Result<(), NodeWriteError> {
        let Some(change) = &self.names else { return Ok(()) };
        let Node::Array(array) = node else {
            return Err(invalid("`dimension_names`: a group has no dimensions"));
        };
        let (MemberChange::Set(names), rank) = (change, array.shape.len()) else { return Ok(()) };
        if names.len() != rank {
            let given = names.len();
            return Err(NodeWriteError::Invalid(format!(
                "`dimension_names` has {}, and the array {}: give a name or null for each",
                counted(given, "item"),
                counted(rank, "dimension")
            )));
        }
        if array.zarr_format == ZarrFormat::V2 && names.iter().any(Option::is_none) {
            return Err(invalid("`dimension_names`: an array of v2 has a name for each dimension, or none"));
        }
        Ok(())
    }

    /// A document with the change: what the change does not name keeps its text.
    ///
    /// # Errors
    /// [`NodeWriteError::Document`] if the stored document, or what becomes of it, is none that this server can read.
    pub(super) fn apply(
        &self,
        name: &str,
        document: Option<&[u8]>,
        limits: &MetadataLimits,
    ) -> Result<String, NodeWriteError> {
        let text = self.merged(name, document, limits).map_err(NodeWriteError::Document)?;
        match name {
            ZATTRS => parse_attributes(text.as_bytes(), limits).map(drop),
            ZARR_JSON => v3::parse(text.as_bytes(), limits).map(drop),
            _ => v2::parse_array(text.as_bytes(), None, v2_codec, limits).map(drop),
        }
        .map_err(NodeWriteError::Document)?;
        Ok(text)
    }

    fn merged(
        &self,
        name: &str,
        document: Option<&[u8]>,
        limits: &MetadataLimits,
    ) -> Result<String, MetadataError> {
        // A document may have copies of others, which are nested in it.
        let limits = MetadataLimits { depth: limits.depth.saturating_mul(2), ..*limits };
        let mut object = RawObject::parse(document.unwrap_or(b"{}"), &limits)?;
        if name == ZATTRS {
            let mut attributes = self.changed_attributes(object, &limits)?;
            match &self.names {
                Some(MemberChange::Set(names)) => attributes.set(ARRAY_DIMENSIONS, text_of(names)),
                Some(MemberChange::Remove) => drop(attributes.retain(|name| name != ARRAY_DIMENSIONS)),
                None => {}
            }
            return Ok(attributes.to_text());
        }
        if let Some(shape) = &self.shape {
            object.set("shape", Value::from(shape.clone()).to_string());
        }
        if name != ZARR_JSON {
            return Ok(object.to_text());
        }
        match &self.attributes {
            Some(MemberChange::Set(_)) => {
                let attributes = inner_object(object.get("attributes"), &limits)?;
                object.set("attributes", self.changed_attributes(attributes, &limits)?.to_text());
            }
            Some(MemberChange::Remove) => drop(object.retain(|name| name != "attributes")),
            None => {}
        }
        match &self.names {
            Some(MemberChange::Set(names)) => object.set("dimension_names", text_of(names)),
            Some(MemberChange::Remove) => drop(object.retain(|name| name != "dimension_names")),
            None => {}
        }
        Ok(object.to_text())
    }

    fn changed_attributes(
        &self,
        attributes: RawObject,
        limits: &MetadataLimits,
    ) -> Result<RawObject, MetadataError> {
        match &self.attributes {
            Some(MemberChange::Set(changes)) => merge(attributes, Some(changes), limits),
            Some(MemberChange::Remove) => Ok(RawObject::default()),
            None => Ok(attributes),
        }
    }
}

fn invalid(text: &str) -> NodeWriteError {
    NodeWriteError::Invalid(text.to_owned())
}

/// Names of dimensions as the text of a member.
fn text_of(names: &[Option<String>]) -> String {
    names.iter().cloned().collect::<Value>().to_string()
}

/// About the length, in bytes, of a value's text. Recursive in the nesting of the patch, which its parser bounds.
fn text_bytes(value: &Value) -> u64 {
    let inner = match value {
        Value::Null | Value::Bool(_) => 0,
        Value::Number(number) => number.as_str().len() as u64,
        Value::String(text) => text.len() as u64,
        Value::Array(values) => values.iter().map(text_bytes).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() as u64 + text_bytes(value)).sum()
        }
    };
    inner + 8
}

/// The object in a member; an empty one in place of anything else.
fn inner_object(text: Option<&str>, limits: &MetadataLimits) -> Result<RawObject, MetadataError> {
    let object = text.filter(|text| text.starts_with('{'));
    object.map_or_else(|| Ok(RawObject::default()), |text| RawObject::parse(text.as_bytes(), limits))
}

/// Merges members into others (RFC 7396, section 2). Recursive in the nesting of the patch, which its parser bounds.
fn merge(
    mut target: RawObject,
    changes: Option<&Map<String, Value>>,
    limits: &MetadataLimits,
) -> Result<RawObject, MetadataError> {
    let Some(changes) = changes else { return Ok(target) };
    target.retain(|known| !changes.get(known).is_some_and(Value::is_null));
    let current = target.values();
    let mut set = Vec::new();
    for (name, change) in changes.iter().filter(|(_, change)| !change.is_null()) {
        let text = match change {
            Value::Object(changes) => {
                let inner = inner_object(current.get(name.as_str()).copied(), limits)?;
                merge(inner, Some(changes), limits)?.to_text()
            }
            change => change.to_string(),
        };
        set.push((name.clone(), text));
    }
    target.set_all(set);
    Ok(target)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_sets_merges_and_removes_members() {
        let limits = MetadataLimits::default();
        let target = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1]}).to_string();
        let Value::Object(changes) = json!({"a": null, "b": {"c": null, "x": {"y": null}}, "e": "new"})
        else {
            panic!()
        };
        let merged = merge(RawObject::parse(target.as_bytes(), &limits).unwrap(), Some(&changes), &limits);
        let merged: Value = serde_json::from_str(&merged.unwrap().to_text()).unwrap();
        assert_eq!(merged, json!({"b": {"d": 3, "x": {}}, "e": "new"}));
    }

    #[test]
    fn a_patch_of_many_members_is_merged_by_their_names() {
        let limits = MetadataLimits::default();
        let members =
            |from: usize| (from..from + 50_000).map(move |number| (format!("name {number}"), json!(from)));
        let target: Map<String, Value> = members(0).collect();
        let mut changes: Map<String, Value> = members(25_000).collect();
        changes.insert("name 0".to_owned(), Value::Null);
        let target = RawObject::parse(Value::Object(target).to_string().as_bytes(), &limits).unwrap();
        let merged = merge(target, Some(&changes), &limits).unwrap();
        let values = merged.values();
        assert_eq!(values.len(), 74_999);
        let value = |number: usize| values.get(format!("name {number}").as_str()).copied();
        assert_eq!(
            [0, 1, 24_999, 25_000, 74_999].map(value),
            [None, Some("0"), Some("0"), Some("25000"), Some("25000")]
        );
    }

    #[test]
    fn what_a_change_does_not_name_keeps_its_text() {
        let patch = NodePatch {
            attributes: json!({"b": 2}).as_object().cloned().map(Arc::new).map(MemberChange::Set),
            ..NodePatch::default()
        };
        let document = br#"{"zarr_format":3,"node_type":"group","attributes":{"a":1.50,"n":NaN,"c":{"i":-Infinity,"h":1e400}}}"#;
        let changed = patch.apply(ZARR_JSON, Some(document), &MetadataLimits::default()).unwrap();
        let packed: String = changed.split_whitespace().collect();
        assert_eq!(
            packed,
            r#"{"zarr_format":3,"node_type":"group","attributes":{"a":1.50,"n":NaN,"c":{"i":-Infinity,"h":1e400},"b":2}}"#
        );
    }

    #[test]
    fn a_document_that_could_not_be_read_is_not_made() {
        let limits = MetadataLimits::default();
        let document = br#"{"zarr_format":3,"node_type":"group","attributes":{}}"#;
        let mut deep = json!(1);
        for _ in 0..limits.depth {
            deep = json!({ "x": deep });
        }
        for attribute in [deep, json!("x".repeat(limits.document_bytes))] {
            let attributes =
                json!({ "a": attribute }).as_object().cloned().map(Arc::new).map(MemberChange::Set);
            let patch = NodePatch { attributes, ..NodePatch::default() };
            for (name, document) in [(ZARR_JSON, Some(&document[..])), (ZATTRS, None)] {
                let made = patch.apply(name, document, &limits);
                assert!(matches!(made, Err(NodeWriteError::Document(_))), "{name}: {made:?}");
            }
        }
    }
}
