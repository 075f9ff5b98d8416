//! The codecs by name, and what kind each of them is.
//!
//! Zarr core 3.1, "Codecs": a chain is array→array codecs, one array→bytes codec, then bytes→bytes codecs.
//! The set is closed; a codec of another name is unsupported, whoever wrote it.

use std::fmt;

use ::bytes::Bytes;

use super::config::Config;
use super::representation::{Representation, Size};
use super::sharding_indexed::Sharding;
use super::{
    CodecError, CodecLimits, adler32, astype, bitround, blosc, bytes, bz2, crc32, crc32c, delta,
    fixedscaleoffset, fletcher32, gzip, jenkins_lookup3, lz4, lzma, numcodecs_packbits, packbits, quantize,
    sharding_indexed, shuffle, transpose, zlib, zstd,
};

/// A bound codec from arrays to arrays.
pub(super) trait ArrayToArray: fmt::Debug + Send + Sync {
    /// Makes the decoded array of the encoded one; both in canonical form, of exactly the bytes they were
    /// bound to.
    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError>;
    /// Makes the encoded array of the decoded one.
    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError>;
    /// If the codec only moves elements: for each dimension of the encoded array, the dimension it was.
    fn order(&self) -> Option<&[usize]>;
}

/// A bound codec from bytes to bytes.
pub(super) trait BytesToBytes: fmt::Debug + Send + Sync {
    /// Decodes to bytes of the given size, or stops.
    fn decode(&self, encoded: Bytes, size: Size) -> Result<Bytes, CodecError>;
    /// Encodes any bytes.
    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError>;
    /// The size of what bytes of the given size are encoded to, by any legal encoder.
    fn encoded_size(&self, decoded: Size) -> Size;
}

/// A bound codec from an array to bytes.
#[derive(Debug)]
pub(super) enum ArrayToBytes {
    Bytes(bytes::BytesCodec),
    PackBits(packbits::PackBits),
    Sharding(Box<Sharding>),
}

impl ArrayToBytes {
    pub(super) fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        match self {
            Self::Bytes(codec) => codec.decode(encoded),
            Self::PackBits(codec) => codec.decode(&encoded),
            Self::Sharding(codec) => codec.decode(&encoded),
        }
    }

    pub(super) fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        match self {
            Self::Bytes(codec) => codec.encode(decoded),
            Self::PackBits(codec) => codec.encode(&decoded),
            Self::Sharding(codec) => codec.encode(&decoded),
        }
    }

    pub(super) fn encoded_size(&self) -> Size {
        match self {
            Self::Bytes(codec) => codec.encoded_size(),
            Self::PackBits(codec) => codec.encoded_size(),
            Self::Sharding(codec) => codec.encoded_size(),
        }
    }
}

/// What a codec is bound to beside its configuration.
pub(super) struct Context<'a> {
    /// The array the codec is given; for a bytes→bytes codec, the one its bytes were made of.
    pub(super) input: &'a Representation,
    /// Bytes of what the codec is given.
    pub(super) size: Size,
    /// The chain's limits.
    pub(super) limits: &'a CodecLimits,
    /// Shards around this chain.
    pub(super) depth: usize,
}

/// A bound array→array codec, and what it makes of its input.
pub(super) type BoundArray = (Box<dyn ArrayToArray>, Representation);

/// Binds a configuration to what stands before the codec.
pub(super) type Bind<T> = fn(&Config, &Context) -> Result<T, CodecError>;

/// How a codec of each kind is bound.
pub(super) enum Kind {
    ArrayToArray(Bind<BoundArray>),
    ArrayToBytes(Bind<ArrayToBytes>),
    BytesToBytes(Bind<Box<dyn BytesToBytes>>),
}

/// The codec of a name. The aliases are names that documents in the wild have for the same bytes.
pub(super) fn kind(name: &str) -> Option<Kind> {
    Some(match name {
        "bitround" | "numcodecs.bitround" => Kind::ArrayToArray(bitround::bind),
        "transpose" => Kind::ArrayToArray(transpose::bind),
        "numcodecs.astype" => Kind::ArrayToArray(astype::bind),
        "numcodecs.delta" => Kind::ArrayToArray(delta::bind),
        "numcodecs.fixedscaleoffset" => Kind::ArrayToArray(fixedscaleoffset::bind),
        "numcodecs.packbits" => Kind::ArrayToArray(numcodecs_packbits::bind),
        "numcodecs.quantize" => Kind::ArrayToArray(quantize::bind),
        "bytes" | "endian" => Kind::ArrayToBytes(bytes::bind),
        "packbits" => Kind::ArrayToBytes(packbits::bind),
        "sharding_indexed" => Kind::ArrayToBytes(sharding_indexed::bind),
        "blosc" | "numcodecs.blosc" => Kind::BytesToBytes(blosc::bind),
        "crc32c" | "numcodecs.crc32c" => Kind::BytesToBytes(crc32c::bind),
        "gzip" | "numcodecs.gzip" => Kind::BytesToBytes(gzip::bind),
        "zlib" | "numcodecs.zlib" => Kind::BytesToBytes(zlib::bind),
        "zstd" | "numcodecs.zstd" => Kind::BytesToBytes(zstd::bind),
        "numcodecs.adler32" => Kind::BytesToBytes(adler32::bind),
        "numcodecs.bz2" => Kind::BytesToBytes(bz2::bind),
        "numcodecs.crc32" => Kind::BytesToBytes(crc32::bind),
        "numcodecs.fletcher32" => Kind::BytesToBytes(fletcher32::bind),
        "numcodecs.jenkins_lookup3" => Kind::BytesToBytes(jenkins_lookup3::bind),
        "numcodecs.lz4" => Kind::BytesToBytes(lz4::bind),
        "numcodecs.lzma" => Kind::BytesToBytes(lzma::bind),
        "numcodecs.shuffle" => Kind::BytesToBytes(shuffle::bind),
        _ => return None,
    })
}
