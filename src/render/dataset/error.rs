//! [`DatasetError`]: why variables cannot be written as a dataset of another format.

use crate::error::{Classify, ErrorClass};

/// Why variables cannot be written as a dataset of another format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatasetError {
    /// The format has no type for the elements.
    #[error(
        "`{variable}` has elements of type {data_type}, for which the format has none; request `format=npy` or `format=json`"
    )]
    UnsupportedType {
        /// The variable.
        variable: String,
        /// The type.
        data_type: String,
    },
    /// Variables do not fit in the classic format.
    #[error(
        "`format=nc3` has integers of 8, 16 and 32 bits with a sign, floats and text, and at most 4 GiB a variable; integers \
         of 64 bits and unsigned ones of 32 bits fit in arrays of at most one dimension, if their values do. These do not fit: {0}; request `format=nc`"
    )]
    NotClassic(String),
    /// Only one dimension of a NetCDF file can be empty, and it must be the first of its variables.
    #[error(
        "dimension `{0}` has no selected element; in a NetCDF file only the first dimension of a variable can be empty, and \
         only one: select at least one element of it"
    )]
    EmptyDimension(String),
    /// An integer cannot be written exactly.
    #[error("an integer of {0} bits cannot be written exactly as the type that the format has for it")]
    Inexact(u32),
    /// A text holds a number that is not a Unicode scalar value.
    #[error("a text holds the number {number:#x}, which is not a Unicode scalar value")]
    NotText {
        /// The number.
        number: u32,
    },
    /// The number of elements does not match the shape: a bug.
    #[error("the number of elements does not match the shape")]
    ElementCount,
}

impl Classify for DatasetError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::UnsupportedType { .. } | Self::NotClassic(_) | Self::EmptyDimension(_) => {
                ErrorClass::InvalidRequest
            }
            Self::Inexact(_) => ErrorClass::Unsupported,
            Self::NotText { .. } => ErrorClass::CorruptData,
            Self::ElementCount => ErrorClass::Internal,
        }
    }
}
