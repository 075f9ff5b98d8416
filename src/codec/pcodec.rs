//! `pcodec`: numbers in a file of pco (numcodecs, "pcodec"; the format of pco standalone files).
//!
//! A file says how many numbers it has, and each chunk in it again; neither is believed beyond what the array has. Of the
//! options only those are read that change what is encoded: whatever they are, all files decode alike.

use half::f16;
use pco::errors::PcoError;
use pco::standalone::{DecompressorItem, FileDecompressor, simple_compress};
use pco::{ChunkConfig, DeltaSpec, ModeSpec, PagingSpec};

use ::bytes::Bytes;

use super::CodecError;
use super::buffer;
use super::config::Config;
use super::registry::{ArrayToBytes, BoundBytes, Context};
use super::representation::Size;
use crate::chunk::Elements;
use crate::metadata::DataType;

const NAME: &str = "numcodecs.pcodec";
/// Numbers decoded at a time: a multiple of what pco works on at once.
const BLOCK: usize = 16 * pco::FULL_BATCH_N;
/// Numbers in a page, unless a configuration says otherwise.
const PAGE: i64 = 1 << 18;
/// What each page may cost beside its numbers.
const PAGE_BYTES: u64 = 1 << 7;

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

pub(super) fn bind(config: &Config, context: &Context) -> Result<BoundBytes, CodecError> {
    let data_type = &context.input.data_type;
    let number = |key: &str, default: i64, least: i64, most: i64| {
        let number = config.integer(key)?.unwrap_or(default);
        let number = usize::try_from(number).ok().filter(|_| (least..=most).contains(&number));
        number.ok_or_else(|| config.invalid(format!("`{key}` must be between {least} and {most}")))
    };
    let mode = match config.text("mode_spec")? {
        Some("classic") => ModeSpec::Classic,
        _ => ModeSpec::Auto,
    };
    let delta = match config.text("delta_spec")? {
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
    Ok(BoundBytes::Whole(Box::new(Pcodec { decode, encode, options, decoded, page: page as u64 })))
}

/// What decodes so many bytes, and what encodes.
type Coders =
    (fn(&[u8], u64) -> Result<Vec<u8>, CodecError>, fn(&[u8], &ChunkConfig) -> Result<Vec<u8>, CodecError>);

fn coders(data_type: &DataType) -> Option<Coders> {
    Some(match data_type {
        DataType::Int8 => (decode::<i8, 1>, encode::<i8, 1>),
        DataType::Int16 => (decode::<i16, 2>, encode::<i16, 2>),
        DataType::Int32 => (decode::<i32, 4>, encode::<i32, 4>),
        // numcodecs takes dates and time spans for the integers they are.
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

/// A number of pco, and its bytes.
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
    let mut decoded = buffer::reserved(bytes)?;
    let mut block = [T::from_bytes([0; N]); BLOCK];
    let (file, mut rest) = FileDecompressor::new(encoded).map_err(|error| corrupt(&error))?;
    while let DecompressorItem::Chunk(mut chunk) =
        file.chunk_decompressor::<T, _>(rest).map_err(|error| corrupt(&error))?
    {
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
        // Every page has a head of its own.
        let heads = (self.decoded / self.page).saturating_add(1).saturating_mul(PAGE_BYTES);
        Size::AtMost(Size::Exact(self.decoded).compressed().max().saturating_add(heads))
    }
}
