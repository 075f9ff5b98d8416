//! [`MountLookup`]: what authorization needs to know of mounts.

use crate::array::NodeOpener;

/// The mounts by name.
pub(crate) trait MountLookup {
    /// Opens the nodes of a mount; `None` if there is no such mount.
    fn opener(&self, mount: &str) -> Option<&NodeOpener>;

    /// Whether a mount has consolidated metadata derived for groups without it.
    fn is_consolidated(&self, mount: &str) -> bool;

    /// Whether a mount offers DELETE of a prefix.
    fn erases_prefixes(&self, mount: &str) -> bool;
}
