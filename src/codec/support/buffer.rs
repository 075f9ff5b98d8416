//! Buffers whose allocation may fail without taking the process down.
//!
//! Every size that arrives here was computed at bind time or is the length of something already in memory.

use bytes::{Bytes, BytesMut};

use crate::chunk::Runs;
use crate::codec::CodecError;

/// An empty buffer with capacity for at least `bytes` bytes.
///
/// # Errors
/// [`CodecError::NoMemory`].
pub(crate) fn with_capacity(bytes: u64) -> Result<Vec<u8>, CodecError> {
    let mut buffer = Vec::new();
    let capacity = usize::try_from(bytes).map_err(|_too_large| CodecError::NoMemory { bytes })?;
    buffer.try_reserve_exact(capacity).map_err(|_refused| CodecError::NoMemory { bytes })?;
    Ok(buffer)
}

/// A buffer of `bytes` zeros.
///
/// # Errors
/// [`CodecError::NoMemory`].
pub(crate) fn zeroed(bytes: u64) -> Result<Vec<u8>, CodecError> {
    let mut buffer = with_capacity(bytes)?;
    // `with_capacity` has checked that the number fits.
    buffer.resize(usize::try_from(bytes).unwrap_or(0), 0);
    Ok(buffer)
}

/// A copy of `bytes`.
///
/// # Errors
/// [`CodecError::NoMemory`].
pub(crate) fn copy_of(bytes: &[u8]) -> Result<Vec<u8>, CodecError> {
    let mut buffer = with_capacity(bytes.len() as u64)?;
    buffer.extend_from_slice(bytes);
    Ok(buffer)
}

/// Copies these runs of `bytes`, one after the other, so that the rest can be freed. Runs beyond the end are empty.
///
/// # Errors
/// [`CodecError::NoMemory`].
pub(crate) fn gather(bytes: Bytes, part: &Runs) -> Result<Bytes, CodecError> {
    if part.bytes() == bytes.len() {
        return Ok(bytes);
    }
    let mut gathered = with_capacity(part.bytes() as u64)?;
    for run in part.each() {
        gathered.extend_from_slice(bytes.get(run).unwrap_or_default());
    }
    Ok(Bytes::from(gathered))
}

/// `element` repeated to fill `bytes` bytes.
///
/// # Errors
/// [`CodecError::NoMemory`].
pub(crate) fn repeated(element: &[u8], bytes: u64) -> Result<Vec<u8>, CodecError> {
    let Some((first, rest)) = element.split_first() else { return zeroed(bytes) };
    let mut buffer = with_capacity(bytes)?;
    let bytes = usize::try_from(bytes).unwrap_or(0);
    if rest.iter().all(|byte| byte == first) {
        buffer.resize(bytes, *first);
    } else {
        // Doubling the filled part needs the fewest calls of memcpy.
        buffer.extend_from_slice(element.get(..bytes.min(element.len())).unwrap_or_default());
        while buffer.len() < bytes {
            let more = buffer.len().min(bytes - buffer.len());
            buffer.extend_from_within(..more);
        }
    }
    Ok(buffer)
}

/// Changes the bytes in place if this is their only owner, otherwise a copy of them.
///
/// # Errors
/// [`CodecError::NoMemory`].
pub(crate) fn in_place(bytes: Bytes, change: impl FnOnce(&mut [u8])) -> Result<Bytes, CodecError> {
    match bytes.try_into_mut() {
        Ok(mut own) => {
            change(&mut own);
            Ok(BytesMut::freeze(own))
        }
        Err(shared) => {
            let mut copy = copy_of(&shared)?;
            change(&mut copy);
            Ok(Bytes::from(copy))
        }
    }
}
