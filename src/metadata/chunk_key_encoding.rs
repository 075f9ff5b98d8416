//! Chunk key encodings in documents: `default` and `v2` (Zarr core 3.1, "Chunk key encoding"), and the extensions
//! `prefix`, `suffix`, `zarrs.default_suffix`, `template` (formerly `generic`) and `fanout`.
//!
//! Prefixes and suffixes nest in any order; they reduce to a text before, a text after, and a base encoding. The parser
//! rejects encodings whose keys would be invalid or would name a `zarr.json`. The module `chunk` encodes coordinates as
//! keys.

use serde_json::{Value, json};

use super::extension::Extension;
use super::key_template::{KeyTemplate, check_literal};
use super::{MetadataError, Separator};
use crate::key::StoreKey;

const MEMBER: &str = "chunk_key_encoding";
const SEPARATOR: &str = "separator";
const PREFIX: &str = "prefix";
const SUFFIX: &str = "suffix";
/// The extensions' texts use both spellings.
const BASES: [&str; 2] = ["base_encoding", "base-encoding"];
const MAX_CHILDREN: &str = "max_children";
/// The default of `max_children` in `fanout`.
const DEFAULT_CHILDREN: u64 = 1001;

/// Maximum number of prefixes and suffixes around an encoding.
const MAX_NESTED: usize = 4;

/// How a chunk's coordinates are encoded as a key below the node's prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkKeyEncodingMetadata {
    /// `c`, followed by each coordinate after a separator.
    Default(Separator),
    /// The coordinates joined by a separator; `0` for rank 0.
    V2(Separator),
    /// As [`V2`](Self::V2), but the document gives no separator: `.` unless stored keys show another.
    V2Unspecified,
    /// An encoding by extensions.
    Extended(Box<ExtendedKeys>),
}

/// A base encoding with a text before and a text after each key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendedKeys {
    /// The text at the start of every key; may be empty.
    pub before: String,
    /// The encoding between the texts.
    pub core: KeyCore,
    /// The text at the end of every key; may be empty.
    pub after: String,
}

/// A base encoding of coordinates, without the texts around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyCore {
    /// As [`ChunkKeyEncodingMetadata::Default`].
    Default(Separator),
    /// As [`ChunkKeyEncodingMetadata::V2`].
    V2(Separator),
    /// For each coordinate `d0`, `d1`, … and its digits to the base `max_children - 1`, each as a segment; then `c`. So no
    /// prefix has more than `max_children` children.
    Fanout {
        /// Maximum number of children of a prefix; at least 4.
        max_children: u64,
    },
    /// A text with placeholders for coordinates.
    Template(KeyTemplate),
}

/// An encoding, and whether it was parsed leniently.
pub(super) struct ParsedEncoding {
    pub(super) encoding: ChunkKeyEncodingMetadata,
    /// Whether a `suffix` with a member `prefix`, and without a member `suffix`, was parsed as a `prefix`.
    pub(super) has_suffix_with_prefix: bool,
}

impl ChunkKeyEncodingMetadata {
    /// Parses the member `chunk_key_encoding` of a v3 document, for an array of this rank.
    pub(super) fn from_v3(value: &Value, rank: usize) -> Result<Self, MetadataError> {
        parse(value, rank).map(|parsed| parsed.encoding)
    }

    /// The encoding as a member of a v3 document, with an explicit separator.
    #[must_use]
    pub fn to_document(&self) -> Value {
        match self {
            Self::Default(separator) => KeyCore::Default(*separator).to_document(),
            Self::V2(separator) => KeyCore::V2(*separator).to_document(),
            Self::V2Unspecified => KeyCore::V2(Separator::Dot).to_document(),
            Self::Extended(keys) => keys.to_document(),
        }
    }

    /// The encoding split into base and texts.
    #[must_use]
    pub fn to_extended(&self) -> ExtendedKeys {
        let without_texts = |core| ExtendedKeys { before: String::new(), core, after: String::new() };
        match self {
            Self::Default(separator) => without_texts(KeyCore::Default(*separator)),
            Self::V2(separator) => without_texts(KeyCore::V2(*separator)),
            Self::V2Unspecified => without_texts(KeyCore::V2(Separator::Dot)),
            Self::Extended(keys) => (**keys).clone(),
        }
    }
}

impl ExtendedKeys {
    fn to_document(&self) -> Value {
        let mut document = self.core.to_document();
        if !self.after.is_empty() {
            document = extension(SUFFIX, &json!({ SUFFIX: self.after, "base_encoding": document }));
        }
        if !self.before.is_empty() {
            document = extension(PREFIX, &json!({ PREFIX: self.before, "base_encoding": document }));
        }
        document
    }

    /// A sample key, for the coordinates 0. Its segments are valid exactly if those of all keys are.
    fn sample(&self) -> String {
        let core = match &self.core {
            // Each segment of their keys has a letter or a digit.
            KeyCore::Default(_) | KeyCore::V2(_) | KeyCore::Fanout { .. } => "0".to_owned(),
            KeyCore::Template(template) => template.sample(),
        };
        format!("{}{core}{}", self.before, self.after)
    }
}

impl KeyCore {
    fn to_document(&self) -> Value {
        let separated = |name, separator: &Separator| {
            extension(name, &json!({ SEPARATOR: separator.as_char().to_string() }))
        };
        match self {
            Self::Default(separator) => separated("default", separator),
            Self::V2(separator) => separated("v2", separator),
            Self::Fanout { max_children } => extension("fanout", &json!({ MAX_CHILDREN: max_children })),
            Self::Template(template) => extension("template", &template.to_document()),
        }
    }
}

fn extension(name: &str, configuration: &Value) -> Value {
    json!({ "name": name, "configuration": configuration })
}

/// Parses an encoding, for an array of this rank.
pub(super) fn parse(value: &Value, rank: usize) -> Result<ParsedEncoding, MetadataError> {
    let (mut before, mut after) = (String::new(), String::new());
    let mut has_suffix_with_prefix = false;
    let mut inner: Option<Value> = None;
    for _ in 0..=MAX_NESTED {
        let encoding = Extension::parse(inner.as_ref().unwrap_or(value), MEMBER)?;
        encoding.require_understood()?;
        let configuration = &encoding.configuration;
        let is_misnamed = encoding.name == SUFFIX
            && configuration.contains_key(PREFIX)
            && !configuration.contains_key(SUFFIX);
        has_suffix_with_prefix |= is_misnamed;
        let base = match encoding.name.as_str() {
            name if name == PREFIX || is_misnamed => {
                encoding.require_only(&[PREFIX, BASES[0], BASES[1]])?;
                before.push_str(&required_literal(&encoding, PREFIX)?);
                base_encoding(&encoding)?
                    .ok_or_else(|| encoding.invalid("`base_encoding` is missing"))?
                    .clone()
            }
            SUFFIX => {
                encoding.require_only(&[SUFFIX, BASES[0], BASES[1]])?;
                let suffix = required_literal(&encoding, SUFFIX)?;
                if suffix.ends_with('/') {
                    return Err(encoding.invalid("a key cannot end with `/`"));
                }
                after.insert_str(0, &suffix);
                // The first version of the extension had no `base_encoding`: its base was `default`.
                base_encoding(&encoding)?.cloned().unwrap_or_else(|| json!("default"))
            }
            _ => {
                let (core, suffix) = parse_core(&encoding, rank)?;
                after.insert_str(0, &suffix);
                let encoding = build_encoding(before, core, after)?;
                return Ok(ParsedEncoding { encoding, has_suffix_with_prefix });
            }
        };
        inner = Some(base);
    }
    Err(MetadataError::invalid(MEMBER, format!("has more than {MAX_NESTED} encodings around another")))
}

/// Parses the innermost encoding. Returns also the suffix that it has by itself.
fn parse_core(encoding: &Extension, rank: usize) -> Result<(KeyCore, String), MetadataError> {
    let separated = |default| Separator::parse(encoding.configuration.get(SEPARATOR), SEPARATOR, default);
    let core = match encoding.name.as_str() {
        "default" => {
            encoding.require_only(&[SEPARATOR])?;
            KeyCore::Default(separated(Separator::Slash)?)
        }
        "v2" => {
            encoding.require_only(&[SEPARATOR])?;
            KeyCore::V2(separated(Separator::Dot)?)
        }
        "zarrs.default_suffix" => {
            encoding.require_only(&[SEPARATOR, SUFFIX])?;
            return Ok((KeyCore::Default(separated(Separator::Slash)?), required_literal(encoding, SUFFIX)?));
        }
        "fanout" => {
            encoding.require_only(&[MAX_CHILDREN])?;
            KeyCore::Fanout { max_children: max_children(encoding)? }
        }
        "template" | "generic" => KeyCore::Template(KeyTemplate::parse(encoding, rank)?),
        name => return Err(MetadataError::unsupported("chunk key encoding", name)),
    };
    Ok((core, String::new()))
}

/// The encoding with these parts, if its keys are valid store keys.
fn build_encoding(
    before: String,
    core: KeyCore,
    after: String,
) -> Result<ChunkKeyEncodingMetadata, MetadataError> {
    match (before.is_empty() && after.is_empty(), core) {
        (true, KeyCore::Default(separator)) => Ok(ChunkKeyEncodingMetadata::Default(separator)),
        (true, KeyCore::V2(separator)) => Ok(ChunkKeyEncodingMetadata::V2(separator)),
        (_, core) => {
            let keys = ExtendedKeys { before, core, after };
            match StoreKey::parse(&keys.sample()) {
                Ok(_) => Ok(ChunkKeyEncodingMetadata::Extended(Box::new(keys))),
                Err(error) => Err(MetadataError::invalid(MEMBER, format!("gives invalid keys: {error}"))),
            }
        }
    }
}

/// The base of a `prefix` or `suffix`: under one of two names, or equal under both.
fn base_encoding(encoding: &Extension) -> Result<Option<&Value>, MetadataError> {
    match BASES.map(|member| encoding.configuration.get(member)) {
        [Some(one), Some(other)] if one != other => {
            Err(encoding.invalid("`base_encoding` and `base-encoding` differ"))
        }
        [one, other] => Ok(one.or(other)),
    }
}

fn max_children(encoding: &Extension) -> Result<u64, MetadataError> {
    match encoding.configuration.get(MAX_CHILDREN) {
        None => Ok(DEFAULT_CHILDREN),
        Some(value) => value
            .as_u64()
            .filter(|&children| children > 3)
            .ok_or_else(|| encoding.invalid("`max_children` must be an integer above 3")),
    }
}

/// The text of a `prefix` or `suffix`.
fn required_literal(encoding: &Extension, member: &str) -> Result<String, MetadataError> {
    let text = encoding.configuration.get(member).and_then(Value::as_str).unwrap_or_default();
    if text.is_empty() {
        return Err(encoding.invalid(&format!("`{member}` must be a string that is not empty")));
    }
    if member == PREFIX && text.starts_with('/') {
        return Err(encoding.invalid("a key cannot begin with `/`"));
    }
    check_literal(encoding, text)?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(value: &Value, rank: usize) -> Result<ChunkKeyEncodingMetadata, MetadataError> {
        ChunkKeyEncodingMetadata::from_v3(value, rank)
    }

    fn prefix(prefix: &str, base: &Value) -> Value {
        json!({ "name": "prefix", "configuration": { "prefix": prefix, "base_encoding": base } })
    }

    #[test]
    fn written_encodings_parse_to_the_same_encoding() {
        let suffix = json!({ "name": "suffix", "configuration": { "suffix": ".x", "base-encoding": "v2" } });
        for (value, rank) in [
            (json!("default"), 2),
            (json!({ "name": "v2", "configuration": { "separator": "/" } }), 2),
            (prefix("a/", &suffix), 2),
            (prefix("a/", &json!("fanout")), 2),
            (json!({ "name": "zarrs.default_suffix", "configuration": { "suffix": ".x" } }), 2),
            (
                json!({ "name": "template", "configuration": { "format": "{-1:03}{{{*}", "separator": "_" } }),
                3,
            ),
        ] {
            let encoding = parsed(&value, rank).unwrap();
            assert_eq!(parsed(&encoding.to_document(), rank), Ok(encoding), "{value}");
        }
    }

    #[test]
    fn encodings_of_invalid_keys_are_rejected() {
        for value in [
            prefix("a/", &prefix("./x", &json!("default"))),
            prefix("a/", &json!({ "name": "template", "configuration": { "format": "/{0}" } })),
            prefix("a\u{7}", &json!("default")),
            prefix(&"a".repeat(1025), &json!("default")),
            json!({ "name": "zarrs.default_suffix", "configuration": { "suffix": "x/" } }),
        ] {
            assert!(matches!(parsed(&value, 1), Err(MetadataError::Invalid { .. })), "{value}");
        }
        assert!(parsed(&prefix("a/", &prefix(".x", &json!("default"))), 1).is_ok());
    }

    #[test]
    fn four_nested_encodings_are_accepted_and_five_rejected() {
        let nested = |count: usize| (0..count).fold(json!("v2"), |base, _| prefix("a", &base));
        assert!(parsed(&nested(4), 1).is_ok());
        assert!(parsed(&nested(5), 1).is_err());
    }
}
