//! Path resolution by the kernel: `openat2` of Linux, which never leads out of the root.
//!
//! On other systems there is no such call, and [`Root`](super::root::Root) walks the path itself.

use rustix::fs::OFlags;

/// Opens a directory, to read it.
pub(super) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

#[cfg(target_os = "linux")]
pub(super) use linux::{BENEATH, is_supported, not_reserved, open_beneath};
#[cfg(not(target_os = "linux"))]
pub(super) use unsupported::{is_supported, not_reserved, open_beneath};

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::{AsRawFd, OwnedFd};

    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2, readlinkat};
    use rustix::io::Errno;

    use crate::store::local::kernel::DIRECTORY;
    use crate::store::reserved_keys::is_reserved;

    /// How names are resolved: never out of the root.
    pub(in crate::store::local) const BENEATH: ResolveFlags =
        ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

    /// Whether the kernel has `openat2`, and no filter forbids it.
    pub(in crate::store::local) fn is_supported(root: &OwnedFd) -> bool {
        open_beneath(root, ".", DIRECTORY, false).is_ok()
    }

    /// Opens a path below the root; a link in it is `ELOOP` unless `follows_links`.
    pub(in crate::store::local) fn open_beneath(
        root: &OwnedFd,
        path: &str,
        flags: OFlags,
        follows_links: bool,
    ) -> Result<OwnedFd, Errno> {
        let how = if follows_links { BENEATH } else { BENEATH.union(ResolveFlags::NO_SYMLINKS) };
        openat2(root, path, flags, Mode::empty(), how)
    }

    /// The target of a link, unless it belongs to the store itself: callers may reach that as little as what is outside
    /// the root.
    pub(in crate::store::local) fn not_reserved(opened: OwnedFd) -> Result<OwnedFd, Errno> {
        let path = readlinkat(CWD, format!("/proc/self/fd/{}", opened.as_raw_fd()), Vec::new());
        let is_free = path.is_ok_and(|path| !is_reserved(&path.to_string_lossy()));
        if is_free { Ok(opened) } else { Err(Errno::XDEV) }
    }
}

#[cfg(not(target_os = "linux"))]
mod unsupported {
    use std::os::fd::OwnedFd;

    use rustix::fs::OFlags;
    use rustix::io::Errno;

    pub(in crate::store::local) fn is_supported(_root: &OwnedFd) -> bool {
        false
    }

    pub(in crate::store::local) fn open_beneath(
        _root: &OwnedFd,
        _path: &str,
        _flags: OFlags,
        _follows_links: bool,
    ) -> Result<OwnedFd, Errno> {
        Err(Errno::NOSYS)
    }

    pub(in crate::store::local) fn not_reserved(opened: OwnedFd) -> Result<OwnedFd, Errno> {
        Ok(opened)
    }
}
