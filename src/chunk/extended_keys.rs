//! The keys of chunk key encodings that are extensions: prefixes and suffixes, templates, and `fanout` (Zarr extensions
//! "prefix", "suffix", "template" and "fanout").

use std::fmt::Write;

use super::joined_keys::{default_coords, push_default, push_v2, v2_coords};
use crate::metadata::{ExtendedKeys, KeyCore, KeyPart, KeyTemplate};

/// Appends the key of a chunk.
pub(super) fn push_key(key: &mut String, keys: &ExtendedKeys, coords: &[u64]) {
    key.push_str(&keys.before);
    match &keys.core {
        KeyCore::Default(separator) => push_default(key, *separator, coords),
        KeyCore::V2(separator) => push_v2(key, *separator, coords),
        KeyCore::Fanout { max_children } => push_fanout(key, *max_children, coords),
        KeyCore::Template(template) => push_template(key, template, coords),
    }
    key.push_str(&keys.after);
}

/// The coordinates of a key; `None` if it is not the key of a chunk, or could be the key of several.
pub(super) fn key_coords(key: &str, keys: &ExtendedKeys, rank: usize) -> Option<Vec<u64>> {
    let core = key.strip_prefix(&*keys.before)?.strip_suffix(&*keys.after)?;
    let (coords, mut canonical) = match &keys.core {
        KeyCore::Default(separator) => return default_coords(core, *separator, rank),
        KeyCore::V2(separator) => return v2_coords(core, *separator, rank),
        KeyCore::Fanout { max_children } => (fanout_coords(core, *max_children, rank)?, String::new()),
        KeyCore::Template(template) => (template_coords(core, template, rank)?, String::new()),
    };
    // Each key has one spelling: encoding the coordinates again must give the same key.
    push_key(&mut canonical, keys, &coords);
    (canonical == key).then_some(coords)
}

/// The base of the digits is one less than the children that a prefix may have, because `c` and the next `d` are children
/// too.
fn push_fanout(key: &mut String, max_children: u64, coords: &[u64]) {
    let base = max_children.saturating_sub(1).max(2);
    for (axis, &coord) in coords.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = write!(key, "d{axis}/");
        let (mut digits, mut rest) = (Vec::new(), coord);
        loop {
            digits.push(rest % base);
            rest /= base;
            if rest == 0 {
                break;
            }
        }
        for digit in digits.iter().rev() {
            let _ = write!(key, "{digit}/");
        }
    }
    key.push('c');
}

fn fanout_coords(core: &str, max_children: u64, rank: usize) -> Option<Vec<u64>> {
    let base = max_children.saturating_sub(1).max(2);
    let mut coords: Vec<u64> = Vec::with_capacity(rank);
    for segment in core.strip_suffix('c')?.split_terminator('/') {
        if segment.starts_with('d') {
            coords.push(0);
        } else {
            let digit: u64 = segment.parse().ok()?;
            let coord = coords.last_mut()?;
            *coord = coord.checked_mul(base)?.checked_add(digit)?;
        }
    }
    (coords.len() == rank).then_some(coords)
}

fn push_template(key: &mut String, template: &KeyTemplate, coords: &[u64]) {
    for part in template.parts() {
        match part {
            KeyPart::Literal(text) => key.push_str(text),
            KeyPart::Number { axis, digits } => {
                let coord = coords.get(*axis).copied().unwrap_or_default();
                // Writing to a String cannot fail.
                let _ = write!(key, "{coord:0digits$}");
            }
        }
    }
}

fn template_coords(core: &str, template: &KeyTemplate, rank: usize) -> Option<Vec<u64>> {
    if !template.is_unambiguous() {
        return None;
    }
    let (mut coords, mut rest) = (vec![0; rank], core);
    for part in template.parts() {
        match part {
            KeyPart::Literal(text) => rest = rest.strip_prefix(&**text)?,
            KeyPart::Number { axis, .. } => {
                let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                let (number, behind) = rest.split_at_checked(end)?;
                *coords.get_mut(*axis)? = number.parse().ok()?;
                rest = behind;
            }
        }
    }
    rest.is_empty().then_some(coords)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::{Value, json};

    use super::super::ChunkKeyEncoding;
    use crate::metadata::{MetadataError, MetadataLimits, v3};

    /// The encoding that an array's document of this rank has.
    fn encoding(value: &Value, rank: usize) -> Result<ChunkKeyEncoding, MetadataError> {
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": vec![1; rank], "data_type": "uint8", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": vec![1; rank]}},
            "chunk_key_encoding": value, "codecs": ["bytes"],
        });
        match v3::parse(document.to_string().as_bytes(), &MetadataLimits::default())? {
            v3::V3Node::Array(array) => Ok(ChunkKeyEncoding::new(array.chunk_key_encoding)),
            v3::V3Node::Group(_) => panic!("a group"),
        }
    }

    #[test]
    fn the_test_vectors_of_all_encodings_encode_and_decode() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/dependent/cke_vectors.json");
        let vectors: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(vectors.len(), 52);
        for vector in vectors {
            let coords: Vec<u64> =
                vector["index"].as_array().unwrap().iter().map(|index| index.as_u64().unwrap()).collect();
            let encoding = encoding(&vector["encoding"], coords.len());
            match vector["error"].as_str() {
                None => {
                    let encoding = encoding.unwrap();
                    let key = vector["key"].as_str().unwrap();
                    assert_eq!(encoding.encode(&coords), key, "{vector}");
                    assert_eq!(encoding.decode(key, coords.len()), Some(coords), "{vector}");
                }
                Some("unsupported_chunk_key_encoding") => {
                    assert!(matches!(encoding, Err(MetadataError::Unsupported { .. })), "{vector}");
                }
                Some(_) => assert!(matches!(encoding, Err(MetadataError::Invalid { .. })), "{vector}"),
            }
        }
    }

    #[test]
    fn other_spellings_of_a_key_are_rejected() {
        let template = json!({"name": "template", "configuration": {"format": "{0:02}-{1}"}});
        let suffixed = json!({"name": "zarrs.default_suffix", "configuration": {"suffix": "5"}});
        for (value, rank, good, bad) in [
            (&template, 2, "07-8", &["7-8", "007-8", "07-08", "07-", "07-8x", "-8", "07-+8"][..]),
            (
                &json!("fanout"),
                1,
                "d0/1/0/c",
                &["d0/0/1/c", "d1/1/0/c", "d0/1000/c", "d0/1/0/", "d0/c", "c"][..],
            ),
            (&suffixed, 1, "c/15", &["c/1", "c/5", "c/", "c/016", "c/015"][..]),
        ] {
            let encoding = encoding(value, rank).unwrap();
            assert!(encoding.decode(good, rank).is_some(), "{good}");
            for key in bad {
                assert_eq!(encoding.decode(key, rank), None, "{key}");
            }
        }
    }

    #[test]
    fn a_key_that_could_be_two_chunks_is_rejected() {
        let template = json!({"name": "template", "configuration": {"format": "{0}{1}"}});
        let encoding = encoding(&template, 2).unwrap();
        assert_eq!(encoding.encode(&[1, 23]), encoding.encode(&[12, 3]));
        assert_eq!(encoding.decode("123", 2), None);
    }

    fn encodings() -> impl Strategy<Value = Value> {
        let leaf = select(vec![
            json!("default"),
            json!({"name": "v2", "configuration": {"separator": "/"}}),
            json!({"name": "fanout", "configuration": {"max_children": 5}}),
            json!({"name": "template", "configuration": {"format": "x{-1}/{*:03}", "separator": "_"}}),
        ]);
        leaf.prop_recursive(4, 8, 1, |base| {
            (select(vec!["prefix", "suffix"]), "[a-z0-9./]{1,3}", base).prop_map(|(name, text, base)| {
                json!({"name": name, "configuration": {name: text, "base_encoding": base}})
            })
        })
    }

    proptest! {
        #[test]
        fn every_key_decodes_to_its_chunk(value in encodings(), coords in prop::collection::vec(0_u64.., 2..4)) {
            if let Ok(encoding) = encoding(&value, coords.len()) {
                let key = encoding.encode(&coords);
                prop_assert_eq!(encoding.decode(&key, coords.len()), Some(coords));
            }
        }

        #[test]
        fn any_key_that_decodes_encodes_to_itself(format in "[{}*0-9:/.c-]{0,12}", key in "[0-9c/.d]{0,12}") {
            let value = json!({"name": "template", "configuration": {"format": format, "separator": "/"}});
            for rank in 0..3 {
                let Ok(encoding) = encoding(&value, rank) else { continue };
                if let Some(coords) = encoding.decode(&key, rank) {
                    prop_assert_eq!(encoding.encode(&coords), key.clone());
                }
            }
        }
    }
}
