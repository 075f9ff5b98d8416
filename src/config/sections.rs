//! [`LimitOptions`] and [`LogOptions`]: limits of stored documents and chunks, and logs.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use serde::{Deserialize, Serialize};

use crate::codec::CodecLimits;
use crate::metadata::MetadataLimits;
use crate::units::size;

/// Limits of stored documents and chunks, which are all treated as hostile. What exceeds one is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitOptions {
    /// Size of a metadata document.
    #[serde(with = "size")]
    pub max_document_size: usize,
    /// Nesting of arrays and objects in a document.
    pub max_document_depth: usize,
    /// Dimensions of an array.
    pub max_rank: usize,
    /// Codecs in one chain: that of an array, of the inner chunks of a shard, or of its index. Those inside a conditional codec
    /// count as well. In v2, filters, compressor, byte order and order F count one each.
    pub max_codecs: usize,
    /// Size of consolidated metadata: as stored, or of the documents that it is generated from.
    #[serde(with = "size")]
    pub max_consolidated_size: usize,
    /// Nodes that are read to generate consolidated metadata.
    pub max_consolidated_nodes: usize,
    /// Size of a decoded chunk. In a shard only the inner chunks count, unless it must be decoded completely. A text of `vlen-utf8`
    /// counts its bytes and 12. With little memory it is less: `fetch.inflight_size`, and a fifth of the memory that all budgets leave.
    #[serde(with = "size")]
    pub max_chunk_size: u64,
    /// Inner chunks in a shard.
    pub max_shard_chunks: u64,
    /// Nesting of shards in shards.
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
    pub(super) fn first_error(&self) -> Option<(&'static str, String)> {
        let positive = |value: bool| value.then(|| "must be more than 0".to_owned());
        [
            ("max_document_size", positive(self.max_document_size == 0)),
            ("max_document_depth", positive(self.max_document_depth == 0)),
            ("max_rank", positive(self.max_rank == 0)),
            ("max_codecs", positive(self.max_codecs == 0)),
            ("max_chunk_size", positive(self.max_chunk_size == 0)),
            ("max_shard_chunks", positive(self.max_shard_chunks == 0)),
        ]
        .into_iter()
        .find_map(|(key, reason)| Some((key, reason?)))
    }

    /// The limits of the `metadata` module.
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

    /// The limits of the `codec` module.
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

/// The format of logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Lines of text for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Logs, on standard error.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogOptions {
    /// `"text"` for people, or `"json"` for one object per line.
    pub format: LogFormat,
    /// `"error"`, `"warn"`, `"info"`, `"debug"`, `"trace"` or `"off"`; or levels by module:
    /// `"warn,zarrd=info,zarrd::store=debug"`.
    pub level: String,
    /// File that the audit log is appended to, one JSON object per line: a line for each request that may change what is
    /// stored. Without it, these lines are among the others, with the target `zarrd::audit`.
    ///
    /// Example: `"/var/log/zarrd/audit.log"`.
    pub audit_file: Option<PathBuf>,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { format: LogFormat::Text, level: "info".to_owned(), audit_file: None }
    }
}

impl LogOptions {
    /// The first setting that is out of its range, and what is wrong with it.
    pub(super) fn first_error(&self) -> Option<(&'static str, String)> {
        const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
        let known = |level: &str| LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level));
        // A module without a level would enable all of its messages: most likely it is a mistyped level.
        let is_valid = |item: &str| match item.split_once('=') {
            Some((module, level)) => !module.is_empty() && known(level),
            None => known(item),
        };
        if !self.level.split(',').all(is_valid) {
            let levels = LEVELS.join(", ");
            let reason = format!("expected one of {levels}, or module=level pairs separated by commas");
            return Some(("level", reason));
        }
        let unusable = audit_file_error(self.audit_file.as_deref()?)?;
        Some(("audit_file", format!("the file cannot be opened: {unusable}")))
    }
}

/// Why lines could not be appended to a file. It is neither created nor opened: the reader of a pipe would take that for its end.
fn audit_file_error(path: &Path) -> Option<std::io::Error> {
    let checked = match std::fs::metadata(path) {
        Ok(about) if about.is_dir() => return Some(ErrorKind::IsADirectory.into()),
        Ok(_) => rustix::fs::access(path, Access::WRITE_OK),
        Err(error) if error.kind() == ErrorKind::NotFound && path.file_name().is_some() => {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            rustix::fs::access(directory.unwrap_or(Path::new(".")), Access::WRITE_OK | Access::EXEC_OK)
        }
        Err(error) => return Some(error),
    };
    checked.err().map(Into::into)
}
