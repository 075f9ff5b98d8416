//! What kind of failure something is, in words that no protocol owns.
//!
//! Every room has an error type of its own and says, through [`Classify`], which [`ErrorClass`] each variant is.
//! `http` turns the class into a status; nothing below it knows what a status is.

mod class;
mod nearest;

pub use class::{Classify, ErrorClass, Written};
pub use nearest::nearest;
