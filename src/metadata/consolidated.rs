//! Consolidated metadata: copies of the documents of all nodes below a group, in one document.
//!
//! In v2 a convention (`.zmetadata`); in v3 a member of the group's `zarr.json` (Zarr core 3.1, "Group metadata"). Copies
//! may be stale, so the parsers return only the names and kinds of nodes. They skip names that are not node names, and
//! accept members in any order.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use super::extension::into_object;
use super::json::{parse_attributes, parse_document};
use super::parser::visit_members;
use super::{MetadataError, MetadataLimits, NodeKind};
use crate::key::{NodePath, StoreKey, is_reserved_in_v3};

/// The member of a v3 group's document.
pub(super) const INLINE: &str = "consolidated_metadata";
/// Nesting levels between a document and the copies in it.
const COPY_DEPTH: usize = 4;

/// The nodes directly below a group, according to consolidated metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsolidatedChildren {
    /// The kinds of the first children, by name.
    pub children: BTreeMap<String, NodeKind>,
    /// Whether there are more children.
    pub truncated: bool,
}

impl ConsolidatedChildren {
    /// Adds a node if it is directly below the group.
    fn add(&mut self, path: &StoreKey, kind: NodeKind, below: &NodePath, max_children: usize) {
        let Some(name) = path.as_str().strip_prefix(below.prefix().as_str()) else { return };
        if name.contains('/') {
            return;
        }
        let known = self.children.entry(name.to_owned()).or_insert(kind);
        if kind == NodeKind::Array {
            *known = kind;
        }
        if self.children.len() > max_children {
            self.children.pop_last();
            self.truncated = true;
        }
    }
}

/// The first `max_children` nodes directly below `below`, which is relative to the group of this `.zmetadata`. `None` if the
/// document is not consolidated metadata.
///
/// # Errors
/// [`MetadataError::TooLarge`]; [`MetadataError::Json`] for text that is not JSON.
pub fn zmetadata_children(
    zmetadata: &[u8],
    below: &NodePath,
    max_children: usize,
    limits: &MetadataLimits,
) -> Result<Option<ConsolidatedChildren>, MetadataError> {
    check_size(zmetadata, limits)?;
    let depth = limits.depth.saturating_add(COPY_DEPTH);
    let [format, metadata] = find_members(zmetadata, depth, ["zarr_consolidated_format", "metadata"])?;
    let (Some(b"1"), Some(metadata)) = (format, metadata) else { return Ok(None) };
    let mut found = ConsolidatedChildren::default();
    visit_members(metadata, depth, |key, _| {
        let node = [("/.zarray", NodeKind::Array), ("/.zgroup", NodeKind::Group)]
            .into_iter()
            .find_map(|(document, kind)| Some((key.strip_suffix(document)?, kind)));
        if let Some((path, kind)) = node
            && let Ok(path) = StoreKey::parse(path)
        {
            found.add(&path, kind, below, max_children);
        }
        Ok(())
    })?;
    Ok(Some(found))
}

/// The first `max_children` nodes directly below `below`, which is relative to the group of this `zarr.json`. `None` if the
/// document holds no copies.
///
/// # Errors
/// As [`zmetadata_children`].
pub fn inline_children(
    zarr_json: &[u8],
    below: &NodePath,
    max_children: usize,
    limits: &MetadataLimits,
) -> Result<Option<ConsolidatedChildren>, MetadataError> {
    check_size(zarr_json, limits)?;
    let depth = limits.depth.saturating_add(COPY_DEPTH);
    let [Some(inline)] = find_members(zarr_json, depth, [INLINE])? else { return Ok(None) };
    if !inline.starts_with(b"{") {
        return Ok(None);
    }
    let [kind, metadata] = find_members(inline, depth, ["kind", "metadata"])?;
    let (Some(b"\"inline\""), Some(metadata)) = (kind, metadata) else { return Ok(None) };
    let mut found = ConsolidatedChildren::default();
    visit_members(metadata, depth, |key, span| {
        let node_type = metadata.get(span).map(|document| find_members(document, depth, ["node_type"]));
        let kind = match node_type {
            Some(Ok([Some(b"\"array\"")])) => NodeKind::Array,
            Some(Ok([Some(b"\"group\"")])) => NodeKind::Group,
            _ => return Ok(()),
        };
        if let Ok(path) = StoreKey::parse(&key)
            && !is_reserved_in_v3(path.name())
        {
            found.add(&path, kind, below, max_children);
        }
        Ok(())
    })?;
    Ok(Some(found))
}

/// A `zarr.json` with empty consolidated metadata, so that the copies do not count towards the document's length.
pub(super) fn without_copies<'a>(document: &'a [u8], limits: &MetadataLimits) -> Cow<'a, [u8]> {
    let mut copies: Vec<Range<usize>> = Vec::new();
    let visited = visit_members(document, limits.depth.saturating_add(COPY_DEPTH), |name, span| {
        if name == INLINE && document.get(span.start) == Some(&b'{') {
            copies.push(span);
        }
        Ok(())
    });
    let copied: usize = copies.iter().map(Range::len).sum();
    // The parser of the document reports its errors.
    if visited.is_err() || copies.is_empty() || document.len() - copied > limits.document_bytes {
        return Cow::Borrowed(document);
    }
    let mut rest = Vec::with_capacity(document.len() - copied + 2 * copies.len());
    let mut at = 0;
    for copy in copies {
        rest.extend_from_slice(document.get(at..copy.start).unwrap_or_default());
        rest.extend_from_slice(b"{}");
        at = copy.end;
    }
    rest.extend_from_slice(document.get(at..).unwrap_or_default());
    Cow::Owned(rest)
}

/// A `zarr.json` with some copies replaced and all else unchanged, byte for byte. `None` if `change` returns `None` for
/// every copy, or if the document cannot be parsed.
#[must_use]
pub fn change_copies(
    zarr_json: &[u8],
    limits: &MetadataLimits,
    mut change: impl FnMut(&[u8]) -> Option<String>,
) -> Option<String> {
    let depth = limits.depth.saturating_add(COPY_DEPTH);
    check_size(zarr_json, limits).ok()?;
    let inline = find_span(zarr_json, 0..zarr_json.len(), depth, INLINE)?;
    let copies = find_span(zarr_json, inline, depth, "metadata")?;
    let mut changed: Vec<(Range<usize>, String)> = Vec::new();
    let visited = visit_members(zarr_json.get(copies.clone())?, depth, |_, span| {
        let span = copies.start + span.start..copies.start + span.end;
        if let Some(copy) = zarr_json.get(span.clone()).and_then(&mut change) {
            changed.push((span, copy));
        }
        Ok(())
    });
    if visited.is_err() || changed.is_empty() {
        return None;
    }
    let (mut text, mut at) = (Vec::with_capacity(zarr_json.len()), 0);
    for (span, copy) in changed {
        text.extend_from_slice(zarr_json.get(at..span.start)?);
        text.extend_from_slice(copy.as_bytes());
        at = span.end;
    }
    text.extend_from_slice(zarr_json.get(at..)?);
    String::from_utf8(text).ok()
}

/// The byte range of a member's value in the object at `within`; the last one if the name is repeated.
fn find_span(text: &[u8], within: Range<usize>, depth: usize, name: &str) -> Option<Range<usize>> {
    let mut found = None;
    let visited = visit_members(text.get(within.clone())?, depth, |member, span| {
        if member == name {
            found = Some(within.start + span.start..within.start + span.end);
        }
        Ok(())
    });
    visited.ok().and(found)
}

/// A copy of a document for consolidated metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentCopy {
    /// Valid JSON, without nested consolidated metadata.
    pub text: String,
    /// For a `zarr.json`: its `node_type`.
    pub kind: Option<NodeKind>,
    /// Whether the document had consolidated metadata.
    pub is_consolidated: bool,
}

impl DocumentCopy {
    /// The copy of a `zarr.json`, `.zarray` or `.zgroup`. Numbers keep their text, members their order.
    ///
    /// # Errors
    /// Those of [`super::parse_document`]; [`MetadataError::Invalid`] if it is not an object.
    pub fn from_document(document: &[u8], limits: &MetadataLimits) -> Result<Self, MetadataError> {
        let mut members = into_object(parse_document(&without_copies(document, limits), limits)?)?;
        let kind = match members.get("node_type").and_then(Value::as_str) {
            Some("array") => Some(NodeKind::Array),
            Some("group") => Some(NodeKind::Group),
            _ => None,
        };
        let is_consolidated = members.shift_remove(INLINE).is_some_and(|copies| copies.is_object());
        Ok(Self { text: Value::Object(members).to_string(), kind, is_consolidated })
    }

    /// The copy of a `.zattrs`.
    ///
    /// # Errors
    /// Those of [`super::parse_attributes`].
    pub fn from_attributes(zattrs: &[u8], limits: &MetadataLimits) -> Result<Self, MetadataError> {
        let text = Value::Object(parse_attributes(zattrs, limits)?).to_string();
        Ok(Self { text, kind: None, is_consolidated: false })
    }
}

/// A `.zmetadata` with copies, by their keys relative to the group.
#[must_use]
pub fn to_zmetadata(copies: &BTreeMap<String, String>) -> String {
    let mut text = String::from(r#"{"zarr_consolidated_format":1,"metadata":"#);
    push_members(&mut text, copies);
    text.push('}');
    text
}

/// A group's `zarr.json` with inline copies, by the paths of their nodes relative to the group.
#[must_use]
pub fn to_inline(group: &DocumentCopy, copies: &BTreeMap<String, String>) -> String {
    let mut text = group.text.strip_suffix('}').unwrap_or(&group.text).to_owned();
    // A group's own document is never empty: it has at least `node_type`.
    text.push_str(r#","consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":"#);
    push_members(&mut text, copies);
    text.push_str("}}");
    text
}

/// Appends an object whose values are JSON text.
fn push_members(text: &mut String, members: &BTreeMap<String, String>) {
    let mut before = '{';
    for (name, value) in members {
        text.push(before);
        text.push_str(&Value::from(name.as_str()).to_string());
        text.push(':');
        text.push_str(value);
        before = ',';
    }
    if members.is_empty() {
        text.push('{');
    }
    text.push('}');
}

/// The texts of the values of some members; the last one if a name is repeated.
fn find_members<'a, const N: usize>(
    text: &'a [u8],
    depth: usize,
    names: [&str; N],
) -> Result<[Option<&'a [u8]>; N], MetadataError> {
    let mut found = [None; N];
    visit_members(text, depth, |name, span| {
        if let Some((_, value)) = names.iter().zip(&mut found).find(|(requested, _)| **requested == name) {
            *value = text.get(span);
        }
        Ok(())
    })?;
    Ok(found)
}

fn check_size(document: &[u8], limits: &MetadataLimits) -> Result<(), MetadataError> {
    if document.len() <= limits.consolidated_bytes {
        return Ok(());
    }
    Err(MetadataError::TooLarge { size: document.len() as u64, limit: limits.consolidated_bytes as u64 })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::v3;
    use super::*;

    fn limits() -> MetadataLimits {
        MetadataLimits::default()
    }

    fn names(found: &ConsolidatedChildren) -> Vec<(&str, &str)> {
        found.children.iter().map(|(name, kind)| (name.as_str(), kind.as_str())).collect()
    }

    fn zmetadata(metadata: &Value, below: &str, max_children: usize) -> ConsolidatedChildren {
        let document = json!({"zarr_consolidated_format": 1, "metadata": metadata}).to_string();
        let below = NodePath::parse(below).unwrap();
        zmetadata_children(document.as_bytes(), &below, max_children, &limits()).unwrap().unwrap()
    }

    fn inline(metadata: &Value, below: &str) -> ConsolidatedChildren {
        let document = json!({
            "consolidated_metadata": {"metadata": metadata, "must_understand": false, "kind": "inline"},
            "zarr_format": 3, "node_type": "group",
        });
        let below = NodePath::parse(below).unwrap();
        inline_children(document.to_string().as_bytes(), &below, 10, &limits()).unwrap().unwrap()
    }

    #[test]
    fn the_nodes_in_zmetadata_are_those_with_documents() {
        let metadata = json!({
            "b/.zattrs": {}, "b/c/.zarray": {"shape": NAN}, ".zgroup": {}, "b/.zgroup": {}, "a/.zarray": {},
            "d/.zattrs": {}, "e/f/.zarray": {}, "both/.zarray": {}, "both/.zgroup": {}, ".zattrs": {}, "x.zarray": {},
        });
        let expected = [("a", "array"), ("b", "group"), ("both", "array")];
        assert_eq!(names(&zmetadata(&metadata, "", 10)), expected);
        assert_eq!(names(&zmetadata(&metadata, "b", 10)), [("c", "array")]);
        assert_eq!(names(&zmetadata(&metadata, "a", 10)), []);
        let two = zmetadata(&metadata, "", 2);
        assert_eq!((names(&two), two.truncated), (vec![("a", "array"), ("b", "group")], true));
    }

    const NAN: &str = "NaN";

    #[test]
    fn the_nodes_in_inline_metadata_are_found_in_any_order_and_beside_nested_copies() {
        let metadata = json!({
            "g/a": {"node_type": "array", "consolidated_metadata": null},
            "z": {"node_type": "array"},
            "g": {"consolidated_metadata": {"kind": "inline", "metadata": {"q": {"node_type": "array"}}}, "node_type": "group"},
            "g/a/b": {"node_type": "group"}, "n": {"node_type": "table"}, "m": null, "k": {},
        });
        assert_eq!(names(&inline(&metadata, "")), [("g", "group"), ("z", "array")]);
        assert_eq!(names(&inline(&metadata, "g")), [("a", "array")]);
    }

    #[test]
    fn hostile_names_are_skipped() {
        let hostile = [
            "..",
            "../x",
            "a/../../x",
            "/etc",
            "a//b",
            ".",
            "a\0",
            "",
            "/",
            "a/",
            "__zarr",
            "x/__y",
            "a\\..\\b",
        ];
        let long = "n".repeat(2000);
        let hostile = hostile.iter().copied().chain([long.as_str()]);
        let v2: Value = hostile.clone().map(|name| (format!("{name}/.zarray"), json!({}))).collect();
        let v3: Value = hostile.map(|name| (name.to_owned(), json!({"node_type": "group"}))).collect();
        // A backslash has no special meaning.
        // Names with `__` are reserved in v3 alone.
        assert_eq!(names(&zmetadata(&v2, "", 10)), [("__zarr", "array"), ("a\\..\\b", "array")]);
        assert_eq!(names(&zmetadata(&v2, "x", 10)), [("__y", "array")]);
        assert_eq!(names(&inline(&v3, "")), [("a\\..\\b", "group")]);
        assert_eq!(names(&inline(&v3, "x")), []);
    }

    #[test]
    fn documents_without_copies_have_none_and_invalid_or_long_ones_are_errors() {
        let root = NodePath::root();
        for text in [
            "{}",
            r#"{"consolidated_metadata": null}"#,
            r#"{"consolidated_metadata": 1}"#,
            r#"{"consolidated_metadata": {}}"#,
            r#"{"consolidated_metadata": {"kind": "remote", "metadata": {}}}"#,
            r#"{"zarr_consolidated_format": 2, "metadata": {}}"#,
            r#"{"metadata": {}}"#,
        ] {
            assert_eq!(inline_children(text.as_bytes(), &root, 1, &limits()), Ok(None), "{text}");
            assert_eq!(zmetadata_children(text.as_bytes(), &root, 1, &limits()), Ok(None), "{text}");
        }
        for text in ["", "[]", "{", r#"{"zarr_consolidated_format": 1, "metadata": []}"#] {
            assert!(zmetadata_children(text.as_bytes(), &root, 1, &limits()).is_err(), "{text}");
        }
        let small = MetadataLimits { consolidated_bytes: 1, ..limits() };
        let large = Err(MetadataError::TooLarge { size: 2, limit: 1 });
        assert_eq!(zmetadata_children(b"{}", &root, 1, &small), large);
        assert_eq!(inline_children(b"{}", &root, 1, &small), large);
    }

    #[test]
    fn copies_do_not_count_towards_the_length_of_a_document() {
        let copies =
            json!({"kind": "inline", "metadata": {"a": {"node_type": "array", "x": "y".repeat(5000)}}});
        let document = json!({
            "zarr_format": 3, "consolidated_metadata": copies, "node_type": "group", "attributes": {"consolidated_metadata": {"b": 1}},
        });
        let small = MetadataLimits { document_bytes: 200, ..limits() };
        let Ok(v3::V3Node::Group(group)) = v3::parse(document.to_string().as_bytes(), &small) else {
            panic!("no group")
        };
        assert!(group.is_consolidated);
        assert_eq!(group.attributes.get("consolidated_metadata"), Some(json!({"b": 1})));
        let mut long = document;
        long["attributes"] = json!({"x": "y".repeat(300)});
        let parsed = v3::parse(long.to_string().as_bytes(), &small);
        assert!(matches!(parsed, Err(MetadataError::TooLarge { limit: 200, .. })), "{parsed:?}");
    }

    #[test]
    fn copies_are_valid_json_with_the_content_of_their_documents() {
        let document = r#"{"shape":[123456789012345678901234567890],"fill_value":NaN,"attributes":{"a":1.50,"a":2.50},
            "node_type":"group","consolidated_metadata":{"metadata":{}}}"#;
        let copy = DocumentCopy::from_document(document.as_bytes(), &limits()).unwrap();
        let expected = r#"{"shape":[123456789012345678901234567890],"fill_value":"NaN","attributes":{"a":2.50},"node_type":"group"}"#;
        assert_eq!((copy.text.as_str(), copy.kind), (expected, Some(NodeKind::Group)));
        assert!(copy.is_consolidated);
        let attributes = DocumentCopy::from_attributes(br#"{"b":[-Infinity],"b":NaN}"#, &limits()).unwrap();
        assert_eq!(attributes.text, r#"{"b":"NaN"}"#);
        assert!(DocumentCopy::from_document(b"[]", &limits()).is_err());
        assert!(DocumentCopy::from_attributes(b"{", &limits()).is_err());

        let copies: BTreeMap<String, String> = [("b/c", r#"{"x":1}"#), ("a\"\n", "{}")]
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into();
        assert_eq!(
            to_zmetadata(&copies),
            r#"{"zarr_consolidated_format":1,"metadata":{"a\"\n":{},"b/c":{"x":1}}}"#
        );
        assert_eq!(to_zmetadata(&BTreeMap::new()), r#"{"zarr_consolidated_format":1,"metadata":{}}"#);
        let result = to_inline(&attributes, &copies);
        let inline = r#"{"kind":"inline","must_understand":false,"metadata":{"a\"\n":{},"b/c":{"x":1}}}"#;
        assert_eq!(result, format!(r#"{{"b":"NaN","consolidated_metadata":{inline}}}"#));
    }

    #[test]
    fn repeated_consolidated_metadata_is_rejected() {
        let text =
            r#"{"zarr_format":3,"node_type":"group","consolidated_metadata":{},"consolidated_metadata":{}}"#;
        assert!(matches!(v3::parse(text.as_bytes(), &limits()), Err(MetadataError::Json(_))));
    }
}
