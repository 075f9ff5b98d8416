//! [`DependentError`]: why a dependent array, or the primary as one of its family, cannot be used.

use crate::error::{Classify, ErrorClass};
use crate::metadata::{MetadataError, shortened};

/// Why an array of a family cannot be used. One that cannot be used says nothing about the others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DependentError {
    /// The primary's document is no JSON.
    #[error("the primary's document cannot be read: {0}")]
    InvalidJson(MetadataError),
    /// The specification has no nodes of this name.
    #[error("no array can be called `{name}`: {reason}")]
    InvalidName {
        /// The name, shortened.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A dependent must be an object.
    #[error("a dependent array must be declared by an object")]
    NotObject,
    /// A member that neither document has.
    #[error("the member `{field}` is in neither document")]
    Incomplete {
        /// The member.
        field: &'static str,
    },
    /// A member is `null`, which a strict reader does not take for "without".
    #[error("`{field}` is null")]
    NullField {
        /// The member.
        field: &'static str,
    },
    /// A member breaks the specification.
    #[error("`{field}`{}: {reason}", origin(*.inherited))]
    BadField {
        /// Where in the document.
        field: String,
        /// What is wrong with it.
        reason: String,
        /// Whether it is the primary's.
        inherited: bool,
    },
    /// A member is made for arrays of another rank.
    #[error("`{field}`{} has rank {found}, and `shape` has rank {rank}", origin(*.inherited))]
    RankMismatch {
        /// The member.
        field: String,
        /// Its rank.
        found: usize,
        /// The array's.
        rank: usize,
        /// Whether it is the primary's.
        inherited: bool,
    },
    /// The fill value is no value of the data type.
    #[error("`fill_value`{}: {reason}", origin(*.inherited))]
    FillValueMismatch {
        /// What is wrong with it.
        reason: String,
        /// Whether it is the primary's.
        inherited: bool,
    },
    /// A member that this reader does not know and may not ignore.
    #[error("the member `{field}` is not known and must be understood")]
    MustUnderstand {
        /// The member.
        field: String,
    },
    /// The chunk key encoding breaks its rules.
    #[error("`chunk_key_encoding`{}: {reason}", origin(*.inherited))]
    InvalidChunkKeyEncoding {
        /// What is wrong with it.
        reason: String,
        /// Whether it is the primary's.
        inherited: bool,
    },
    /// `bytes` does not say its byte order, and the type has one.
    #[error("the codec `bytes` has no `endian`, which the data type needs")]
    BytesCodecWithoutEndian,
    /// Valid, but not implemented here.
    #[error("the {what} `{name}` is not supported")]
    Unsupported {
        /// What kind of extension it is, such as `data type`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// Dependents of dependents beyond the limit.
    #[error("dependent arrays are nested more than {limit} deep")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// The declaration is more than is looked at.
    #[error("there are more dependent arrays, or longer ones, than are looked at")]
    TooMany,
}

fn origin(inherited: bool) -> &'static str {
    if inherited { " (of the primary)" } else { "" }
}

impl DependentError {
    /// The code as a stable word.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidJson(_) => "invalid_json",
            Self::InvalidName { .. } => "invalid_name",
            Self::NotObject => "not_object",
            Self::Incomplete { .. } => "incomplete",
            Self::NullField { .. } => "null_field",
            Self::BadField { .. } => "bad_field",
            Self::RankMismatch { .. } => "rank_mismatch",
            Self::FillValueMismatch { .. } => "fill_value_mismatch",
            Self::MustUnderstand { .. } => "must_understand",
            Self::InvalidChunkKeyEncoding { .. } => "invalid_chunk_key_encoding",
            Self::BytesCodecWithoutEndian => "bytes_codec_without_endian",
            Self::Unsupported { what: "chunk key encoding", .. } => "unsupported_chunk_key_encoding",
            Self::Unsupported { what: "data type", .. } => "unsupported_data_type",
            Self::Unsupported { .. } => "unsupported",
            Self::TooDeep { .. } => "too_deep",
            Self::TooMany => "too_many",
        }
    }

    /// The member that it is about, if there is one, and whether that is the primary's.
    #[must_use]
    pub fn field(&self) -> Option<(&str, bool)> {
        match self {
            Self::Incomplete { field } | Self::NullField { field } => Some((field, false)),
            Self::BadField { field, inherited, .. } | Self::RankMismatch { field, inherited, .. } => {
                Some((field, *inherited))
            }
            Self::FillValueMismatch { inherited, .. } => Some(("fill_value", *inherited)),
            Self::InvalidChunkKeyEncoding { inherited, .. } => Some(("chunk_key_encoding", *inherited)),
            Self::MustUnderstand { field } => Some((field, false)),
            Self::BytesCodecWithoutEndian => Some(("codecs", false)),
            Self::InvalidJson(_)
            | Self::InvalidName { .. }
            | Self::NotObject
            | Self::Unsupported { .. }
            | Self::TooDeep { .. }
            | Self::TooMany => None,
        }
    }

    /// A member that breaks the specification.
    pub(super) fn bad_field(field: &str, reason: impl Into<String>, inherited: bool) -> Self {
        Self::BadField { field: shortened(field.to_owned()), reason: reason.into(), inherited }
    }

    /// What a whole document's reader says of a member, which is the primary's or not.
    pub(super) fn from_metadata_error(error: MetadataError, inherited: bool) -> Self {
        match error {
            MetadataError::Invalid { member, reason } => Self::BadField { field: member, reason, inherited },
            MetadataError::Unsupported { what, name } => Self::Unsupported { what, name },
            error @ (MetadataError::TooLarge { .. } | MetadataError::Json(_)) => Self::InvalidJson(error),
        }
    }
}

impl Classify for DependentError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::InvalidJson(_)
            | Self::InvalidName { .. }
            | Self::NotObject
            | Self::Incomplete { .. }
            | Self::NullField { .. }
            | Self::BadField { .. }
            | Self::RankMismatch { .. }
            | Self::FillValueMismatch { .. }
            | Self::MustUnderstand { .. }
            | Self::InvalidChunkKeyEncoding { .. }
            | Self::BytesCodecWithoutEndian
            | Self::TooDeep { .. }
            | Self::TooMany => ErrorClass::InvalidMetadata,
            Self::Unsupported { .. } => ErrorClass::Unsupported,
        }
    }
}
