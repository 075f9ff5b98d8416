//! [`DapError`]: why a constraint expression cannot be answered.

use crate::error::{Classify, ErrorClass};

/// Why a constraint expression cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DapError {
    /// The expression is no constraint.
    #[error(
        "`{part}` in the constraint is not a variable with a hyperslab, such as `air[0:1:9][2:4][7]`: start, stride and last \
         index"
    )]
    Syntax {
        /// The part, shortened.
        part: String,
    },
    /// Relations select from sequences.
    #[error(
        "`{part}`: relations select from sequences, and there are none; select with a hyperslab, such as `air[0:1:9]`"
    )]
    Relation {
        /// The part, shortened.
        part: String,
    },
    /// Server functions are not offered.
    #[error("`{part}`: there are no server functions")]
    Function {
        /// The part, shortened.
        part: String,
    },
    /// There is no such variable.
    #[error("there is no variable `{name}`; there is: {known}")]
    UnknownVariable {
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
    #[error(
        "`[{start}:{stride}:{last}]` of `{name}`: the dimension `{dimension}` has the indices 0 to {end}"
    )]
    OutOfRange {
        /// The variable.
        name: String,
        /// The dimension.
        dimension: String,
        /// The first index.
        start: u64,
        /// The distance of indices.
        stride: u64,
        /// The last index.
        last: u64,
        /// The last index that there is.
        end: u64,
    },
    /// A variable is selected twice, and not in the same way.
    #[error("`{name}` is selected twice, with different hyperslabs")]
    Twice {
        /// The variable.
        name: String,
    },
    /// The expression has more parts than any dataset.
    #[error("the constraint has more than {0} parts")]
    TooManyParts(usize),
}

impl Classify for DapError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Syntax { .. }
            | Self::Relation { .. }
            | Self::Function { .. }
            | Self::UnknownVariable { .. }
            | Self::Rank { .. }
            | Self::OutOfRange { .. }
            | Self::Twice { .. }
            | Self::TooManyParts(_) => ErrorClass::InvalidRequest,
        }
    }
}
