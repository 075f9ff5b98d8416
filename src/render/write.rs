//! [`Writer`]: what the writers of buffered formats have in common.

use super::RenderError;
use crate::chunk::Elements;

/// Writes the elements of one array, piece by piece, in a format whose length depends on the elements.
pub trait Writer: std::fmt::Debug + Send {
    /// Appends the next elements: whole ones, in C order and canonical form, of any number. What cannot be written yet is
    /// kept.
    ///
    /// # Errors
    /// [`RenderError::ElementCount`] if they are more than the shape has, or the last is not whole; otherwise where one of
    /// them has no form: [`RenderError::NotText`], [`RenderError::TrailingZero`], [`RenderError::DateRange`].
    fn write(&mut self, elements: &Elements, out: &mut Vec<u8>) -> Result<(), RenderError>;

    /// Appends what stands behind the last element, and whatever was kept.
    ///
    /// # Errors
    /// [`RenderError::ElementCount`] if elements are missing, [`RenderError::TooLarge`].
    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError>;
}
