//! Chunk key encodings as documents give them: `default` and `v2` (Zarr core 3.1, "Chunk key encoding"), and the
//! extensions `prefix`, `suffix`, `zarrs.default_suffix`, `template` (once `generic`) and `fanout`.
//!
//! Prefixes and suffixes nest in any order, and come to a text before, a text behind, and the encoding between. What
//! could make a key that no store holds, or that is somebody else's document, is refused here, before there is any
//! key. How coordinates become one is the `chunk` room's business.

use serde_json::{Value, json};

use super::extension::Extension;
use super::key_template::{KeyTemplate, check_literal};
use super::{MetadataError, Separator};
use crate::key::StoreKey;

const MEMBER: &str = "chunk_key_encoding";
const SEPARATOR: &str = "separator";
const PREFIX: &str = "prefix";
const SUFFIX: &str = "suffix";
/// Both spellings are found in the extensions' own texts.
const BASES: [&str; 2] = ["base_encoding", "base-encoding"];
const MAX_CHILDREN: &str = "max_children";
/// Children of a prefix where `fanout` does not say.
const DEFAULT_CHILDREN: u64 = 1001;

/// Most prefixes and suffixes around an encoding.
const MOST_NESTED: usize = 4;

/// How a chunk's coordinates become a key below the node's prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkKeyEncodingMetadata {
    /// `c`, then each coordinate after a separator.
    Default(Separator),
    /// The coordinates joined by a separator; `0` for rank 0.
    V2(Separator),
    /// The same with a separator that the document does not give: `.` unless the chunks' keys say otherwise.
    V2Unspecified,
    /// What extensions make of keys.
    Extended(Box<ExtendedKeys>),
}

/// Keys with a text before and behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendedKeys {
    /// What every key begins with; may be empty.
    pub before: String,
    /// What stands between.
    pub core: KeyCore,
    /// What every key ends with; may be empty.
    pub after: String,
}

/// What coordinates become, without the texts around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyCore {
    /// As [`ChunkKeyEncodingMetadata::Default`].
    Default(Separator),
    /// As [`ChunkKeyEncodingMetadata::V2`].
    V2(Separator),
    /// Each coordinate as `d0`, `d1`, … and its digits to the base of one less than so many, every one a segment; then
    /// `c`. So no prefix has more children.
    Fanout {
        /// At least 4.
        max_children: u64,
    },
    /// A text with places for coordinates.
    Template(KeyTemplate),
}

/// An encoding, and whether the document had to be read kindly.
pub(super) struct Parsed {
    pub(super) encoding: ChunkKeyEncodingMetadata,
    /// A `suffix` with a member `prefix` and none `suffix` was read as a `prefix`.
    pub(super) has_suffix_with_prefix: bool,
}

impl ChunkKeyEncodingMetadata {
    /// Reads the member `chunk_key_encoding` of a v3 document, for an array of this rank.
    pub(super) fn from_v3(value: &Value, rank: usize) -> Result<Self, MetadataError> {
        parse(value, rank).map(|parsed| parsed.encoding)
    }

    /// The encoding as it stands in a v3 document, with its separator spelt out.
    #[must_use]
    pub fn to_document(&self) -> Value {
        match self {
            Self::Default(separator) => KeyCore::Default(*separator).to_document(),
            Self::V2(separator) => KeyCore::V2(*separator).to_document(),
            Self::V2Unspecified => KeyCore::V2(Separator::Dot).to_document(),
            Self::Extended(keys) => keys.to_document(),
        }
    }

    /// The same with its parts apart.
    #[must_use]
    pub fn to_extended(&self) -> ExtendedKeys {
        let plain = |core| ExtendedKeys { before: String::new(), core, after: String::new() };
        match self {
            Self::Default(separator) => plain(KeyCore::Default(*separator)),
            Self::V2(separator) => plain(KeyCore::V2(*separator)),
            Self::V2Unspecified => plain(KeyCore::V2(Separator::Dot)),
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

    /// A key as the coordinates 0 would make it, as far as its segments go.
    fn sample(&self) -> String {
        let core = match &self.core {
            // Whatever they make holds a letter or a digit in each segment.
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

/// Reads an encoding, for an array of this rank.
pub(super) fn parse(value: &Value, rank: usize) -> Result<Parsed, MetadataError> {
    let (mut before, mut after) = (String::new(), String::new());
    let mut has_suffix_with_prefix = false;
    let mut inner: Option<Value> = None;
    for _ in 0..=MOST_NESTED {
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
                before.push_str(&literal(&encoding, PREFIX)?);
                base(&encoding)?.ok_or_else(|| encoding.invalid("`base_encoding` is missing"))?.clone()
            }
            SUFFIX => {
                encoding.require_only(&[SUFFIX, BASES[0], BASES[1]])?;
                let suffix = literal(&encoding, SUFFIX)?;
                if suffix.ends_with('/') {
                    return Err(encoding.invalid("a key cannot end with `/`"));
                }
                after.insert_str(0, &suffix);
                // The extension's first text had a base of its own.
                base(&encoding)?.cloned().unwrap_or_else(|| json!("default"))
            }
            _ => {
                let (core, suffix) = core(&encoding, rank)?;
                after.insert_str(0, &suffix);
                let encoding = finished(before, core, after)?;
                return Ok(Parsed { encoding, has_suffix_with_prefix });
            }
        };
        inner = Some(base);
    }
    Err(MetadataError::invalid(MEMBER, format!("has more than {MOST_NESTED} encodings around another")))
}

/// The encoding inside of all others, and a suffix of its own.
fn core(encoding: &Extension, rank: usize) -> Result<(KeyCore, String), MetadataError> {
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
            return Ok((KeyCore::Default(separated(Separator::Slash)?), literal(encoding, SUFFIX)?));
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

/// The encoding of these parts, if its keys are such as stores hold.
fn finished(before: String, core: KeyCore, after: String) -> Result<ChunkKeyEncodingMetadata, MetadataError> {
    match (before.is_empty() && after.is_empty(), core) {
        (true, KeyCore::Default(separator)) => Ok(ChunkKeyEncodingMetadata::Default(separator)),
        (true, KeyCore::V2(separator)) => Ok(ChunkKeyEncodingMetadata::V2(separator)),
        (_, core) => {
            let keys = ExtendedKeys { before, core, after };
            match StoreKey::parse(&keys.sample()) {
                Ok(_) => Ok(ChunkKeyEncodingMetadata::Extended(Box::new(keys))),
                Err(error) => Err(MetadataError::invalid(MEMBER, format!("makes no keys: {error}"))),
            }
        }
    }
}

/// The encoding around which another stands; under one of two names, or the same under both.
fn base(encoding: &Extension) -> Result<Option<&Value>, MetadataError> {
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

/// A text that keys begin or end with.
fn literal(encoding: &Extension, member: &str) -> Result<String, MetadataError> {
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
    fn an_encoding_is_written_as_one_that_reads_as_the_same() {
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
    fn a_key_that_no_store_holds_is_refused_whatever_it_is_made_of() {
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
    fn four_encodings_may_stand_around_another_and_no_more() {
        let nested = |count: usize| (0..count).fold(json!("v2"), |base, _| prefix("a", &base));
        assert!(parsed(&nested(4), 1).is_ok());
        assert!(parsed(&nested(5), 1).is_err());
    }
}
