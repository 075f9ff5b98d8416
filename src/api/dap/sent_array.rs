//! [`SentArray`]: one array of a response with values.

use crate::render::dataset::ElementEncoding;

/// One array of a response: what is selected of it, and how its elements are sent.
pub(super) struct SentArray {
    /// The number of selected indices of each dimension.
    pub(super) shape: Vec<u64>,
    /// `None` for texts.
    pub(super) encoding: Option<ElementEncoding>,
}
