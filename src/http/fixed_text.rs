//! [`FixedText`]: marks a response whose text never changes while the process runs, so that it is encoded once.

/// The name of a constant response text. Its content codings are cached under this name.
#[derive(Clone, Debug)]
pub(crate) struct FixedText(pub(crate) String);
