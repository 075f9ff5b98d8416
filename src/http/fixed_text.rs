//! [`FixedText`]: marks a response whose text never changes while the process runs, so that it is encoded once.

/// Names the text of an answer that is the same for as long as the process lives: it is encoded once, and kept.
#[derive(Clone, Debug)]
pub(crate) struct FixedText(pub(crate) String);
