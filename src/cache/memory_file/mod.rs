//! Bytes in a file in memory ([`FilePartWriter`]), which the kernel sends to a socket without copying them ([`send`]).
//!
//! Files on a disk are not sent this way, because other programs may write to them meanwhile. Nothing but this module can write to the
//! file in memory, and it writes each part once, before anything else gets it.

#[cfg(target_os = "linux")]
mod memfd;
#[cfg(not(target_os = "linux"))]
mod unsupported;

#[cfg(target_os = "linux")]
pub(super) use self::memfd::FilePartWriter;
#[cfg(target_os = "linux")]
pub(crate) use self::memfd::{first_sendable, send};
#[cfg(not(target_os = "linux"))]
pub(super) use self::unsupported::NoWriter as FilePartWriter;
#[cfg(not(target_os = "linux"))]
pub(crate) use self::unsupported::{first_sendable, send};
