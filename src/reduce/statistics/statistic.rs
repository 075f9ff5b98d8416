//! [`Statistic`]: one number about some elements.

use crate::metadata::DataType;
use crate::reduce::CfValues;

/// One number about some elements. Those but the first three are of the values that are neither missing nor NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statistic {
    /// How many values are neither missing nor NaN.
    Count,
    /// How many elements are missing.
    Missing,
    /// How many elements are NaN.
    Nan,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The arithmetic mean.
    Mean,
    /// The standard deviation of the values as a whole population.
    Std,
    /// The sum.
    Sum,
}

impl Statistic {
    /// All of them, in the order of documents.
    pub const ALL: [Self; 8] =
        [Self::Count, Self::Missing, Self::Nan, Self::Min, Self::Max, Self::Mean, Self::Std, Self::Sum];

    /// The name in requests and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Missing => "missing",
            Self::Nan => "nan",
            Self::Min => "min",
            Self::Max => "max",
            Self::Mean => "mean",
            Self::Std => "std",
            Self::Sum => "sum",
        }
    }

    /// The statistic with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|statistic| statistic.name() == name)
    }

    /// Whether there is none of no values.
    #[must_use]
    pub fn needs_values(self) -> bool {
        matches!(self, Self::Min | Self::Max)
    }

    /// The type of the statistic of elements of a type: that of the elements for extremes, integers of 64 bits for counts and
    /// for sums of integers, else float64.
    #[must_use]
    pub fn data_type(self, stored: &DataType, values: &CfValues) -> DataType {
        match self {
            Self::Count | Self::Missing | Self::Nan => DataType::UInt64,
            Self::Min | Self::Max => stored.clone(),
            Self::Sum if values.are_integers() && values.are_unsigned() => DataType::UInt64,
            Self::Sum if values.are_integers() => DataType::Int64,
            Self::Mean | Self::Std | Self::Sum => DataType::Float64,
        }
    }
}
