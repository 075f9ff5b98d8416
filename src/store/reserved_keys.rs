//! The names that belong to a store itself: no key of a caller's has one of them between its slashes.
//!
//! Below them a store keeps what it needs for its own work (a local store its staging area, a remote one the key it tries
//! conditions with). They are never listed, read or written for a caller.

use super::StoreError;

/// The name.
pub(crate) const RESERVED: &str = ".zarr-server";

/// Whether a key, a prefix or a path has a name of the store itself in it, in whatever case: not every file system
/// tells them apart.
pub(crate) fn is_reserved(key: &str) -> bool {
    // Most keys have no dot at all.
    key.contains('.') && key.split('/').any(|segment| segment.eq_ignore_ascii_case(RESERVED))
}

/// Refuses to write such a key.
///
/// # Errors
/// [`StoreError::InvalidKey`].
pub(crate) fn check_not_reserved(key: &str) -> Result<(), StoreError> {
    if is_reserved(key) {
        return Err(StoreError::InvalidKey("`.zarr-server` belongs to the store itself"));
    }
    Ok(())
}
