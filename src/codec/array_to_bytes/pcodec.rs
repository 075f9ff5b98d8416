//! `pcodec`: stores numbers in the standalone file format of pco (numcodecs, "pcodec").
//!
//! The file and each of its chunks declare how many numbers they hold; neither is trusted beyond the size of the array. Other
//! declarations of a chunk are checked before memory is allocated because of them. Only options that change the encoded bytes
//! are read: decoding does not depend on them.

use half::f16;
use pco::errors::PcoError;
use pco::standalone::{DecompressorItem, FileDecompressor, simple_compress};
use pco::{ChunkConfig, DeltaSpec, ModeSpec, PagingSpec};

use ::bytes::Bytes;

use crate::chunk::Elements;
use crate::codec::CodecError;
use crate::codec::chain::BoundArrayToBytes;
use crate::codec::contract::ArrayToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::buffer;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Size;
use crate::metadata::{DataType, V2Codec};

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.pcodec"],
    v2: &[V2Codec::new("pcodec", "numcodecs.pcodec")],
    factory: CodecFactory::ArrayToBytes(bind),
};

const NAME: &str = "numcodecs.pcodec";
/// Numbers decoded at a time: a multiple of pco's batch.
const BLOCK: usize = 16 * pco::FULL_BATCH_N;
/// Numbers in a page, unless a configuration says otherwise.
const PAGE: i64 = 1 << 18;
/// Allowance for the overhead of a page.
const PAGE_BYTES: u64 = 1 << 7;
/// Bytes of a chunk before its metadata: its type, and its number of numbers less one.
const CHUNK_HEAD: usize = 4;
/// The first version of the format with lookback.
const LOOKBACK_VERSION: u8 = 3;
/// Largest lookback window of a chunk with few numbers: twice the largest that pco writes.
const LOOKBACK: u64 = 1 << 16;

#[derive(Debug)]
struct Pcodec {
    decode: fn(&[u8], u64) -> Result<Vec<u8>, CodecError>,
    encode: fn(&[u8], &ChunkConfig) -> Result<Vec<u8>, CodecError>,
    options: ChunkConfig,
    /// Bytes of the array.
    decoded: u64,
    /// Numbers in a page.
    page: u64,
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToBytes, CodecError> {
    let data_type = &context.input.data_type;
    let number = |key: &str, default: i64, least: i64, most: i64| {
        let number = config.integer(key)?.unwrap_or(default);
        let number = usize::try_from(number).ok().filter(|_| (least..=most).contains(&number));
        number.ok_or_else(|| config.invalid(format!("`{key}` must be between {least} and {most}")))
    };
    let mode = match config.string("mode_spec")? {
        Some("classic") => ModeSpec::Classic,
        _ => ModeSpec::Auto,
    };
    let delta = match config.string("delta_spec")? {
        Some("none" | "no_op") => DeltaSpec::NoOp,
        Some("try_consecutive") => DeltaSpec::TryConsecutive(number("delta_encoding_order", 1, 0, 7)?),
        Some("try_lookback") => DeltaSpec::TryLookback,
        _ => DeltaSpec::Auto,
    };
    let page = number("equal_pages_up_to", PAGE, 1, 1 << 24)?;
    let options = ChunkConfig::default()
        .with_compression_level(number("level", 8, 0, 12)?)
        .with_mode_spec(mode)
        .with_delta_spec(delta)
        .with_paging_spec(PagingSpec::EqualPagesUpTo(page))
        .with_enable_8_bit(true);
    let (decode, encode) = coders(data_type)
        .ok_or_else(|| config.unsupported(&format!("elements of type `{}`", data_type.name())))?;
    let decoded = context.size.max();
    Ok(BoundArrayToBytes::Whole(Box::new(Pcodec { decode, encode, options, decoded, page: page as u64 })))
}

/// The functions that decode to a number of bytes, and encode.
type Coders =
    (fn(&[u8], u64) -> Result<Vec<u8>, CodecError>, fn(&[u8], &ChunkConfig) -> Result<Vec<u8>, CodecError>);

fn coders(data_type: &DataType) -> Option<Coders> {
    Some(match data_type {
        DataType::Int8 => (decode::<i8, 1>, encode::<i8, 1>),
        DataType::Int16 => (decode::<i16, 2>, encode::<i16, 2>),
        DataType::Int32 => (decode::<i32, 4>, encode::<i32, 4>),
        // numcodecs encodes dates and time spans as integers.
        DataType::Int64 | DataType::DateTime64(_) | DataType::TimeDelta64(_) => {
            (decode::<i64, 8>, encode::<i64, 8>)
        }
        DataType::UInt8 => (decode::<u8, 1>, encode::<u8, 1>),
        DataType::UInt16 => (decode::<u16, 2>, encode::<u16, 2>),
        DataType::UInt32 => (decode::<u32, 4>, encode::<u32, 4>),
        DataType::UInt64 => (decode::<u64, 8>, encode::<u64, 8>),
        DataType::Float16 => (decode::<f16, 2>, encode::<f16, 2>),
        DataType::Float32 => (decode::<f32, 4>, encode::<f32, 4>),
        DataType::Float64 => (decode::<f64, 8>, encode::<f64, 8>),
        _ => return None,
    })
}

/// A number type of pco with its byte representation.
trait Number<const N: usize>: pco::data_types::Number {
    fn from_bytes(bytes: [u8; N]) -> Self;
    fn to_bytes(self) -> [u8; N];
}

macro_rules! numbers {
    ($($number:ty: $bytes:literal),*) => {$(
        impl Number<$bytes> for $number {
            fn from_bytes(bytes: [u8; $bytes]) -> Self {
                Self::from_le_bytes(bytes)
            }

            fn to_bytes(self) -> [u8; $bytes] {
                self.to_le_bytes()
            }
        }
    )*};
}

numbers!(i8: 1, i16: 2, i32: 4, i64: 8, u8: 1, u16: 2, u32: 4, u64: 8, f16: 2, f32: 4, f64: 8);

fn corrupt(error: &PcoError) -> CodecError {
    CodecError::corrupt(NAME, error.to_string())
}

fn decode<T: Number<N>, const N: usize>(encoded: &[u8], bytes: u64) -> Result<Vec<u8>, CodecError> {
    let wrong =
        |has: u64| CodecError::corrupt(NAME, format!("has {has} bytes of numbers instead of {bytes}"));
    let mut decoded = buffer::with_capacity(bytes)?;
    let mut block = [T::from_bytes([0; N]); BLOCK];
    let (file, mut rest) = FileDecompressor::new(encoded).map_err(|error| corrupt(&error))?;
    loop {
        let version = file.format_version().major;
        if !has_bounded_memory(rest, version, N as u64, bytes / N as u64) {
            return Err(CodecError::corrupt(NAME, "needs more memory than its content justifies"));
        }
        let chunk = file.chunk_decompressor::<T, _>(rest).map_err(|error| corrupt(&error))?;
        let DecompressorItem::Chunk(mut chunk) = chunk else { break };
        let after = decoded.len() as u64 + chunk.n() as u64 * N as u64;
        if after > bytes {
            return Err(wrong(after));
        }
        loop {
            let progress = chunk.read(&mut block).map_err(|error| corrupt(&error))?;
            for number in block.iter().take(progress.n_processed) {
                decoded.extend_from_slice(&number.to_bytes());
            }
            if progress.finished {
                break;
            }
        }
        rest = chunk.into_src();
    }
    match decoded.len() as u64 {
        all if all == bytes => Ok(decoded),
        other => Err(wrong(other)),
    }
}

/// Whether a chunk contains the dictionary that it declares, and its lookback window is small or at most the number of
/// numbers: pco allocates memory for both at once. Truncated and invalid chunks pass, because pco refuses them.
fn has_bounded_memory(chunk: &[u8], version: u8, element_bytes: u64, numbers: u64) -> bool {
    let metadata = chunk.get(CHUNK_HEAD..).unwrap_or_default();
    let bits = |from: u64, count: u32| {
        let start = usize::try_from(from / 8).unwrap_or(usize::MAX);
        let mut word = [0; 8];
        word.iter_mut().zip(metadata.iter().skip(start)).for_each(|(to, byte)| *to = *byte);
        u64::from_le_bytes(word) >> (from % 8) & ((1 << count) - 1)
    };
    let element_bits = element_bytes * 8;
    let delta = match bits(0, 4) {
        1 | 2 => 4 + element_bits,
        3 => 4 + 8,
        4 => {
            let words = bits(4, 25);
            if words * element_bytes > metadata.len() as u64 {
                return false;
            }
            32 + words * element_bits
        }
        _ => 4,
    };
    let uses_lookback = version >= LOOKBACK_VERSION && bits(delta, 4) == 2;
    !uses_lookback || 1 << (1 + bits(delta + 4, 5)) <= LOOKBACK.max(numbers.next_power_of_two())
}

fn encode<T: Number<N>, const N: usize>(
    decoded: &[u8],
    options: &ChunkConfig,
) -> Result<Vec<u8>, CodecError> {
    let (numbers, _) = decoded.as_chunks::<N>();
    let numbers: Vec<T> = numbers.iter().map(|bytes| T::from_bytes(*bytes)).collect();
    simple_compress(&numbers, options).map_err(|error| CodecError::encode(NAME, error.to_string()))
}

impl ArrayToBytes for Pcodec {
    fn decode(&self, encoded: Bytes) -> Result<Elements, CodecError> {
        self.encoded_size().check(NAME, encoded.len())?;
        (self.decode)(&encoded, self.decoded).map(|items| Elements::fixed(items.into()))
    }

    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError> {
        (self.encode)(decoded.items(), &self.options).map(Bytes::from)
    }

    fn encoded_size(&self) -> Size {
        // Every page has its own header.
        let heads = (self.decoded / self.page).saturating_add(1).saturating_mul(PAGE_BYTES);
        Size::AtMost(Size::Exact(self.decoded).compressed().max().saturating_add(heads))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chunk whose metadata begins with these fields, given as `(value, bits)`.
    fn chunk(fields: &[(u64, u32)]) -> Vec<u8> {
        let (mut word, mut at) = (0_u128, 0);
        for (value, bits) in fields {
            word |= u128::from(*value) << at;
            at += bits;
        }
        [&[0; CHUNK_HEAD][..], &word.to_le_bytes()].concat()
    }

    #[test]
    fn a_lookback_window_beyond_the_number_of_numbers_is_rejected() {
        for mode in [&[(0, 4)][..], &[(1, 4), (u64::MAX, 64)], &[(2, 4), (77, 64)], &[(3, 4), (255, 8)]] {
            let with_lookback = |log: u64| chunk(&[mode, &[(2, 4), (log - 1, 5)]].concat());
            assert!(has_bounded_memory(&with_lookback(16), 4, 8, 1), "{mode:?}");
            assert!(!has_bounded_memory(&with_lookback(17), 4, 8, 1), "{mode:?}");
            assert!(has_bounded_memory(&with_lookback(20), 4, 8, (1 << 19) + 1), "{mode:?}");
            assert!(!has_bounded_memory(&with_lookback(32), 4, 8, 1 << 31), "{mode:?}");
            assert!(has_bounded_memory(&with_lookback(32), 2, 8, 1), "{mode:?}");
        }
    }

    #[test]
    fn a_chunk_shorter_than_its_declared_dictionary_is_rejected() {
        assert!(has_bounded_memory(&chunk(&[(4, 4), (4, 25)]), 4, 4, 1));
        assert!(!has_bounded_memory(&chunk(&[(4, 4), (5, 25)]), 4, 4, 1));
        assert!(!has_bounded_memory(&chunk(&[(4, 4), ((1 << 25) - 1, 25)]), 4, 4, 1));
        // After a dictionary of two words of two bytes, with lookback.
        let with_lookback = [(4, 4), (2, 25), (0, 3), (0, 32), (2, 4), (30, 5)];
        assert!(!has_bounded_memory(&chunk(&with_lookback), 4, 2, 1));
    }

    #[test]
    fn truncated_chunks_are_accepted_for_the_decoder_to_reject() {
        for length in 0..6 {
            assert!(has_bounded_memory(&vec![0; length], 4, 8, 1));
        }
    }
}
