//! The calls into the C library: the only unsafe code of the codecs.
//!
//! The calls are re-entrant, with one thread and no global state. [`super::frame`] checks frames before they get here. Only the
//! files of this codec may call these functions.
#![expect(unsafe_code, reason = "c-blosc is a C library; the frames it is given have been checked in Rust")]

use std::ffi::{CStr, c_char, c_int};

use super::frame::{Frame, MAX_BYTES, NAME};
use crate::codec::CodecError;
use crate::codec::support::buffer;

/// The compressors inside blosc.
#[derive(Clone, Copy, Debug)]
pub(super) enum Compressor {
    BloscLz,
    Lz4,
    Lz4Hc,
    Snappy,
    Zlib,
    Zstd,
}

impl Compressor {
    fn name(self) -> &'static CStr {
        match self {
            Self::BloscLz => c"blosclz",
            Self::Lz4 => c"lz4",
            Self::Lz4Hc => c"lz4hc",
            Self::Snappy => c"snappy",
            Self::Zlib => c"zlib",
            Self::Zstd => c"zstd",
        }
    }
}

/// The filter before compression.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shuffle {
    None,
    Bytes,
    Bits,
}

impl Shuffle {
    fn number(self) -> i32 {
        match self {
            Self::None => 0,
            Self::Bytes => 1,
            Self::Bits => 2,
        }
    }
}

/// Largest difference between the length of a frame and of its content.
const OVERHEAD_BYTES: usize = 16;

/// Decodes a checked, compressed frame.
///
/// # Errors
/// [`CodecError::Corrupt`] if the library refuses it or decodes another number of bytes than the frame declares.
pub(super) fn decompress(frame: &Frame<'_>) -> Result<Vec<u8>, CodecError> {
    let source = frame.as_bytes();
    let expected = frame.decoded_bytes();
    let mut decoded = buffer::with_capacity(expected as u64)?;
    // The library does not check whether its own allocation failed, so try the same allocation first.
    drop(buffer::with_capacity(frame.scratch_bytes())?);
    // SAFETY: `decoded` has capacity for `expected` bytes, which the library is given, and the two buffers do not
    // overlap. It takes the length of its input from the header, which `Frame::parse` has compared with
    // `source.len()`; it has also walked every block and part, so each lies inside `source` and splits its
    // block evenly. No BloscLZ part is so large that a match overflows the library's counters.
    let written = unsafe {
        blosc_src::blosc_decompress_ctx(source.as_ptr().cast(), decoded.as_mut_ptr().cast(), expected, 1)
    };
    if usize::try_from(written) != Ok(expected) {
        return Err(CodecError::corrupt(NAME, "a block does not decompress"));
    }
    // SAFETY: the library has written `expected` bytes, and the capacity is at least that. All of them are
    // initialised: every part decompressed to its full length (the return value counts them) and the parts
    // fill their block (`Frame`). No compressor leaves a gap: LZ4 fills a match at distance 0, the one that
    // has no source, with zeros.
    unsafe { decoded.set_len(expected) };
    Ok(decoded)
}

unsafe extern "C" {
    // Of the LZ4 that `blosc-src` is built with (lz4.h).
    fn LZ4_decompress_safe(
        source: *const c_char,
        to: *mut c_char,
        source_bytes: c_int,
        output_bytes: c_int,
    ) -> c_int;
    fn LZ4_decompress_safe_partial(
        source: *const c_char,
        to: *mut c_char,
        source_bytes: c_int,
        wanted_bytes: c_int,
        output_bytes: c_int,
    ) -> c_int;
}

/// Decodes an LZ4 block: all of it, or its beginning as far as `output` goes, at a third of the speed.
///
/// # Errors
/// [`CodecError::Corrupt`] if the block is not LZ4 or decodes to fewer bytes.
pub(super) fn decompress_lz4(source: &[u8], output: &mut [u8], is_whole: bool) -> Result<(), CodecError> {
    let corrupt = || CodecError::corrupt(NAME, "a block does not decompress");
    let (Ok(source_bytes), Ok(output_bytes)) = (c_int::try_from(source.len()), c_int::try_from(output.len()))
    else {
        return Err(corrupt());
    };
    let (from, to) = (source.as_ptr().cast(), output.as_mut_ptr().cast());
    // SAFETY: the library is given the lengths of both buffers, which do not overlap, and stays within them for any
    // source. `output` is initialised, so it does not matter how much of it is written.
    let written = unsafe {
        if is_whole {
            LZ4_decompress_safe(from, to, source_bytes, output_bytes)
        } else {
            LZ4_decompress_safe_partial(from, to, source_bytes, output_bytes, output_bytes)
        }
    };
    if written == output_bytes { Ok(()) } else { Err(corrupt()) }
}

/// Encodes bytes to a frame.
///
/// # Errors
/// [`CodecError::Encode`] if there are more than a frame can hold, or the library refuses.
pub(super) fn compress(
    source: &[u8],
    compressor: Compressor,
    level: u8,
    shuffle: Shuffle,
    type_bytes: u8,
    block_bytes: usize,
) -> Result<Vec<u8>, CodecError> {
    if source.len() as u64 > MAX_BYTES {
        return Err(CodecError::encode(NAME, "more bytes than a frame can hold"));
    }
    let capacity = source.len() + OVERHEAD_BYTES;
    let mut encoded = buffer::with_capacity(capacity as u64)?;
    // SAFETY: `encoded` has space for `capacity` bytes, which the library is given; `source` is read for its own
    // length and does not overlap it; the name ends in NUL. The sizes fit the library's `int32_t`: `source`
    // by the check above, `block_bytes` because no caller gives more than `source.len()`, and it is bounded
    // here all the same.
    let written = unsafe {
        blosc_src::blosc_compress_ctx(
            i32::from(level),
            shuffle.number(),
            usize::from(type_bytes.max(1)),
            source.len(),
            source.as_ptr().cast(),
            encoded.as_mut_ptr().cast(),
            capacity,
            compressor.name().as_ptr(),
            block_bytes.min(source.len()),
            1,
        )
    };
    match usize::try_from(written) {
        Ok(written) if written > 0 && written <= capacity => {
            // SAFETY: the library has written `written` bytes, and the capacity is at least that.
            unsafe { encoded.set_len(written) };
            Ok(encoded)
        }
        _ => Err(CodecError::encode(NAME, format!("the library answers {written}"))),
    }
}
