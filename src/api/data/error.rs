//! [`ElementsError`]: why elements cannot be sent.

use crate::array::ArrayError;
use crate::error::{Classify, ErrorClass};
use crate::render::RenderError;
use crate::store::BudgetExceeded;

/// A failure to produce a response with elements.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ElementsError {
    /// The elements cannot be read.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The elements cannot be written in the requested format.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// There is no memory for elements that are longer than most.
    #[error(transparent)]
    Budget(#[from] BudgetExceeded),
}

impl ElementsError {
    /// The limit in bytes that the elements exceed, if that is why they cannot be sent.
    pub(crate) fn exceeded_limit(&self) -> Option<u64> {
        match self {
            Self::Array(error) => error.exceeded_limit(),
            Self::Render(RenderError::TooLarge { limit, .. }) => Some(*limit),
            Self::Render(_) | Self::Budget(_) => None,
        }
    }
}

impl Classify for ElementsError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Array(error) => error.class(),
            Self::Render(error) => error.class(),
            Self::Budget(error) => error.class(),
        }
    }
}
