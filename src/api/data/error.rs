//! [`ElementsError`]: why elements cannot be sent.

use crate::array::ArrayError;
use crate::error::{Classify, ErrorClass};
use crate::render::RenderError;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ElementsError {
    /// The elements cannot be had.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// They cannot be written in the format asked for.
    #[error(transparent)]
    Render(#[from] RenderError),
}

impl Classify for ElementsError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Array(error) => error.class(),
            Self::Render(error) => error.class(),
        }
    }
}
