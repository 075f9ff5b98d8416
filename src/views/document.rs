//! [`DocumentRewriter`]: rewrites the documents of arrays for a view, alone and as copies in consolidated metadata
//! (Zarr core 3.1, "Metadata").
//!
//! A document without changes keeps its bytes. A changed one keeps the text of its numbers and the order of its
//! members. An invalid document is not changed: its reader reports the error.

use serde_json::Value;

use super::kind::ViewKind;
use super::placeholder::placeholder_metadata;
use super::plain;
use super::view_array::ChunkMapping;
use crate::chunk::ChunkGrid;
use crate::codec::{CodecChain, CodecLimits};
use crate::metadata::v3::V3Node;
use crate::metadata::{CodecMetadata, MetadataLimits, change_copies, parse_document, v3};

/// Rewrites documents for one kind of view.
#[derive(Clone, Copy, Debug)]
pub(super) struct DocumentRewriter {
    pub(super) kind: ViewKind,
    pub(super) metadata: MetadataLimits,
    pub(super) codec: CodecLimits,
}

impl DocumentRewriter {
    /// The rewritten text of a `zarr.json`; `None` if it stays unchanged.
    pub(super) fn rewrite(&self, document: &[u8]) -> Option<String> {
        self.rewrite_array(document)
            .or_else(|| change_copies(document, &self.metadata, |copy| self.rewrite_array(copy)))
    }

    /// The rewritten text of the rebased document of an array that another declares, whose chunks have this mapping.
    pub(super) fn rewrite_declared(&self, document: &str, mapping: Option<&ChunkMapping>) -> String {
        self.rewrite_with(document.as_bytes(), mapping).unwrap_or_else(|| document.to_owned())
    }

    fn rewrite_array(&self, document: &[u8]) -> Option<String> {
        // Chunks are found by the bound metadata, so binding and rewriting must use the same document.
        self.rewrite_with(document, self.chunk_mapping(document).as_ref())
    }

    fn rewrite_with(&self, document: &[u8], mapping: Option<&ChunkMapping>) -> Option<String> {
        let Ok(Value::Object(mut members)) = parse_document(document, &self.metadata) else { return None };
        if members.get("node_type").and_then(Value::as_str) != Some("array") {
            return None;
        }
        let normalized = plain::normalize_document(&mut members);
        let mapped = mapping.is_some_and(|mapping| mapping.apply(&mut members));
        (normalized || mapped).then(|| Value::Object(members).to_string())
    }

    fn chunk_mapping(&self, document: &[u8]) -> Option<ChunkMapping> {
        let Ok(V3Node::Array(metadata)) = v3::parse(document, &self.metadata) else { return None };
        let grid = ChunkGrid::new(&metadata.shape, &metadata.chunk_grid);
        let (data_type, fill_value) = (&metadata.data_type, &metadata.fill_value);
        let chunk_shape = grid.first_chunk_shape();
        let bind = |codecs: &[CodecMetadata]| {
            CodecChain::bind(codecs, data_type, &chunk_shape, fill_value, &self.codec)
        };
        let chain = bind(&metadata.codecs).or_else(|_| bind(&placeholder_metadata(&metadata).codecs)).ok()?;
        ChunkMapping::for_array(self.kind, &metadata, &grid, &chain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: ViewKind, document: &str) -> Option<String> {
        let changes =
            DocumentRewriter { kind, metadata: MetadataLimits::default(), codec: CodecLimits::default() };
        changes.rewrite(document.as_bytes())
    }

    const SHARDED: &str = r#"{"zarr_format":3,"node_type":"array","shape":[8,6],"data_type":"float64","x":{"must_understand":false},"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4,6]}},"chunk_key_encoding":{"name":"default","configuration":{"separator":"."}},"fill_value":1.50e1,"codecs":[{"name":"transpose","configuration":{"order":[1,0]}},{"name":"sharding_indexed","configuration":{"chunk_shape":[3,2],"codecs":[{"name":"bytes","configuration":{"endian":"big"}},{"name":"crc32c"}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}],"attributes":{"a":1.00,"codecs":["bytes"]}}"#;
    const UNSHARDED: &str = r#"{"zarr_format":3,"node_type":"array","shape":[8,6],"data_type":"float64","x":{"must_understand":false},"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,3]}},"chunk_key_encoding":{"name":"default","configuration":{"separator":"."}},"fill_value":1.50e+1,"codecs":[{"name":"transpose","configuration":{"order":[1,0]}},{"name":"bytes","configuration":{"endian":"big"}},{"name":"crc32c"}],"attributes":{"a":1.00,"codecs":["bytes"]}}"#;

    #[test]
    fn shows_a_sharded_array_with_the_grid_and_codecs_of_its_inner_chunks() {
        assert_eq!(shown(ViewKind::Unshard, SHARDED).as_deref(), Some(UNSHARDED));
        assert_eq!(shown(ViewKind::Plain, SHARDED), None);
    }

    #[test]
    fn keeps_documents_that_need_no_change() {
        for document in [
            UNSHARDED,
            "",
            "[]",
            "{",
            r#"{"zarr_format":3,"node_type":"group","attributes":{"codecs":["bytes"]}}"#,
            r#"{"zarr_format":3,"node_type":"group","consolidated_metadata":null}"#,
            r#"{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"inline","metadata":[]}}"#,
            r#"{"zarr_format":3,"node_type":"array","codecs":[]}"#,
        ] {
            assert_eq!(shown(ViewKind::Unshard, document), None, "{document}");
        }
        // A checksum of the whole shard cannot be verified on its parts.
        let with_checksum = SHARDED.replace("}}]}}],", "}}]}},{\"name\":\"crc32c\"}],");
        assert_ne!(with_checksum, SHARDED);
        assert_eq!(shown(ViewKind::Unshard, &with_checksum), None);
    }

    #[test]
    fn rewrites_copies_in_consolidated_metadata_like_the_documents() {
        let group = |copy: &str| {
            format!(
                r#"{{"zarr_format":3, "node_type":"group","consolidated_metadata": {{"kind":"inline","metadata":{{
                "a":{copy} , "g":{{"node_type":"group"}},"b" :{copy}}}, "must_understand":false}},"attributes":{{}} }}"#
            )
        };
        assert_eq!(shown(ViewKind::Unshard, &group(SHARDED)), Some(group(UNSHARDED)));
        assert_eq!(shown(ViewKind::Plain, &group(SHARDED)), None);
    }
}
