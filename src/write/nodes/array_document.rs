//! [`ArrayDocument`]: the main document of an array as it is stored now.

use std::sync::Arc;

use super::error::NodeWriteError;
use super::stored_document::StoredDocument;
use crate::array::OpenNode;
use crate::key::StoreKey;
use crate::metadata::{ArrayMetadata, ZarrFormat};
use crate::store::Version;

/// The main document of an array: `zarr.json`, or `.zarray`.
pub(in crate::write) struct ArrayDocument {
    pub(super) name: &'static str,
    pub(in crate::write) key: StoreKey,
    pub(super) stored: StoredDocument,
    pub(in crate::write) metadata: Arc<ArrayMetadata>,
}

impl ArrayDocument {
    /// The version that is stored.
    pub(super) fn version(&self) -> &Version {
        &self.stored.version
    }
}

/// Rejects nodes whose shape never changes.
pub(super) fn check_kind(opened: &OpenNode) -> Result<(), NodeWriteError> {
    if opened.dependent.is_some() {
        return Err(NodeWriteError::Unsupported("the array is declared by another array; change that one"));
    }
    if opened.node.zarr_format() == ZarrFormat::V1 {
        return Err(NodeWriteError::Unsupported("nodes of Zarr v1 are only read"));
    }
    Ok(())
}

/// The same document with other bytes: white space at its end spells the number of the takeover in two characters. Where a
/// version is a digest of the bytes, no document with another number has the same one.
pub(super) fn marked(text: &[u8], epoch: u64) -> String {
    let text = String::from_utf8_lossy(text.trim_ascii_end());
    let digits = (0..u64::BITS - epoch.leading_zeros()).rev();
    let spelled: String = digits.map(|bit| if epoch >> bit & 1 == 1 { '\t' } else { ' ' }).collect();
    format!("{text}\n{spelled}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_takeover_has_another_mark_and_the_same_document() {
        let document = br#"{"zarr_format": 3, "shape": [1]}"#;
        let mut text = String::from_utf8(document.to_vec()).unwrap();
        let mut seen = std::collections::HashSet::from([text.clone()]);
        for epoch in (1..200).chain([u64::MAX]) {
            text = marked(text.as_bytes(), epoch);
            assert!(seen.insert(text.clone()), "{epoch}");
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value, serde_json::from_slice::<serde_json::Value>(document).unwrap());
        }
    }
}
