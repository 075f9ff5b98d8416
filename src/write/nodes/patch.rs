//! [`NodePatch`]: a change of a node's attributes, or of an array's shape, as a merge patch (RFC 7396).

use serde_json::{Map, Value};

use super::documents::{ZARR_JSON, ZARRAY, ZATTRS, pretty};
use super::error::NodeWriteError;
use crate::metadata::{ArrayMetadata, MetadataLimits, parse_attributes, parse_value};

/// A change of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodePatch {
    /// The new shape of an array.
    pub(super) shape: Option<Vec<u64>>,
    /// Attributes to set; those that are null are removed.
    pub(super) attributes: Option<Map<String, Value>>,
}

impl NodePatch {
    /// Reads a merge patch.
    ///
    /// # Errors
    /// [`NodeWriteError::Invalid`] for other members than `shape` and `attributes`.
    pub fn from_json(members: Map<String, Value>) -> Result<Self, NodeWriteError> {
        let mut patch = Self::default();
        for (name, value) in members {
            match (name.as_str(), value) {
                ("shape", Value::Array(lengths)) => {
                    let lengths = lengths.iter().map(Value::as_u64).collect::<Option<_>>();
                    patch.shape =
                        Some(lengths.ok_or_else(|| invalid("`shape` must be a list of numbers from 0 on"))?);
                }
                ("attributes", Value::Object(attributes)) => patch.attributes = Some(attributes),
                ("shape", _) => return Err(invalid("`shape` must be a list of numbers from 0 on")),
                ("attributes", _) => return Err(invalid("`attributes` must be an object")),
                _ => return Err(invalid("a change has `shape` and `attributes` alone")),
            }
        }
        Ok(patch)
    }

    /// The names of the documents that it changes, in a node of v3 or v2.
    pub(super) fn documents(&self, is_v3: bool) -> Vec<&'static str> {
        if is_v3 {
            return vec![ZARR_JSON];
        }
        let shape = self.shape.as_ref().map(|_| ZARRAY);
        shape.into_iter().chain(self.attributes.as_ref().map(|_| ZATTRS)).collect()
    }

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

    /// A document with the change; `None` for the document of attributes where there is none.
    ///
    /// # Errors
    /// [`NodeWriteError::Document`] if it is no document.
    pub(super) fn apply(
        &self,
        name: &str,
        document: Option<&[u8]>,
        limits: &MetadataLimits,
    ) -> Result<String, NodeWriteError> {
        let limits = MetadataLimits { document_bytes: limits.consolidated_bytes, ..*limits };
        if name == ZATTRS {
            let attributes = document.map(|text| parse_attributes(text, &limits)).transpose();
            let mut attributes = attributes.map_err(NodeWriteError::Document)?.unwrap_or_default();
            merge(&mut attributes, self.attributes.as_ref());
            return Ok(pretty(&attributes));
        }
        let value = parse_value(document.unwrap_or_default(), &limits).map_err(NodeWriteError::Document)?;
        let Value::Object(mut members) = value else {
            return Err(invalid("the stored document is not an object"));
        };
        if let Some(shape) = &self.shape {
            members.insert("shape".to_owned(), shape.clone().into());
        }
        if let Some(changes) = self.attributes.as_ref().filter(|_| name == ZARR_JSON) {
            let mut attributes = match members.get_mut("attributes").map(Value::take) {
                Some(Value::Object(attributes)) => attributes,
                _ => Map::new(),
            };
            merge(&mut attributes, Some(changes));
            members.insert("attributes".to_owned(), Value::Object(attributes));
        }
        Ok(pretty(&members))
    }
}

fn invalid(text: &str) -> NodeWriteError {
    NodeWriteError::Invalid(text.to_owned())
}

/// Merges members into others (RFC 7396, section 2). Recursive in the nesting of the patch, which its parser bounds.
fn merge(target: &mut Map<String, Value>, changes: Option<&Map<String, Value>>) {
    for (name, change) in changes.into_iter().flatten() {
        match change {
            Value::Null => {
                target.shift_remove(name);
            }
            Value::Object(changes) => {
                let mut inner = match target.get_mut(name).map(Value::take) {
                    Some(Value::Object(inner)) => inner,
                    _ => Map::new(),
                };
                merge(&mut inner, Some(changes));
                target.insert(name.clone(), Value::Object(inner));
            }
            change => {
                target.insert(name.clone(), change.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_sets_merges_and_removes_members() {
        let Value::Object(mut target) = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1]}) else { panic!() };
        let Value::Object(changes) = json!({"a": null, "b": {"c": null, "x": {"y": null}}, "e": "new"})
        else {
            panic!()
        };
        merge(&mut target, Some(&changes));
        assert_eq!(Value::Object(target), json!({"b": {"d": 3, "x": {}}, "e": "new"}));
    }

    #[test]
    fn a_document_keeps_the_order_of_its_members_and_the_text_of_its_numbers() {
        let Value::Object(members) = json!({"shape": [4], "attributes": {"b": 2}}) else { panic!() };
        let patch = NodePatch::from_json(members).unwrap();
        let document = br#"{"zarr_format":3,"shape":[9],"attributes":{"a":1.50},"fill_value":1e400}"#;
        let changed = patch.apply(ZARR_JSON, Some(document), &MetadataLimits::default()).unwrap();
        let packed: String = changed.split_whitespace().collect();
        assert_eq!(
            packed.replace("e+", "e"),
            r#"{"zarr_format":3,"shape":[4],"attributes":{"a":1.50,"b":2},"fill_value":1e400}"#
        );
    }
}
