//! The small sections: limits of documents and codecs, and logs.

use serde::{Deserialize, Serialize};

use crate::codec::CodecLimits;
use crate::metadata::MetadataLimits;

/// What stored documents and chunks may claim before they are refused.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitOptions {
    /// Longest metadata document, in bytes.
    pub max_document_size: usize,
    /// Deepest nesting of JSON arrays and objects in one.
    pub max_document_depth: usize,
    /// Most dimensions of an array.
    pub max_rank: usize,
    /// Most codecs in one chain: that of an array, of inner chunks, of an index.
    pub max_codecs: usize,
    /// Longest consolidated metadata, read or made, in bytes.
    pub max_consolidated_size: usize,
    /// Most nodes that consolidated metadata is made of.
    pub max_consolidated_nodes: usize,
    /// Largest decoded chunk, in bytes.
    pub max_chunk_size: u64,
    /// Most inner chunks in a shard.
    pub max_shard_chunks: u64,
    /// Deepest nesting of shards in shards.
    pub max_sharding_depth: usize,
}

impl Default for LimitOptions {
    fn default() -> Self {
        let (metadata, codec) = (MetadataLimits::default(), CodecLimits::default());
        Self {
            max_document_size: metadata.document_bytes,
            max_document_depth: metadata.depth,
            max_rank: metadata.rank,
            max_codecs: metadata.codecs,
            max_consolidated_size: metadata.consolidated_bytes,
            max_consolidated_nodes: metadata.consolidated_nodes,
            max_chunk_size: codec.chunk_bytes,
            max_shard_chunks: codec.shard_chunks,
            max_sharding_depth: codec.sharding_depth,
        }
    }
}

impl LimitOptions {
    /// The first setting that is out of its range, and what is wrong with it.
    pub(super) fn complaint(&self) -> Option<(&'static str, String)> {
        let positive = |value: bool| value.then(|| "must be more than 0".to_owned());
        [
            ("document_bytes", positive(self.max_document_size == 0)),
            ("document_depth", positive(self.max_document_depth == 0)),
            ("rank", positive(self.max_rank == 0)),
            ("codecs", positive(self.max_codecs == 0)),
            ("chunk_bytes", positive(self.max_chunk_size == 0)),
            ("shard_chunks", positive(self.max_shard_chunks == 0)),
        ]
        .into_iter()
        .find_map(|(key, reason)| Some((key, reason?)))
    }

    /// The `metadata` room's share.
    #[must_use]
    pub fn metadata(&self) -> MetadataLimits {
        MetadataLimits {
            document_bytes: self.max_document_size,
            depth: self.max_document_depth,
            rank: self.max_rank,
            codecs: self.max_codecs,
            consolidated_bytes: self.max_consolidated_size,
            consolidated_nodes: self.max_consolidated_nodes,
        }
    }

    /// The `codec` room's share.
    #[must_use]
    pub fn codec(&self) -> CodecLimits {
        CodecLimits {
            chunk_bytes: self.max_chunk_size,
            shard_chunks: self.max_shard_chunks,
            sharding_depth: self.max_sharding_depth,
            codecs: self.max_codecs,
        }
    }
}

/// How logs are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Logs, on standard error.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogOptions {
    /// How they are written.
    pub format: LogFormat,
    /// What is written: a level, or `target=level` pairs with commas between.
    pub level: String,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { format: LogFormat::Text, level: "info".to_owned() }
    }
}

impl LogOptions {
    /// The first setting that is out of its range, and what is wrong with it.
    pub(super) fn complaint(&self) -> Option<(&'static str, String)> {
        const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
        let known = |level: &str| LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level));
        // A part without a level would silently mean "everything of this part": here it is a mistyped level.
        let fine = |item: &str| match item.split_once('=') {
            Some((part, level)) => !part.is_empty() && known(level),
            None => known(item),
        };
        (!self.level.split(',').all(fine)).then(|| {
            let reason =
                format!("expected one of {}, or part=level pairs with commas between", LEVELS.join(", "));
            ("level", reason)
        })
    }
}
