//! What the view without shards changes in an array's document (Zarr codecs, "sharding-indexed").
//!
//! The sharding codec is replaced by the codecs of its inner chunks, and the grid by that of inner chunks. What stands
//! before it, which are transpositions only, stays: cut out of a transposed shard or transposed after it was cut out, an
//! inner chunk is the same bytes. Shards that something stands behind cannot be read in parts, and stay as they are.

use serde_json::{Map, Value, json};

use super::geometry::Geometry;

const SHARDING: &str = "sharding_indexed";

/// Takes the shards out of a document. Returns whether there were any.
pub(super) fn unshard(document: &mut Map<String, Value>, geometry: &Geometry) -> bool {
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

/// The codecs of an inner chunk that is so many shards deep.
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
    fn what_precedes_shards_stays_at_every_depth() {
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
