//! Changes to the document of an array in the view without shards (Zarr codecs, "sharding-indexed").
//!
//! The codecs of the inner chunks replace the sharding codec, and the grid of inner chunks replaces that of shards.
//! Codecs before the sharding codec are transpositions only, and stay: an inner chunk has the same bytes whether the
//! shard was transposed before it was cut out or the chunk after. A shard with codecs after the sharding codec cannot
//! be read in parts, and stays unchanged.

use serde_json::{Map, Value, json};

use super::geometry::ChunkGeometry;

const SHARDING: &str = "sharding_indexed";

/// Removes the shards from a document. Returns whether there were any.
pub(super) fn unshard(document: &mut Map<String, Value>, geometry: &ChunkGeometry) -> bool {
    let (Some(chunk_shape), Some(Value::Array(codecs))) = (geometry.inner_shape(), document.get("codecs"))
    else {
        return false;
    };
    let Some(codecs) = without_shards(codecs, geometry.depth()) else { return false };
    document.insert("codecs".to_owned(), Value::Array(codecs));
    let grid = json!({ "name": "regular", "configuration": { "chunk_shape": chunk_shape } });
    document.insert("chunk_grid".to_owned(), grid);
    true
}

/// The codecs of an inner chunk at a depth of `depth` shards.
fn without_shards(codecs: &[Value], depth: usize) -> Option<Vec<Value>> {
    let Some(inner_depth) = depth.checked_sub(1) else { return Some(codecs.to_vec()) };
    let at = codecs.iter().position(|codec| name(codec) == Some(SHARDING))?;
    let inner = codecs.get(at)?.get("configuration")?.get("codecs")?.as_array()?;
    let mut flat = codecs.get(..at)?.to_vec();
    flat.extend(without_shards(inner, inner_depth)?);
    Some(flat)
}

fn name(codec: &Value) -> Option<&str> {
    codec.as_str().or_else(|| codec.get("name")?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_codecs_before_shards_at_every_depth() {
        let codecs = json!([
            {"name": "transpose", "configuration": {"order": [1, 0]}},
            {"name": "sharding_indexed", "configuration": {"codecs": ["a", {"name": "sharding_indexed", "configuration": {
                "codecs": ["b", "c"],
            }}]}},
        ]);
        let codecs = codecs.as_array().unwrap();
        let flat = |depth| without_shards(codecs, depth).map(|codecs| Value::Array(codecs).to_string());
        let transpose = r#"{"name":"transpose","configuration":{"order":[1,0]}}"#;
        let inner = r#"{"name":"sharding_indexed","configuration":{"codecs":["b","c"]}}"#;
        assert_eq!(flat(1), Some(format!(r#"[{transpose},"a",{inner}]"#)));
        assert_eq!(flat(2), Some(format!(r#"[{transpose},"a","b","c"]"#)));
        assert_eq!(flat(3), None);
    }
}
