//! The name that belongs to a store itself: no segment of a caller's key may be equal to it.
//!
//! Below it a store keeps its own files (a local store its staging area, a remote one the key that probes conditions).
//! They are never listed, read or written for a caller.

use super::StoreError;

/// The name.
pub(crate) const RESERVED: &str = ".zarr-server";

/// The name below which this server keeps records at a web server, which may be one of this kind and reserve [`RESERVED`] for itself.
pub(crate) const RECORDS: &str = ".zarr-server-records";

/// Whether a key, a prefix or a path has the reserved name as a segment, in any case: not every file system is
/// case-sensitive.
pub(crate) fn is_reserved(key: &str) -> bool {
    has_segment(key, RESERVED)
}

/// Whether a key, a prefix or a path has a name that begins with a dot as a segment, in any case.
pub(crate) fn has_segment(key: &str, name: &str) -> bool {
    // Most keys have no dot at all.
    key.contains('.') && key.split('/').any(|segment| segment.eq_ignore_ascii_case(name))
}

/// Rejects a write to such a key.
///
/// # Errors
/// [`StoreError::InvalidKey`].
pub(crate) fn check_not_reserved(key: &str) -> Result<(), StoreError> {
    if is_reserved(key) {
        return Err(StoreError::InvalidKey("`.zarr-server` belongs to the store itself"));
    }
    Ok(())
}
