//! [`DefaultView`]: what a picture of a node shows unless a request says otherwise.

/// What a picture of a node shows unless a request says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultView {
    /// The selection, in the grammar of `slice`.
    pub slice: String,
    /// The dimensions of rows and columns, by name or else by number; `None` with fewer than two dimensions.
    pub axes: Option<[String; 2]>,
}
