//! Writing the model as a canonical `zarr.json` (Zarr core 3.1, "Metadata").
//!
//! The output is strict: codecs are objects with their v3 names and complete configurations, separators are explicit, and
//! no edge of a chunk is 0. Codecs without a v3 name keep the model's name.

use serde_json::{Map, Value, json};

use super::codec_spelling::spell_out_codecs;
use super::parser::ATTRIBUTES;
use super::{ArrayMetadata, Attributes, CodecMetadata, DataType, GroupMetadata};

impl ArrayMetadata {
    /// The array's `zarr.json`. An array read from v1 or v2 documents is converted to v3.
    #[must_use]
    pub fn to_document(&self) -> Value {
        complete(self.members(), &self.attributes)
    }

    /// The array's `zarr.json` as text. Does not parse the attributes.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.to_text_with(|_members| {})
    }

    /// As [`to_text`](Self::to_text), but `change` may modify all members except the attributes.
    #[must_use]
    pub fn to_text_with(&self, change: impl FnOnce(&mut Map<String, Value>)) -> String {
        let mut members = self.members();
        change(&mut members);
        written(&members, &self.attributes)
    }

    /// All members, with `null` in place of the attributes.
    fn members(&self) -> Map<String, Value> {
        let mut codecs: Value =
            self.codecs.iter().map(|codec| codec_document(codec, &self.data_type)).collect();
        spell_out_codecs(&mut codecs, self.shape.len(), Some(&self.data_type));
        let mut document = Map::new();
        document.insert("zarr_format".to_owned(), json!(3));
        document.insert("node_type".to_owned(), json!("array"));
        document.insert("shape".to_owned(), json!(self.shape));
        document.insert("data_type".to_owned(), self.data_type.to_metadata());
        document.insert("chunk_grid".to_owned(), self.chunk_grid.to_document());
        document.insert("chunk_key_encoding".to_owned(), self.chunk_key_encoding.to_document());
        document.insert("fill_value".to_owned(), self.fill_value.to_json(&self.data_type));
        document.insert("codecs".to_owned(), codecs);
        document.insert(ATTRIBUTES.to_owned(), Value::Null);
        if let Some(names) = &self.dimension_names {
            document.insert("dimension_names".to_owned(), json!(names));
        }
        document
    }
}

impl GroupMetadata {
    /// The group's `zarr.json`.
    #[must_use]
    pub fn to_document(&self) -> Value {
        complete(Self::members(), &self.attributes)
    }

    /// The group's `zarr.json` as text. Does not parse the attributes.
    #[must_use]
    pub fn to_text(&self) -> String {
        written(&Self::members(), &self.attributes)
    }

    fn members() -> Map<String, Value> {
        let members = [("zarr_format", json!(3)), ("node_type", json!("group")), (ATTRIBUTES, Value::Null)];
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// The text of the members, with the attributes inserted at their place.
fn written(members: &Map<String, Value>, attributes: &Attributes) -> String {
    let mut text = String::with_capacity(attributes.text().len() + 1024);
    for (name, value) in members {
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(&Value::from(name.as_str()).to_string());
        text.push(':');
        if name == ATTRIBUTES {
            text.push_str(attributes.text());
        } else {
            text.push_str(&value.to_string());
        }
    }
    text.push('}');
    text
}

fn complete(mut members: Map<String, Value>, attributes: &Attributes) -> Value {
    members.insert(ATTRIBUTES.to_owned(), Value::Object(Map::clone(&attributes.object())));
    Value::Object(members)
}

fn codec_document(codec: &CodecMetadata, data_type: &DataType) -> Value {
    let mut configuration = codec.configuration.clone();
    let name = match codec.name.as_str() {
        "zlib" => "numcodecs.zlib",
        "blosc" => {
            complete_blosc(&mut configuration, data_type);
            "blosc"
        }
        name => name,
    };
    let mut document = Map::new();
    document.insert("name".to_owned(), json!(name));
    // zarr-python rejects codecs of numcodecs without a configuration, so they get one even if it is empty.
    if !configuration.is_empty() || name.starts_with("numcodecs.") {
        document.insert("configuration".to_owned(), Value::Object(configuration));
    }
    if !codec.must_understand {
        document.insert("must_understand".to_owned(), json!(false));
    }
    Value::Object(document)
}

/// Converts a blosc configuration to v3: v2 gives the shuffle as a number, and no element size.
fn complete_blosc(configuration: &mut Map<String, Value>, data_type: &DataType) {
    /// The largest element size that fits a blosc header; larger elements count as bytes.
    const MAX_TYPESIZE: usize = 255;
    let shuffle = match configuration.get("shuffle").and_then(Value::as_i64) {
        Some(0) => "noshuffle",
        Some(1) => "shuffle",
        Some(2) => "bitshuffle",
        Some(-1) if data_type.element_bytes() == 1 => "bitshuffle",
        Some(-1) => "shuffle",
        _ => return,
    };
    configuration.insert("shuffle".to_owned(), json!(shuffle));
    let element_bytes = data_type.element_bytes();
    let typesize = if element_bytes > MAX_TYPESIZE { 1 } else { element_bytes };
    configuration.entry("typesize").or_insert_with(|| json!(typesize));
}

#[cfg(test)]
mod tests {
    use super::super::test_codecs::test_codec;
    use super::super::{MetadataLimits, v2, v3};
    use super::*;

    const ARRAY: &str = r#"{"zarr_format":3,"node_type":"array","shape":[10,0],"data_type":"float32","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[5,1]}},"chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},"fill_value":"NaN","codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"},{"name":"x.y","must_understand":false}],"attributes":{"a":1.50},"dimension_names":["y",null]}"#;

    #[test]
    fn a_canonical_document_is_written_unchanged() {
        let limits = MetadataLimits::default();
        let Ok(v3::V3Node::Array(array)) = v3::parse(ARRAY.as_bytes(), &limits) else { panic!("no array") };
        assert_eq!(array.to_document().to_string(), ARRAY);
        assert_eq!(array.to_text(), ARRAY);
        let group = r#"{"zarr_format":3,"node_type":"group","attributes":{"b":[],"a":1e400}}"#;
        let Ok(v3::V3Node::Group(node)) = v3::parse(group.as_bytes(), &limits) else { panic!("no group") };
        assert_eq!(node.to_document().to_string().replace("e+", "e"), group);
        assert_eq!(node.to_text(), node.to_document().to_string());
    }

    #[test]
    fn codecs_of_numcodecs_are_written_with_a_configuration_even_if_empty() {
        let zarray = json!({
            "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "|b1", "order": "C", "fill_value": null,
            "filters": [{"id": "packbits"}], "compressor": {"id": "crc32"},
        });
        let array =
            v2::parse_array(zarray.to_string().as_bytes(), None, test_codec, &MetadataLimits::default())
                .unwrap();
        assert_eq!(
            array.to_document()["codecs"],
            json!([
                {"name": "numcodecs.packbits", "configuration": {}},
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "numcodecs.crc32", "configuration": {}},
            ])
        );
    }

    #[test]
    fn a_v2_array_is_converted_to_v3() {
        let zarray = json!({
            "zarr_format": 2, "shape": [0, 4], "chunks": [0, 2], "dtype": ">i2", "order": "F", "fill_value": null,
            "filters": null, "dimension_separator": "/",
            "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0},
        });
        let array =
            v2::parse_array(zarray.to_string().as_bytes(), None, test_codec, &MetadataLimits::default())
                .unwrap();
        let document = array.to_document();
        assert_eq!(document["chunk_grid"]["configuration"], json!({"chunk_shape": [1, 2]}));
        assert_eq!(
            document["chunk_key_encoding"],
            json!({"name": "v2", "configuration": {"separator": "/"}})
        );
        assert_eq!(document["fill_value"], json!(0));
        let blosc = json!({"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0, "typesize": 2});
        assert_eq!(
            document["codecs"],
            json!([
                {"name": "transpose", "configuration": {"order": [1, 0]}},
                {"name": "bytes", "configuration": {"endian": "big"}},
                {"name": "blosc", "configuration": blosc},
            ])
        );
        assert!(matches!(
            v3::parse(document.to_string().as_bytes(), &MetadataLimits::default()),
            Ok(v3::V3Node::Array(_))
        ));
    }
}
