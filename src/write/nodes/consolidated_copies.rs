//! [`CopyChange`]: a change of consolidated metadata that is stored above a node, so that it stays true.
//!
//! In v3 the copies are a member of a group's `zarr.json`, by the paths of nodes; in v2 they are in `.zmetadata`, by the keys
//! of documents. Groups without stored copies are left as they are.

use super::documents::ZARR_JSON;
use crate::metadata::{MetadataLimits, RawObject};

/// The document with the copies of v2.
pub(super) const ZMETADATA: &str = ".zmetadata";
/// The member with the copies of v3.
const INLINE: &str = "consolidated_metadata";
/// The member with the copies by their keys, of the document of v2 or the member of v3.
const COPIES: &str = "metadata";

/// What has become of the documents of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CopyChange {
    /// These documents are stored now, by their names.
    Stored(Vec<(&'static str, String)>),
    /// The node is erased, with all below it.
    Erased,
}

impl CopyChange {
    /// The length of its documents.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Stored(documents) => documents.iter().map(|(_, text)| text.len() as u64).sum(),
            Self::Erased => 0,
        }
    }

    /// The document of a group with changes, each of a node at a path relative to it (empty for the group itself); `None` if it
    /// has no copies, or they are true already.
    pub(super) fn apply(
        changes: &[(Self, String)],
        document: &str,
        text: &[u8],
        limits: &MetadataLimits,
    ) -> Option<String> {
        // Copies are nested in the document of their group.
        const COPY_DEPTH: usize = 4;
        let limits = MetadataLimits { depth: limits.depth.saturating_add(COPY_DEPTH), ..*limits };
        let object = |text: &str| RawObject::parse(text.as_bytes(), &limits).ok();
        let is_v3 = document == ZARR_JSON;
        // The own document of a group of v3 is not among its copies.
        let mut changes = changes.iter().filter(|(_, path)| !(is_v3 && path.is_empty())).peekable();
        changes.peek()?;
        let mut group = RawObject::parse(text, &limits).ok()?;
        let mut inline = if is_v3 { Some(object(group.get(INLINE)?)?) } else { None };
        let mut copies = object(inline.as_ref().unwrap_or(&group).get(COPIES)?)?;
        let (mut is_changed, mut stored) = (false, Vec::new());
        for (change, path) in changes {
            match change {
                Self::Erased => {
                    is_changed |= copies.set_all(std::mem::take(&mut stored));
                    is_changed |= erase(&mut copies, path, is_v3);
                }
                Self::Stored(documents) => {
                    let of_format = documents.iter().filter(|(name, _)| is_v3 == (*name == ZARR_JSON));
                    stored.extend(of_format.filter_map(|(name, text)| {
                        let mut copy = object(text)?;
                        copy.retain(|name| name != INLINE);
                        let key = match (is_v3, path.as_str()) {
                            (true, path) => path.to_owned(),
                            (false, "") => (*name).to_owned(),
                            (false, path) => format!("{path}/{name}"),
                        };
                        Some((key, copy.to_text()))
                    }));
                }
            }
        }
        is_changed |= copies.set_all(stored);
        if !is_changed {
            return None;
        }
        match &mut inline {
            Some(inline) => {
                inline.set(COPIES, copies.to_text());
                group.set(INLINE, inline.to_text());
            }
            None => group.set(COPIES, copies.to_text()),
        }
        Some(group.to_text())
    }
}

/// Removes the copies of a node and of all below it. Returns whether there were any.
fn erase(copies: &mut RawObject, path: &str, is_v3: bool) -> bool {
    copies.retain(|key| {
        let is_below = path.is_empty() || key.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        !(is_below || is_v3 && key == path)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn applied(change: &CopyChange, document: &str, group: &Value, path: &str) -> Option<Value> {
        let changes = [(change.clone(), path.to_owned())];
        let text =
            CopyChange::apply(&changes, document, group.to_string().as_bytes(), &MetadataLimits::default())?;
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
    fn several_changes_are_one() {
        let stored = |number: u8| CopyChange::Stored(vec![(ZARR_JSON, json!({ "n": number }).to_string())]);
        let group = json!({"consolidated_metadata": {"metadata": {"a": {"n": 0}, "b": {"n": 0}}}});
        let changes = [
            (stored(1), "c".to_owned()),
            (stored(2), String::new()),
            (CopyChange::Erased, "a".to_owned()),
            (stored(3), "a/d".to_owned()),
            (stored(4), "c".to_owned()),
        ];
        let limits = MetadataLimits::default();
        let text = CopyChange::apply(&changes, ZARR_JSON, group.to_string().as_bytes(), &limits).unwrap();
        let found: Value = serde_json::from_str(&text).unwrap();
        let copies = &found["consolidated_metadata"]["metadata"];
        assert_eq!(*copies, json!({"b": {"n": 0}, "c": {"n": 4}, "a/d": {"n": 3}}));
    }

    #[test]
    fn copies_of_other_nodes_keep_their_text() {
        let group = br#"{"node_type":"group","consolidated_metadata":{"metadata":{"a":{"attributes":{"f":NaN,"g":1.50}}}}}"#;
        let new = CopyChange::Stored(vec![(ZARR_JSON, "{}".to_owned())]);
        let changes = [(new, "b".to_owned())];
        let text = CopyChange::apply(&changes, ZARR_JSON, group, &MetadataLimits::default()).unwrap();
        assert!(text.contains(r#""a": {"attributes":{"f":NaN,"g":1.50}}"#), "{text}");
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
