//! [`ViewKind`]: the kinds of views.

/// A kind of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKind {
    /// Rewrites documents that common clients cannot open.
    Plain,
    /// As `Plain`, and shows sharded arrays as arrays of their inner chunks.
    Unshard,
}

impl ViewKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Plain, Self::Unshard];

    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// A stable identifier of the kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Unshard => "unshard",
        }
    }
}
