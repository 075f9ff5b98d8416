//! [`MappedRange`]: a range of the file in memory as bytes of the process, in huge pages where the system has them.
//!
//! The kernel sends huge pages for half the processor time of pages of 4 KiB. It makes them only on request (`MADV_COLLAPSE`), and only
//! where address and offset are both multiples of their size, which no safe crate arranges.
#![expect(
    unsafe_code,
    reason = "memory is mapped by system calls; the file behind it is written before and never after"
)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};

/// The size of huge pages on most machines. Where they have another one, none are used.
pub(super) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A read-only map of a range of a file that does not change.
#[derive(Debug)]
pub(super) struct MappedRange {
    bytes: NonNull<[u8]>,
    /// What was reserved, in which the map lies.
    reserved: NonNull<[u8]>,
}

// SAFETY: it is memory that nothing writes to, and that is freed by its only owner.
unsafe impl Send for MappedRange {}
// SAFETY: as above.
unsafe impl Sync for MappedRange {}

impl MappedRange {
    /// Maps the bytes at a multiple of [`HUGE_PAGE_BYTES`].
    ///
    /// # Safety
    /// Until the map is dropped, the file has these bytes, and nothing writes to them.
    ///
    /// # Errors
    /// Those of `mmap`.
    pub(super) unsafe fn new(file: &OwnedFd, offset: u64, length: usize) -> io::Result<Self> {
        let offset = libc::off_t::try_from(offset).map_err(|_too_far| io::ErrorKind::FileTooLarge)?;
        let span = length.checked_add(HUGE_PAGE_BYTES).ok_or(io::ErrorKind::FileTooLarge)?;
        let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new map, at an address of the kernel's choice.
        let reserved = unsafe { libc::mmap(ptr::null_mut(), span, libc::PROT_NONE, anonymous, -1, 0) };
        let mut range = Self {
            bytes: NonNull::from(&mut [][..]),
            reserved: NonNull::slice_from_raw_parts(mapped(reserved)?, span),
        };
        let aligned = reserved.wrapping_byte_add(reserved.align_offset(HUGE_PAGE_BYTES));
        // Mapped pages are resident memory of the process, which is measured.
        let shared = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_POPULATE;
        // SAFETY: it replaces a part of what was reserved above, which nothing else uses: `length` bytes fit behind any address of its
        // first `HUGE_PAGE_BYTES`.
        let address =
            unsafe { libc::mmap(aligned, length, libc::PROT_READ, shared, file.as_raw_fd(), offset) };
        range.bytes = NonNull::slice_from_raw_parts(mapped(address)?, length);
        let huge = length - length % HUGE_PAGE_BYTES;
        if huge > 0 {
            // SAFETY: it changes no byte of the map. If it fails, the pages stay as they are.
            let _ = unsafe { libc::madvise(address, huge, libc::MADV_COLLAPSE) };
        }
        Ok(range)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        // SAFETY: the memory is mapped until `self` is dropped, and the caller of `new` has promised that nothing writes to it.
        unsafe { self.bytes.as_ref() }
    }
}

impl Drop for MappedRange {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `new`, and nothing refers to it any more. It fails only for addresses that are none.
        let _ = unsafe { libc::munmap(self.reserved.as_ptr().cast(), self.reserved.len()) };
    }
}

/// The address that `mmap` returned, or its error.
fn mapped(address: *mut libc::c_void) -> io::Result<NonNull<u8>> {
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}
