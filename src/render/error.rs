//! [`RenderError`]: why elements cannot be rendered.

use crate::error::{Classify, ErrorClass};
use crate::metadata::MetadataError;
use crate::units::counted;

/// Why elements cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The response could be longer than the limit.
    #[error("the response may have {bytes} bytes; the limit is {limit}")]
    TooLarge {
        /// The most bytes that the response may have (saturated).
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The format cannot represent elements of this type.
    #[error(
        "the requested format cannot represent elements of type {data_type}; request `format=bytes`, `format=json` or \
         `format=arrow`"
    )]
    UnsupportedType {
        /// The type.
        data_type: String,
    },
    /// The format has rows and columns, and the array has more dimensions.
    #[error(
        "csv has rows and columns: at most {} of such elements, and these have {rank}; select fewer with `slice`{}, request \
         `format=json` or `format=arrow`, or a row for each element with `coords=1`",
        counted(*.max, "dimension"),
        // Elements with fields are rows themselves.
        if *max < 2 { " or `fields`" } else { "" }
    )]
    Rank {
        /// The array's rank.
        rank: usize,
        /// The highest rank that the format can represent.
        max: usize,
    },
    /// The format is of an array with its coordinates, or of a group.
    #[error(
        "the requested format is a file of several arrays: request it of `/v1/data`, without reductions and `fields`"
    )]
    NotOneArray,
    /// numpy treats zeros at the end of a text as padding, so it would shorten this element.
    #[error(
        "an element ends in a zero, which numpy treats as padding; request `format=bytes` or `format=arrow`"
    )]
    TrailingZero,
    /// A text of variable length is not UTF-8.
    #[error("a text is not UTF-8")]
    NotUtf8,
    /// A date is outside the range of the format.
    #[error("day {day} after 1970-01-01 is outside the dates of the requested format; request `format=json`")]
    DateRange {
        /// Days after 1970-01-01.
        day: i64,
    },
    /// A number of steps is outside the times of the format.
    #[error("a time of {step} steps is outside the times of the requested format; request `format=json`")]
    StepRange {
        /// The steps.
        step: i64,
    },
    /// The request names fields, and the elements have none.
    #[error("elements of type {data_type} have no fields; omit `fields`")]
    NoFields {
        /// The type.
        data_type: String,
    },
    /// The elements cannot be cast to the type that the request names.
    #[error("elements of type {from} cannot be cast to {to}: `dtype` is for real numbers")]
    NoCast {
        /// The type of the elements.
        from: String,
        /// The requested type.
        to: String,
    },
    /// The request names a field that the struct does not have.
    #[error("there is no field `{name}`; there are: {known}")]
    UnknownField {
        /// The name in the request.
        name: String,
        /// The fields of the struct.
        known: String,
    },
    /// The requested fields cannot be combined into a struct.
    #[error("the requested fields: {0}")]
    Fields(#[from] MetadataError),
    /// The number of bytes does not match the shape.
    #[error("the number of elements does not match the shape")]
    ElementCount,
    /// The Arrow library rejected an array or a batch: a bug.
    #[error("the Arrow library rejected an array: {reason}")]
    ArrowFailed {
        /// Its message.
        reason: String,
    },
    /// The PNG library rejected a picture: a bug.
    #[error("the PNG library rejected a picture: {reason}")]
    PngFailed {
        /// Its message.
        reason: String,
    },
    /// A text holds a number that is not a Unicode scalar value.
    #[error("a text holds the number {number:#x}, which is not a Unicode scalar value")]
    NotText {
        /// The number.
        number: u32,
    },
}

impl Classify for RenderError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::TooLarge { .. } => ErrorClass::TooLarge,
            Self::UnsupportedType { .. }
            | Self::Rank { .. }
            | Self::TrailingZero
            | Self::NotOneArray
            | Self::DateRange { .. }
            | Self::StepRange { .. }
            | Self::NoFields { .. }
            | Self::NoCast { .. }
            | Self::UnknownField { .. }
            | Self::Fields(_) => ErrorClass::InvalidRequest,
            Self::ElementCount | Self::ArrowFailed { .. } | Self::PngFailed { .. } => ErrorClass::Internal,
            Self::NotText { .. } | Self::NotUtf8 => ErrorClass::CorruptData,
        }
    }
}
