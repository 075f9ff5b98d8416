//! [`Writer`]: what the writers of buffered formats have in common.

use super::RenderError;
use crate::chunk::Elements;

/// Writes the elements of one array, piece by piece, in a buffered format.
pub trait Writer: std::fmt::Debug + Send {
    /// Appends the next elements, in C order and canonical form. Any number of complete elements is allowed. The writer
    /// buffers elements that it cannot write yet.
    ///
    /// # Errors
    /// [`RenderError::ElementCount`] if there are more elements than the shape has, or the last is incomplete;
    /// [`RenderError::NotText`], [`RenderError::NotUtf8`], [`RenderError::TrailingZero`] or [`RenderError::DateRange`]
    /// if the format cannot represent an element.
    fn write(&mut self, elements: &Elements, out: &mut Vec<u8>) -> Result<(), RenderError>;

    /// Appends buffered elements and the end of the output.
    ///
    /// # Errors
    /// [`RenderError::ElementCount`] if elements are missing; [`RenderError::TooLarge`].
    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError>;
}
