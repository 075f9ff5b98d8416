//! [`ViewKind`]: which views there are.

/// What a view changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKind {
    /// What clients in use cannot open is shown as what they can.
    Plain,
    /// The same, and sharded arrays are shown as arrays of their inner chunks.
    Unshard,
}

impl ViewKind {
    /// The kind as a stable word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Unshard => "unshard",
        }
    }
}
