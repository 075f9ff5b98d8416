//! Store keys, store prefixes and node paths: types that hold only valid values.
//!
//! Zarr core 3.1, "Abstract store interface" (keys and prefixes) and "Node names" (paths). The parsers also reject what
//! no store can hold safely: empty, `.` and `..` segments, control characters, and keys too long for object stores. Keys
//! are compared byte for byte, without Unicode normalisation or case folding. Percent-decoding belongs to `http`, which
//! decodes a URL's segments exactly once.

mod check;
mod error;
mod last_segment;
mod node_path;
mod store_key;

pub use error::{KeyError, MAX_KEY_BYTES, MAX_KEY_SEGMENTS};
pub(crate) use last_segment::last_segment;
pub use node_path::NodePath;
pub(crate) use node_path::is_reserved_in_v3;
pub use store_key::{StoreKey, StorePrefix};
