//! [`ResultSchema`]: type, shape and names of the elements in a response.

use super::size::product;
use crate::chunk::AxisPositions;
use crate::metadata::DataType;

/// Type, shape and names of the elements in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultSchema {
    /// The type of the elements; never a subarray.
    pub data_type: DataType,
    /// Elements along each dimension.
    pub shape: Vec<u64>,
    /// The names of the dimensions, if the array has any.
    pub dimension_names: Option<Vec<Option<String>>>,
    /// What the header line of CSV is derived from; `None` for no header line.
    pub heading: Option<Heading>,
}

/// The names of the columns of a table whose elements are no structs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// The name of a single column: the array's.
    pub name: String,
    /// The indices of the columns, for two dimensions.
    pub columns: AxisPositions,
}

impl ResultSchema {
    /// The number of elements (saturated).
    pub(super) fn element_count(&self) -> u64 {
        product(&self.shape)
    }
}
