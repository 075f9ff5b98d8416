//! Non-blocking reads: what the kernel has in memory is read on the async thread itself.
//!
//! To hand a read to a blocking thread costs more than to read a small value. So every read of the local store is made
//! twice at most, by one mechanism:
//!
//! 1. **Try.** A function `try_x` does what `x` does, as far as it needs no I/O. It opens names with `RESOLVE_CACHED` of
//!    `openat2`, which finds them in the kernel's memory alone, and reads bytes with `RWF_NOWAIT` of `preadv2`, which
//!    reads no disk. Whatever this cannot answer ends in "would block" ([`WouldBlock`](super::read::WouldBlock),
//!    [`TryOpen::WouldBlock`](super::root::TryOpen), or `None`): most failures, every symbolic link, values of medium length.
//! 2. **Fall back.** The caller then runs `x` on a blocking thread ([`Blocking::run`](super::blocking::Blocking::run)), from
//!    the beginning. A `try_x` keeps no state, so nothing has to be undone.
//!
//! Both share the decisions: what absence is and which bytes are of one version is decided in `root` and `read`. A
//! `try_x` never reports absence or a value that `x` would not. The pairs are [`head`](super::read::head) and
//! [`try_head`](super::read::try_head), [`start`](super::read::start) and [`try_start`](super::read::try_start),
//! `Root::open_file` and `Root::try_open_file`; `Root::try_stat` and `Root::try_is_absent` validate cached versions and
//! have no blocking form.
//!
//! Only file systems of this machine are tried, and no path across a mount point: on others even `fstat` may wait for
//! another machine or another program. This is for Linux; on other systems all reads go to a thread.

#[cfg(target_os = "linux")]
pub(super) use linux::{has_local_clock, open};
#[cfg(target_os = "linux")]
pub(crate) use linux::{is_supported, read};
#[cfg(not(target_os = "linux"))]
pub(super) use unsupported::{has_local_clock, open};
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupported::{is_supported, read};

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::IoSliceMut;
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::{Mode, OFlags, ResolveFlags, fstatfs, openat2};
    use rustix::io::{Errno, ReadWriteFlags, preadv2};

    use crate::store::local::kernel::BENEATH;

    const NONBLOCKING: ResolveFlags =
        BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::CACHED).union(ResolveFlags::NO_XDEV);

    /// By their numbers in `statfs(2)`: ext4, XFS, Btrfs, F2FS, tmpfs.
    const LOCAL_FILE_SYSTEMS: [i128; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];

    /// Whether a file, or files below a directory, can be opened and read without waiting for another machine or program.
    pub(crate) fn is_supported(file: &impl AsFd) -> bool {
        let kind = fstatfs(file).map(|about| i128::from(about.f_type));
        kind.is_ok_and(|kind| LOCAL_FILE_SYSTEMS.contains(&kind))
    }

    /// File systems that are not tried, but take their times from the clock of this machine: overlays (containers),
    /// ZFS.
    const WITH_LOCAL_CLOCK: [i128; 2] = [0x794c_7630, 0x2fc1_2fc1];

    /// Whether the times of files below a root are from the clock of this machine.
    pub(in crate::store::local) fn has_local_clock(root: &OwnedFd) -> bool {
        let kind = fstatfs(root).map(|about| i128::from(about.f_type));
        is_supported(root) || kind.is_ok_and(|kind| WITH_LOCAL_CLOCK.contains(&kind))
    }

    /// Opens a file whose name is in the kernel's memory, through no link; `EAGAIN` if it is not.
    pub(in crate::store::local) fn open(root: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        openat2(root, path, flags, Mode::empty(), NONBLOCKING)
    }

    /// Fills a buffer from an offset in a file; `false` if that would block, or if the file is too short.
    pub(crate) fn read(file: &File, bytes: &mut [u8], at: u64) -> bool {
        let length = bytes.len();
        let mut parts = [IoSliceMut::new(bytes)];
        matches!(preadv2(file, &mut parts, at, ReadWriteFlags::NOWAIT), Ok(read) if read == length)
    }
}

#[cfg(not(target_os = "linux"))]
mod unsupported {
    use std::fs::File;
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::OFlags;
    use rustix::io::Errno;

    pub(crate) fn is_supported(_file: &impl AsFd) -> bool {
        false
    }

    pub(in crate::store::local) fn has_local_clock(_root: &OwnedFd) -> bool {
        false
    }

    pub(in crate::store::local) fn open(
        _root: &OwnedFd,
        _path: &str,
        _flags: OFlags,
    ) -> Result<OwnedFd, Errno> {
        Err(Errno::NOSYS)
    }

    pub(crate) fn read(_file: &File, _bytes: &mut [u8], _at: u64) -> bool {
        false
    }
}
