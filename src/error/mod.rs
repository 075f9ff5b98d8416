//! Classes of failures, independent of any protocol.
//!
//! Every module has an error type of its own. Its [`Classify`] implementation gives the [`ErrorClass`] of each variant.
//! Only `http` maps classes to status codes.

mod class;
mod nearest;
mod setting_key;

pub use class::{Classify, ErrorClass, WriteEffect};
pub use nearest::{is_one_edit_from, nearest};
pub use setting_key::{setting_key, toml_key};
