//! [`CopyChange`]: a change of consolidated metadata that is stored above a node, so that it stays true.
//!
//! In v3 the copies are a member of a group's `zarr.json`, by the paths of nodes; in v2 they are in `.zmetadata`, by the keys
//! of documents. Groups without stored copies are left as they are.

use serde_json::{Map, Value};

use super::documents::ZARR_JSON;
use crate::metadata::{MetadataLimits, parse_value};

/// The document with the copies of v2.
pub(super) const ZMETADATA: &str = ".zmetadata";
/// The member with the copies of v3.
const INLINE: &str = "consolidated_metadata";

/// What has become of the documents of a node.
#[derive(Clone, Debug)]
pub(super) enum CopyChange {
    /// These documents are stored now, by their names.
    Stored(Vec<(&'static str, String)>),
    /// The node is erased, with all below it.
    Erased,
}

impl CopyChange {
    /// The document of a group with the change of a node at a path relative to it (empty for the group itself); `None` if it
    /// has no copies, or they are true already.
    pub(super) fn apply(
        &self,
        document: &str,
        text: &[u8],
        path: &str,
        limits: &MetadataLimits,
    ) -> Option<String> {
        // Copies are nested in the document of their group.
        const COPY_DEPTH: usize = 4;
        let limits = MetadataLimits {
            document_bytes: limits.consolidated_bytes,
            depth: limits.depth.saturating_add(COPY_DEPTH),
            ..*limits
        };
        let mut group = parse_value(text, &limits).ok()?;
        let copies = if document == ZARR_JSON { group.get_mut(INLINE)? } else { &mut group };
        let copies = copies.get_mut("metadata")?.as_object_mut()?;
        let is_v3 = document == ZARR_JSON;
        if is_v3 && path.is_empty() {
            // The group's own document is not among its copies.
            return None;
        }
        let changed = match self {
            Self::Erased => erase(copies, path, is_v3),
            Self::Stored(documents) => {
                let mut changed = false;
                for (name, text) in documents {
                    if is_v3 != (*name == ZARR_JSON) {
                        continue;
                    }
                    let Ok(mut copy) = parse_value(text.as_bytes(), &limits) else { continue };
                    if let Some(members) = copy.as_object_mut() {
                        members.shift_remove(INLINE);
                    }
                    let key = match (is_v3, path) {
                        (true, path) => path.to_owned(),
                        (false, "") => (*name).to_owned(),
                        (false, path) => format!("{path}/{name}"),
                    };
                    changed |= copies.get(&key) != Some(&copy);
                    copies.insert(key, copy);
                }
                changed
            }
        };
        changed.then(|| group.to_string())
    }
}

/// Removes the copies of a node and of all below it. Returns whether there were any.
fn erase(copies: &mut Map<String, Value>, path: &str, is_v3: bool) -> bool {
    let before = copies.len();
    copies.retain(|key, _| {
        let below = key
            .strip_prefix(path)
            .and_then(|rest| if path.is_empty() { Some(rest) } else { rest.strip_prefix('/') });
        let is_it = is_v3 && key == path;
        !is_it && below.is_none()
    });
    copies.len() != before
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn applied(change: &CopyChange, document: &str, group: &Value, path: &str) -> Option<Value> {
        let text = change.apply(document, group.to_string().as_bytes(), path, &MetadataLimits::default())?;
        serde_json::from_str(&text).ok()
    }

    #[test]
    fn copies_of_v3_follow_a_node() {
        let group =
            |copies: Value| json!({"node_type": "group", "consolidated_metadata": {"metadata": copies}});
        let new =
            CopyChange::Stored(vec![(ZARR_JSON, json!({"n": 1, "consolidated_metadata": {}}).to_string())]);
        let found = applied(&new, ZARR_JSON, &group(json!({"a": {}})), "b/c");
        assert_eq!(found, Some(group(json!({"a": {}, "b/c": {"n": 1}}))));
        let all = group(json!({"a": {}, "b": {}, "b/c": {}, "bc": {}}));
        assert_eq!(
            applied(&CopyChange::Erased, ZARR_JSON, &all, "b"),
            Some(group(json!({"a": {}, "bc": {}})))
        );
        assert_eq!(applied(&CopyChange::Erased, ZARR_JSON, &all, "x"), None);
        assert_eq!(applied(&new, ZARR_JSON, &json!({"node_type": "group"}), "b"), None);
    }

    #[test]
    fn copies_of_v2_follow_a_node() {
        let group = |copies: Value| json!({"zarr_consolidated_format": 1, "metadata": copies});
        let new = CopyChange::Stored(vec![(".zattrs", "{}".to_owned()), (".zarray", "{\"s\":1}".to_owned())]);
        let found = applied(&new, ZMETADATA, &group(json!({".zgroup": {}})), "a");
        assert_eq!(found, Some(group(json!({".zgroup": {}, "a/.zattrs": {}, "a/.zarray": {"s": 1}}))));
        let all = group(json!({".zgroup": {}, "a/.zarray": {}, "a/b/.zarray": {}, "ab/.zarray": {}}));
        let left = group(json!({".zgroup": {}, "ab/.zarray": {}}));
        assert_eq!(applied(&CopyChange::Erased, ZMETADATA, &all, "a"), Some(left));
    }
}
