//! Reading what the kernel has in memory, without waiting and so without a thread to wait on.
//!
//! To hand a read to another thread costs more than to read a small value. So names are tried with `RESOLVE_CACHED` of
//! `openat2`, which looks them up in memory alone, and bytes with `RWF_NOWAIT` of `preadv2`, which reads no disk. What
//! these cannot answer goes to a thread and begins there anew. Which links are followed, what absence is and which
//! bytes are of one version is decided by `root` and `read`, as for every other read.
//!
//! Only file systems of this machine are tried, and no way over a mount point: elsewhere a look at an open file may wait
//! for another machine or another program. This is for Linux; on other systems all reads go to a thread.

#[cfg(target_os = "linux")]
pub(super) use linux::{is_for, open, read};
#[cfg(not(target_os = "linux"))]
pub(super) use nowhere::{is_for, open, read};

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::IoSliceMut;
    use std::os::fd::OwnedFd;

    use rustix::fs::{Mode, OFlags, ResolveFlags, fstatfs, openat2};
    use rustix::io::{Errno, ReadWriteFlags, preadv2};

    use crate::store::local::Symlinks;
    use crate::store::local::root::kernel::policy;

    /// By their numbers in `statfs(2)`: ext4, XFS, Btrfs, F2FS, tmpfs.
    const OWN_FILE_SYSTEMS: [i128; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];

    /// Whether files below a root may be looked at where nobody should wait.
    pub(in crate::store::local) fn is_for(root: &OwnedFd) -> bool {
        let kind = fstatfs(root).map(|about| i128::from(about.f_type));
        kind.is_ok_and(|kind| OWN_FILE_SYSTEMS.contains(&kind))
    }

    /// Opens a file that is found without waiting.
    pub(in crate::store::local) fn open(
        root: &OwnedFd,
        path: &str,
        flags: OFlags,
        symlinks: Symlinks,
    ) -> Result<OwnedFd, Errno> {
        let how = policy(symlinks) | ResolveFlags::CACHED | ResolveFlags::NO_XDEV;
        openat2(root, path, flags, Mode::empty(), how)
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

    use crate::store::local::Symlinks;

    pub(in crate::store::local) fn is_for(_root: &OwnedFd) -> bool {
        false
    }

    pub(in crate::store::local) fn open(
        _root: &OwnedFd,
        _path: &str,
        _flags: OFlags,
        _symlinks: Symlinks,
    ) -> Result<OwnedFd, Errno> {
        Err(Errno::NOSYS)
    }

    pub(in crate::store::local) fn read(_file: &File, _bytes: &mut [u8], _at: u64) -> bool {
        false
    }
}
