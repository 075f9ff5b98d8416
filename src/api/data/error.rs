//! [`ElementsError`]: why elements cannot be sent.

use crate::array::ArrayError;
use crate::error::{Classify, ErrorClass};
use crate::render::RenderError;

/// A failure to produce a response with elements.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ElementsError {
    /// The elements cannot be read.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The elements cannot be written in the requested format.
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
