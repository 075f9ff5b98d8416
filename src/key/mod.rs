//! Store keys, store prefixes and node paths: parsed once, and valid ever after.
//!
//! Zarr core 3.1, "Abstract store interface" (keys and prefixes) and "Node names" (paths). Beyond the
//! specification's rules, what no store can hold safely is refused here, at the only door: empty, `.` and `..`
//! segments, control characters, and keys no object store accepts for their length. There is no Unicode
//! normalisation and no case folding: keys are compared byte for byte. Percent-decoding is not done here: it
//! belongs to `http`, which decodes a URL's segments exactly once.

mod check;
mod error;
mod node_path;
mod store_key;

pub use error::{KeyError, MAX_KEY_BYTES, MAX_KEY_SEGMENTS};
pub use node_path::NodePath;
pub(crate) use node_path::is_reserved_in_v3;
pub use store_key::{StoreKey, StorePrefix};
