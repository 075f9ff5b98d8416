//! [`MetadataError`]: why a metadata document is invalid or unsupported.

use crate::error::{Classify, ErrorClass};

/// Why a document is invalid or unsupported. The text names the member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// Larger than the limit.
    #[error("the document has {size} bytes; the limit is {limit}")]
    TooLarge {
        /// Bytes of the document.
        size: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// Not JSON, or nested too deeply.
    #[error("the document is not valid JSON: {0}")]
    Json(String),
    /// A member breaks the specification.
    #[error("`{member}`: {reason}")]
    Invalid {
        /// Where in the document, such as `codecs[1].configuration`.
        member: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Valid, but not implemented here.
    #[error("the {what} `{name}` is not supported")]
    Unsupported {
        /// What kind of extension it is, such as `data type`.
        what: &'static str,
        /// Its name.
        name: String,
    },
}

impl MetadataError {
    /// A member that breaks the specification.
    #[must_use]
    pub fn invalid(member: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid { member: shortened(member.into()), reason: shortened(reason.into()) }
    }

    /// A valid extension that is not implemented here.
    #[must_use]
    pub fn unsupported(what: &'static str, name: impl Into<String>) -> Self {
        Self::Unsupported { what, name: shortened(name.into()) }
    }
}

/// Truncates a text for an error, since a name in a document may be as long as the document.
pub(crate) fn shortened(mut text: String) -> String {
    const LONGEST_CHARS: usize = 200;
    if let Some((end, _)) = text.char_indices().nth(LONGEST_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

impl Classify for MetadataError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::TooLarge { .. } | Self::Json(_) | Self::Invalid { .. } => ErrorClass::InvalidMetadata,
            Self::Unsupported { .. } => ErrorClass::Unsupported,
        }
    }
}
