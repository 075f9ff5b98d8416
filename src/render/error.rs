//! [`RenderError`]: why elements cannot be rendered.

use crate::error::{Classify, ErrorClass};
use crate::metadata::MetadataError;

/// Why elements cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The answer could be longer than the limit.
    #[error("the answer may have {bytes} bytes; the limit is {limit}")]
    TooLarge {
        /// The most bytes the answer may have (saturated).
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The format has no form for such elements.
    #[error(
        "the format asked for has no form for elements of type {data_type}; there are `bytes`, `json` and `arrow`"
    )]
    NoForm {
        /// The type.
        data_type: String,
    },
    /// The format has rows and columns, and the array more dimensions.
    #[error(
        "csv has rows and columns: at most {most} dimensions of such elements, and these have {rank}; select fewer with \
         `slice` or `fields`, or ask for `format=json` or `format=arrow`"
    )]
    Rank {
        /// The array's rank.
        rank: usize,
        /// The highest rank that has a form.
        most: usize,
    },
    /// numpy takes a zero at the end of a text for filling.
    #[error(
        "an element ends in a zero, which numpy takes for filling; ask for `format=bytes` or `format=arrow`"
    )]
    TrailingZero,
    /// A text of any length that is not UTF-8.
    #[error("a text is not UTF-8")]
    NotUtf8,
    /// A date that the format has no number for.
    #[error("day {day} after 1970-01-01 is beyond the dates of the format asked for; ask for `format=json`")]
    DateRange {
        /// The day.
        day: i64,
    },
    /// Fields are asked of elements that have none.
    #[error("elements of type {data_type} have no fields; leave `fields` out")]
    NoFields {
        /// The type.
        data_type: String,
    },
    /// A field is asked for that the struct has not.
    #[error("there is no field `{name}`; there are: {known}")]
    UnknownField {
        /// What was asked for.
        name: String,
        /// The fields there are.
        known: String,
    },
    /// The fields asked for are no struct together.
    #[error("the fields asked for: {0}")]
    Fields(#[from] MetadataError),
    /// The bytes given are not as many elements as the shape says.
    #[error("the bytes given are not the elements of the shape given")]
    ElementCount,
    /// An Arrow array could not be put together: a defect.
    #[error("an arrow array was refused: {reason}")]
    ArrowRefused {
        /// Why.
        reason: String,
    },
    /// An element that should be text holds a number that is no character of Unicode.
    #[error("a text holds the number {number:#x}, which is no character of Unicode")]
    NotText {
        /// The number.
        number: u32,
    },
}

impl Classify for RenderError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::TooLarge { .. } => ErrorClass::TooLarge,
            Self::NoForm { .. }
            | Self::Rank { .. }
            | Self::TrailingZero
            | Self::DateRange { .. }
            | Self::NoFields { .. }
            | Self::UnknownField { .. }
            | Self::Fields(_) => ErrorClass::InvalidRequest,
            Self::ElementCount | Self::ArrowRefused { .. } => ErrorClass::Internal,
            Self::NotText { .. } | Self::NotUtf8 => ErrorClass::CorruptData,
        }
    }
}
