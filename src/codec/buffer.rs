//! Buffers whose allocation may fail without taking the process down.
//!
//! Every size that arrives here was computed at bind time or is the length of something already in memory.

use bytes::{Bytes, BytesMut};

use super::CodecError;
use crate::chunk::Runs;

/// An empty buffer with room for at least `bytes` bytes.
///
/// # Errors
/// [`CodecError::NoMemory`].
pub(super) fn reserved(bytes: u64) -> Result<Vec<u8>, CodecError> {
    let mut buffer = Vec::new();
    let room = usize::try_from(bytes).map_err(|_too_large| CodecError::NoMemory { bytes })?;
    buffer.try_reserve_exact(room).map_err(|_refused| CodecError::NoMemory { bytes })?;
    Ok(buffer)
}

/// A buffer of `bytes` zeros.
///
/// # Errors
/// [`CodecError::NoMemory`].
pub(super) fn zeroed(bytes: u64) -> Result<Vec<u8>, CodecError> {
    let mut buffer = reserved(bytes)?;
    // `reserved` has seen that the number fits.
    buffer.resize(usize::try_from(bytes).unwrap_or(0), 0);
    Ok(buffer)
}

/// A copy of `bytes`.
///
/// # Errors
/// [`CodecError::NoMemory`].
pub(super) fn copied(bytes: &[u8]) -> Result<Vec<u8>, CodecError> {
    let mut buffer = reserved(bytes.len() as u64)?;
    buffer.extend_from_slice(bytes);
    Ok(buffer)
}

/// A part of some bytes that does not keep the others in memory: one run after the other, of those that are there.
///
/// # Errors
/// [`CodecError::NoMemory`].
pub(super) fn cut(bytes: Bytes, part: &Runs) -> Result<Bytes, CodecError> {
    if part.bytes() == bytes.len() {
        return Ok(bytes);
    }
    let mut cut = reserved(part.bytes() as u64)?;
    for run in part.each() {
        cut.extend_from_slice(bytes.get(run).unwrap_or_default());
    }
    Ok(Bytes::from(cut))
}

/// `bytes` bytes of `element` after `element`.
///
/// # Errors
/// [`CodecError::NoMemory`].
pub(super) fn filled(element: &[u8], bytes: u64) -> Result<Vec<u8>, CodecError> {
    let Some((first, rest)) = element.split_first() else { return zeroed(bytes) };
    let mut buffer = reserved(bytes)?;
    let bytes = usize::try_from(bytes).unwrap_or(0);
    if rest.iter().all(|byte| byte == first) {
        buffer.resize(bytes, *first);
    } else {
        // Doubling what is there is as fast as copying gets.
        buffer.extend_from_slice(element.get(..bytes.min(element.len())).unwrap_or_default());
        while buffer.len() < bytes {
            let more = buffer.len().min(bytes - buffer.len());
            buffer.extend_from_within(..more);
        }
    }
    Ok(buffer)
}

/// Changes the bytes where they are if nobody else holds them, else a copy.
///
/// # Errors
/// [`CodecError::NoMemory`].
pub(super) fn in_place(bytes: Bytes, change: impl FnOnce(&mut [u8])) -> Result<Bytes, CodecError> {
    match bytes.try_into_mut() {
        Ok(mut own) => {
            change(&mut own);
            Ok(BytesMut::freeze(own))
        }
        Err(shared) => {
            let mut copy = copied(&shared)?;
            change(&mut copy);
            Ok(Bytes::from(copy))
        }
    }
}
