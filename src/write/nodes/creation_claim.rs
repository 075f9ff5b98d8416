//! [`CreationClaim`]: by which a creation notices at its end that values at its path may have been erased since it began.

/// How often the lease of a path was taken when a creation began there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreationClaim(Option<u64>);

impl CreationClaim {
    /// A claim at a path whose lease was taken so often; `None` if it never was.
    pub(super) fn new(epoch: Option<u64>) -> Self {
        Self(epoch)
    }

    /// Whether no other client has taken the lease since, which was taken for the end of the creation and has this number now.
    pub(super) fn is_next(self, epoch: Option<u64>) -> bool {
        epoch == self.0.map(|epoch| epoch.saturating_add(1))
    }
}
