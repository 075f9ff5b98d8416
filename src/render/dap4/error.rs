//! [`Dap4Error`]: why a constraint expression of DAP4 cannot be answered.

use crate::error::{Classify, ErrorClass};

/// Why a constraint expression of DAP4 cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Dap4Error {
    /// The expression is no constraint.
    #[error(
        "`{part}` in `dap4.ce` is not a variable with a hyperslab for each dimension, such as `/air[0:1:9][][7]`, nor a dimension \
         with one, such as `/time=[0:9]`"
    )]
    Syntax {
        /// The part, shortened.
        part: String,
    },
    /// Filters are not offered.
    #[error("`{part}` in `dap4.ce`: there are no filters; select with hyperslabs, such as `/air[0:1:9]`")]
    Filter {
        /// The part, shortened.
        part: String,
    },
    /// A parameter is unknown, or has another value than it may have.
    #[error("`{name}={value}`: there are `dap4.ce` and `dap4.checksum`, which is `true` or `false`")]
    Parameter {
        /// The name, shortened.
        name: String,
        /// The value, shortened.
        value: String,
    },
    /// There is no such variable.
    #[error("there is no variable `{name}`; there is: {known}")]
    UnknownVariable {
        /// The name, shortened.
        name: String,
        /// The first names that there are.
        known: String,
    },
    /// There is no such dimension.
    #[error("there is no dimension `{name}`; there is: {known}")]
    UnknownDimension {
        /// The name, shortened.
        name: String,
        /// The first names that there are.
        known: String,
    },
    /// The number of hyperslabs is not that of dimensions.
    #[error("`{name}` has {rank} dimensions, and {given} are selected")]
    Rank {
        /// The variable.
        name: String,
        /// Its dimensions.
        rank: usize,
        /// Hyperslabs of the expression.
        given: usize,
    },
    /// A hyperslab is outside of its dimension.
    #[error("`{slab}` of `{name}`: there are the indices 0 to {end}")]
    OutOfRange {
        /// The variable or the dimension.
        name: String,
        /// The hyperslab.
        slab: String,
        /// The last index that there is.
        end: u64,
    },
    /// A variable or a dimension is selected twice, and not in the same way.
    #[error("`{name}` is selected twice, with different hyperslabs")]
    Twice {
        /// The variable or the dimension.
        name: String,
    },
    /// The expression has more parts than any dataset.
    #[error("the constraint has more than {0} parts")]
    TooMany(usize),
}

impl Classify for Dap4Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Syntax { .. }
            | Self::Filter { .. }
            | Self::Parameter { .. }
            | Self::UnknownVariable { .. }
            | Self::UnknownDimension { .. }
            | Self::Rank { .. }
            | Self::OutOfRange { .. }
            | Self::Twice { .. }
            | Self::TooMany(_) => ErrorClass::InvalidRequest,
        }
    }
}
