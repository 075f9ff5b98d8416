//! [`Method`]: how the elements of a window become one, and which types each method is for.

use crate::error::{Classify, ErrorClass};
use crate::metadata::DataType;

/// How the elements of a window become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// The arithmetic mean.
    Mean,
    /// The most frequent value; the smallest of several.
    Mode,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The first element.
    Stride,
}

/// Why elements cannot be reduced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReduceError {
    /// The method is not defined for the type.
    #[error("`{method}` is not defined for elements of the type {data_type}; use one of: {known}", method = .method.name())]
    Undefined {
        /// The method.
        method: Method,
        /// The type's name.
        data_type: String,
        /// The methods for this type.
        known: String,
    },
    /// The attributes list more missing values than are compared.
    #[error(
        "the attributes list more missing values than the {limit} that are supported; `stride` compares none"
    )]
    MissingValues {
        /// How many are supported.
        limit: usize,
    },
}

impl Classify for ReduceError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Undefined { .. } => ErrorClass::InvalidRequest,
            Self::MissingValues { .. } => ErrorClass::Unsupported,
        }
    }
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 5] = [Self::Mean, Self::Mode, Self::Min, Self::Max, Self::Stride];

    /// The name in requests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Mode => "mode",
            Self::Min => "min",
            Self::Max => "max",
            Self::Stride => "stride",
        }
    }

    /// The method with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The method for a type, where a request names none. `is_categorical` is whether the elements are labels of things, not
    /// quantities.
    #[must_use]
    pub fn auto(data_type: &DataType, is_categorical: bool) -> Self {
        match Kind::of(data_type) {
            Kind::Bool => Self::Mode,
            Kind::Integer | Kind::Float if is_categorical => Self::Mode,
            Kind::Integer | Kind::Float | Kind::Complex => Self::Mean,
            Kind::Other => Self::Stride,
        }
    }

    /// Whether the method is defined for elements of a type.
    #[must_use]
    pub fn is_defined_for(self, data_type: &DataType) -> bool {
        match self {
            Self::Stride => true,
            Self::Mean => matches!(Kind::of(data_type), Kind::Integer | Kind::Float | Kind::Complex),
            Self::Mode | Self::Min | Self::Max => {
                matches!(Kind::of(data_type), Kind::Bool | Kind::Integer | Kind::Float)
            }
        }
    }

    /// Rejects a type that the method is not defined for.
    ///
    /// # Errors
    /// [`ReduceError::Undefined`].
    pub fn check(self, data_type: &DataType) -> Result<(), ReduceError> {
        if self.is_defined_for(data_type) {
            return Ok(());
        }
        let known = Self::ALL.into_iter().filter(|method| method.is_defined_for(data_type));
        let known: Vec<&str> = known.map(Self::name).collect();
        Err(ReduceError::Undefined { method: self, data_type: data_type.name(), known: known.join(", ") })
    }
}

/// The kinds of types, as far as methods differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Integer,
    Float,
    Complex,
    Other,
}

impl Kind {
    pub(super) fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Bool => Self::Bool,
            integer if integer.is_integer() => Self::Integer,
            DataType::Float16 | DataType::BFloat16 | DataType::Float32 | DataType::Float64 => Self::Float,
            DataType::ComplexFloat16
            | DataType::ComplexBFloat16
            | DataType::Complex64
            | DataType::Complex128 => Self::Complex,
            _ => Self::Other,
        }
    }
}
