//! Reading what the kernel has in memory, without waiting and so without a thread to wait on.
//!
//! To hand a read to another thread costs more than to read a small value. So names are tried with `RESOLVE_CACHED` of
//! `openat2`, which looks them up in memory alone, and bytes with `RWF_NOWAIT` of `preadv2`, which reads no disk. What
//! these cannot answer, and what is behind a link, goes to a thread and begins there anew. What absence is and which
//! bytes are of one version is decided by `root` and `read`, as for every other read.
//!
//! Only file systems of this machine are tried, and no way over a mount point: elsewhere a look at an open file may wait
//! for another machine or another program. This is for Linux; on other systems all reads go to a thread.

#[cfg(target_os = "linux")]
pub(super) use linux::{has_own_clock, is_for, open, read};
#[cfg(not(target_os = "linux"))]
pub(super) use nowhere::{has_own_clock, is_for, open, read};

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::IoSliceMut;
    use std::os::fd::OwnedFd;

    use rustix::fs::{Mode, OFlags, ResolveFlags, fstatfs, openat2};
    use rustix::io::{Errno, ReadWriteFlags, preadv2};

    use crate::store::local::kernel::BENEATH;

    const NONBLOCKING: ResolveFlags =
        BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::CACHED).union(ResolveFlags::NO_XDEV);

    /// By their numbers in `statfs(2)`: ext4, XFS, Btrfs, F2FS, tmpfs.
    const OWN_FILE_SYSTEMS: [i128; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];

    /// Whether files below a root may be looked at where nobody should wait.
    pub(in crate::store::local) fn is_for(root: &OwnedFd) -> bool {
        let kind = fstatfs(root).map(|about| i128::from(about.f_type));
        kind.is_ok_and(|kind| OWN_FILE_SYSTEMS.contains(&kind))
    }

    /// Of this machine as well, by its clock: overlays (containers), ZFS.
    const WITH_OWN_CLOCK: [i128; 2] = [0x794c_7630, 0x2fc1_2fc1];

    /// Whether the times of files below a root are from the clock of this machine.
    pub(in crate::store::local) fn has_own_clock(root: &OwnedFd) -> bool {
        let kind = fstatfs(root).map(|about| i128::from(about.f_type));
        is_for(root) || kind.is_ok_and(|kind| WITH_OWN_CLOCK.contains(&kind))
    }

    /// Opens a file that is found without waiting, and by no link.
    pub(in crate::store::local) fn open(root: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        openat2(root, path, flags, Mode::empty(), NONBLOCKING)
    }

    /// Fills a buffer from a place in a file; `false` if that takes waiting, or if there is not as much.
    pub(in crate::store::local) fn read(file: &File, bytes: &mut [u8], at: u64) -> bool {
        let length = bytes.len();
        let mut parts = [IoSliceMut::new(bytes)];
        matches!(preadv2(file, &mut parts, at, ReadWriteFlags::NOWAIT), Ok(read) if read == length)
    }
}

#[cfg(not(target_os = "linux"))]
mod nowhere {
    use std::fs::File;
    use std::os::fd::OwnedFd;

    use rustix::fs::OFlags;
    use rustix::io::Errno;

    pub(in crate::store::local) fn is_for(_root: &OwnedFd) -> bool {
        false
    }

    pub(in crate::store::local) fn has_own_clock(_root: &OwnedFd) -> bool {
        false
    }

    pub(in crate::store::local) fn open(
        _root: &OwnedFd,
        _path: &str,
        _flags: OFlags,
    ) -> Result<OwnedFd, Errno> {
        Err(Errno::NOSYS)
    }

    pub(in crate::store::local) fn read(_file: &File, _bytes: &mut [u8], _at: u64) -> bool {
        false
    }
}
