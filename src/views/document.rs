//! Documents as a view shows them: those of arrays, alone and as copies in consolidated metadata (Zarr core 3.1,
//! "Metadata").
//!
//! What a view has nothing to change of stays as it is, byte for byte; what it changes keeps its numbers' text and its
//! members' order. A document that cannot be used is not changed: what is wrong with it is for its reader to say.

use serde_json::Value;

use super::kind::ViewKind;
use super::placeholder::placeholder_metadata;
use super::plain;
use super::view_array::Shape;
use crate::chunk::ChunkGrid;
use crate::codec::{CodecChain, CodecLimits};
use crate::metadata::v3::V3Node;
use crate::metadata::{CodecMetadata, MetadataLimits, change_copies, parse_document, v3};

/// How documents are changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Changes {
    pub(super) kind: ViewKind,
    pub(super) metadata: MetadataLimits,
    pub(super) codec: CodecLimits,
}

impl Changes {
    /// What is shown in place of a `zarr.json`; `None` if that is shown as it is.
    pub(super) fn of(&self, document: &[u8]) -> Option<String> {
        self.of_array(document)
            .or_else(|| change_copies(document, &self.metadata, |copy| self.of_array(copy)))
    }

    /// What is shown of the rebased document of an array that another declares and whose chunks are shown so.
    pub(super) fn of_declared(&self, document: &str, shape: Option<&Shape>) -> String {
        self.changed(document.as_bytes(), shape).unwrap_or_else(|| document.to_owned())
    }

    fn of_array(&self, document: &[u8]) -> Option<String> {
        // What is bound is what chunks are found by, so both must go by the same document.
        self.changed(document, self.shape(document).as_ref())
    }

    fn changed(&self, document: &[u8], shape: Option<&Shape>) -> Option<String> {
        let Ok(Value::Object(mut members)) = parse_document(document, &self.metadata) else { return None };
        if members.get("node_type").and_then(Value::as_str) != Some("array") {
            return None;
        }
        let spelt = plain::spell_out(&mut members);
        let shaped = shape.is_some_and(|shape| shape.apply(&mut members));
        (spelt || shaped).then(|| Value::Object(members).to_string())
    }

    fn shape(&self, document: &[u8]) -> Option<Shape> {
        let Ok(V3Node::Array(metadata)) = v3::parse(document, &self.metadata) else { return None };
        let grid = ChunkGrid::new(&metadata.shape, &metadata.chunk_grid);
        let (data_type, fill_value) = (&metadata.data_type, &metadata.fill_value);
        let chunk_shape = grid.first_chunk_shape();
        let bind = |codecs: &[CodecMetadata]| {
            CodecChain::bind(codecs, data_type, &chunk_shape, fill_value, &self.codec)
        };
        let chain = bind(&metadata.codecs).or_else(|_| bind(&placeholder_metadata(&metadata).codecs)).ok()?;
        Shape::of(self.kind, &metadata, &grid, &chain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: ViewKind, document: &str) -> Option<String> {
        let changes = Changes { kind, metadata: MetadataLimits::default(), codec: CodecLimits::default() };
        changes.of(document.as_bytes())
    }

    const SHARDED: &str = r#"{"zarr_format":3,"node_type":"array","shape":[8,6],"data_type":"float64","x":{"must_understand":false},"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4,6]}},"chunk_key_encoding":{"name":"default","configuration":{"separator":"."}},"fill_value":1.50e1,"codecs":[{"name":"transpose","configuration":{"order":[1,0]}},{"name":"sharding_indexed","configuration":{"chunk_shape":[3,2],"codecs":[{"name":"bytes","configuration":{"endian":"big"}},{"name":"crc32c"}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}],"attributes":{"a":1.00,"codecs":["bytes"]}}"#;
    const UNSHARDED: &str = r#"{"zarr_format":3,"node_type":"array","shape":[8,6],"data_type":"float64","x":{"must_understand":false},"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,3]}},"chunk_key_encoding":{"name":"default","configuration":{"separator":"."}},"fill_value":1.50e+1,"codecs":[{"name":"transpose","configuration":{"order":[1,0]}},{"name":"bytes","configuration":{"endian":"big"}},{"name":"crc32c"}],"attributes":{"a":1.00,"codecs":["bytes"]}}"#;

    #[test]
    fn a_sharded_array_is_shown_with_the_grid_and_codecs_of_its_inner_chunks() {
        assert_eq!(shown(ViewKind::Unshard, SHARDED).as_deref(), Some(UNSHARDED));
        assert_eq!(shown(ViewKind::Plain, SHARDED), None);
    }

    #[test]
    fn documents_without_anything_to_change_are_shown_as_they_are() {
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
        // A checksum over the whole shard cannot be checked by its parts.
        let behind = SHARDED.replace("}}]}}],", "}}]}},{\"name\":\"crc32c\"}],");
        assert_ne!(behind, SHARDED);
        assert_eq!(shown(ViewKind::Unshard, &behind), None);
    }

    #[test]
    fn copies_in_consolidated_metadata_are_changed_as_the_documents_are() {
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
