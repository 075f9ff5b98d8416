//! [`ParseError`]: why a body is not the elements of a selection.

use crate::error::{Classify, ErrorClass};
use crate::units::counted;

/// Why a body is not the elements of a selection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The body is not a file of this format.
    #[error("the body is not {format}: {reason}")]
    Malformed {
        /// The format, with its article if it needs one.
        format: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The elements are of another type than the array's.
    #[error("the body has elements of type {given}, and the array of type {expected}; {advice}")]
    DataType {
        /// The type in the body.
        given: String,
        /// The type of the array.
        expected: String,
        /// What can be done.
        advice: &'static str,
    },
    /// The elements have another shape than the selection.
    #[error("the body has the shape {given:?}, and the selection {expected:?}")]
    Shape {
        /// The shape of the body.
        given: Vec<u64>,
        /// The shape of the selection.
        expected: Vec<u64>,
    },
    /// A list has another length than its dimension.
    #[error(
        "the list{} has {}, and dimension {} of the selection {expected}", at(.place), counted(*.given, "item"), place.len()
    )]
    ListLength {
        /// The indices of the list.
        place: Vec<u64>,
        /// How many items it has: this many, or more.
        given: u64,
        /// The length of the dimension.
        expected: u64,
    },
    /// There is something else where a list of elements must be.
    #[error("the lists of the body are not nested as the selection is: {0}")]
    Nesting(String),
    /// The body has another length than the elements.
    #[error("the body has {given}, and the elements of the selection have {expected} bytes in this format")]
    Length {
        /// The length of the body: a number of bytes, or a bound.
        given: String,
        /// The length of the elements.
        expected: u64,
    },
    /// The elements are in the order of Fortran.
    #[error("the elements are in Fortran order; send them in C order (`numpy.ascontiguousarray`)")]
    FortranOrder,
    /// An element is not one of its type.
    #[error("element {number} of the body, counted from 0, {reason}")]
    Element {
        /// Its number in C order.
        number: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// An element of a list is not one of its type.
    #[error("the element{} {reason}", at(.place))]
    ElementAt {
        /// Its indices.
        place: Vec<u64>,
        /// What is wrong with it.
        reason: String,
    },
    /// The elements of variable length are too long.
    #[error("the elements have more than {limit} bytes")]
    TooLong {
        /// Bytes allowed.
        limit: u64,
    },
    /// The format has no elements of the array's type.
    #[error(
        "{format} has no elements of type {data_type}; send `application/json` or `application/octet-stream`"
    )]
    Unsupported {
        /// The format.
        format: &'static str,
        /// The type of the array.
        data_type: String,
    },
}

impl ParseError {
    /// The stable name of the error in problem documents.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::DataType { .. } | Self::Unsupported { .. } => "data-type-mismatch",
            Self::Shape { .. } | Self::ListLength { .. } | Self::Nesting(_) | Self::Length { .. } => {
                "shape-mismatch"
            }
            Self::Malformed { .. }
            | Self::FortranOrder
            | Self::Element { .. }
            | Self::ElementAt { .. }
            | Self::TooLong { .. } => ErrorClass::InvalidRequest.as_str(),
        }
    }
}

/// The place of an element, for a message; that of the only one is empty.
fn at(place: &[u64]) -> String {
    if place.is_empty() { String::new() } else { format!(" at {place:?}") }
}

impl Classify for ParseError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::TooLong { .. } => ErrorClass::TooLarge,
            Self::Malformed { .. }
            | Self::DataType { .. }
            | Self::Shape { .. }
            | Self::ListLength { .. }
            | Self::Nesting(_)
            | Self::Length { .. }
            | Self::FortranOrder
            | Self::Element { .. }
            | Self::ElementAt { .. }
            | Self::Unsupported { .. } => ErrorClass::InvalidRequest,
        }
    }
}
