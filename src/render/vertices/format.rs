//! [`VertexFormat`]: the formats of vertices, with their names, media types and file extensions.

use crate::render::{arrow, json, length_prefixed};

/// A format of vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VertexFormat {
    /// One JSON object.
    Json,
    /// A stream of Arrow record batches.
    Arrow,
    /// One binary frame: a header in JSON, then the columns.
    Binary,
}

impl VertexFormat {
    /// All formats; the first is the default.
    pub const ALL: [Self; 3] = [Self::Json, Self::Arrow, Self::Binary];

    /// The value of the query parameter `format`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => json::FORMAT.name,
            Self::Arrow => arrow::FORMAT.name,
            Self::Binary => "bin",
        }
    }

    /// The format of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The media type, without parameters.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => json::FORMAT.media_type,
            Self::Arrow => arrow::FORMAT.media_type,
            Self::Binary => length_prefixed::FORMAT.media_type,
        }
    }

    /// The extension of a file in this format, without a dot.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Json => json::FORMAT.extension,
            Self::Arrow => arrow::FORMAT.extension,
            Self::Binary => length_prefixed::FORMAT.extension,
        }
    }
}
