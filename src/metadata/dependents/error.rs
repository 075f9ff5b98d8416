//! [`DependentError`]: why a dependent array, or its primary, is invalid.

use crate::error::{Classify, ErrorClass};
use crate::metadata::{MetadataError, shortened};

/// Why an array of a family is invalid. The other arrays of the family are not affected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DependentError {
    /// The primary's document is not valid JSON.
    #[error("the primary's document cannot be read: {0}")]
    InvalidJson(MetadataError),
    /// The name is not a valid node name.
    #[error("`{name}` is not a valid name of an array: {reason}")]
    InvalidName {
        /// The name, shortened.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The declaration of a dependent is not an object.
    #[error("a dependent array must be declared by an object")]
    NotObject,
    /// A required member is in neither document.
    #[error("the member `{field}` is in neither document")]
    Incomplete {
        /// The member.
        field: &'static str,
    },
    /// A member is `null`, which strict parsing does not treat as absent.
    #[error("`{field}` is null")]
    NullField {
        /// The member.
        field: &'static str,
    },
    /// A member breaks the specification.
    #[error("`{field}`{}: {reason}", origin(*.inherited))]
    BadField {
        /// The member, as a path in the document.
        field: String,
        /// Why it is invalid.
        reason: String,
        /// Whether it is inherited from the primary.
        inherited: bool,
    },
    /// A member is for arrays of another rank.
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
    /// The fill value is not a value of the data type.
    #[error("`fill_value`{}: {reason}", origin(*.inherited))]
    FillValueMismatch {
        /// What is wrong with it.
        reason: String,
        /// Whether it is the primary's.
        inherited: bool,
    },
    /// An unknown member that must not be ignored.
    #[error("the member `{field}` is unknown and must be understood")]
    MustUnderstand {
        /// The member.
        field: String,
    },
    /// The chunk key encoding is invalid.
    #[error("`chunk_key_encoding`{}: {reason}", origin(*.inherited))]
    InvalidChunkKeyEncoding {
        /// What is wrong with it.
        reason: String,
        /// Whether it is the primary's.
        inherited: bool,
    },
    /// The codec `bytes` gives no byte order, but the data type needs one.
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
    /// Dependents are nested beyond the limit.
    #[error("dependent arrays are nested more than {limit} deep")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// The declaration exceeds the limits.
    #[error("there are more dependent arrays, or longer ones, than the limits allow")]
    TooMany,
}

fn origin(inherited: bool) -> &'static str {
    if inherited { " (of the primary)" } else { "" }
}

impl DependentError {
    /// The code as a stable name.
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

    /// The invalid member, if there is one, and whether it is inherited from the primary.
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

    /// Converts an error of the parser of documents. `inherited` is whether the member is inherited from the primary.
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
