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
    CodecError, CodecLimits, adler32, astype, base64, bitround, blosc, bytes, bz2, cast_value, categorize,
    conditional, crc32, crc32c, delta, fixedscaleoffset, fletcher32, gzip, jenkins_lookup3, json2, lz4, lzma,
    n5_default, numcodecs_packbits, packbits, pcodec, quantize, reshape, scale_offset, sharding_indexed,
    shuffle, transpose, vlen, zfp, zlib, zstd,
};
use crate::chunk::{Elements, Runs};

/// A bound codec from arrays to arrays.
pub(super) trait ArrayToArray: fmt::Debug + Send + Sync {
    /// Makes the decoded array of the encoded one; both in canonical form, of exactly the items they were
    /// bound to.
    fn decode(&self, encoded: Elements) -> Result<Elements, CodecError>;
    /// Makes the encoded array of the decoded one.
    fn encode(&self, decoded: Elements) -> Result<Elements, CodecError>;
    /// If the codec only moves elements: for each dimension of the encoded array, the dimension it was.
    fn order(&self) -> Option<&[usize]> {
        None
    }
}

/// A codec from arrays to arrays that makes items of items, and leaves the heap of what has variable length alone.
pub(super) trait ElementwiseCodec: fmt::Debug + Send + Sync {
    /// As [`ArrayToArray::decode`], of the items alone.
    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError>;
    /// As [`ArrayToArray::encode`], of the items alone.
    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError>;
    /// As [`ArrayToArray::order`].
    fn order(&self) -> Option<&[usize]> {
        None
    }
}

impl<T: ElementwiseCodec> ArrayToArray for T {
    fn decode(&self, encoded: Elements) -> Result<Elements, CodecError> {
        encoded.map_items(|items| ElementwiseCodec::decode(self, items))
    }

    fn encode(&self, decoded: Elements) -> Result<Elements, CodecError> {
        decoded.map_items(|items| ElementwiseCodec::encode(self, items))
    }

    fn order(&self) -> Option<&[usize]> {
        ElementwiseCodec::order(self)
    }
}

/// A bound codec from bytes to bytes.
pub(super) trait BytesToBytes: fmt::Debug + Send + Sync {
    /// Decodes to bytes of the given size, or stops.
    fn decode(&self, encoded: Bytes, size: Size) -> Result<Bytes, CodecError>;
    /// Encodes any bytes.
    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError>;
    /// The size of what bytes of the given size are encoded to, by any legal encoder.
    fn encoded_size(&self, decoded: Size) -> Size;
    /// The codec, if it decodes a part for less than the whole.
    fn in_parts(&self) -> Option<&dyn PartialBytesDecode> {
        None
    }
    /// How many codecs are inside it, those inside them counted.
    fn inside(&self) -> usize {
        0
    }
    /// The most bytes that stand between two codecs inside it, where it decodes to bytes of the given size.
    fn between_bytes(&self, _decoded: Size) -> u64 {
        0
    }
}

/// A bound codec from bytes to bytes that decodes parts.
pub(super) trait PartialBytesDecode {
    /// Decodes at least these of the bytes that [`BytesToBytes::decode`] makes, and gives them alone, one run after the
    /// other.
    fn decode_part(&self, encoded: Bytes, size: Size, part: &Runs) -> Result<Bytes, CodecError>;
}

/// A bound codec from an array to bytes that decodes some elements as it does all.
pub(super) trait PartialArrayDecode {
    /// Decodes bytes that begin and end with an element.
    fn decode_part(&self, encoded: Bytes) -> Result<Elements, CodecError>;
}

/// A bound codec from an array to bytes.
pub(super) trait ArrayToBytes: fmt::Debug + Send + Sync {
    /// Decodes all bytes there are.
    fn decode(&self, encoded: Bytes) -> Result<Elements, CodecError>;
    /// Encodes an array of exactly the items it was bound to.
    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError>;
    /// The size of what the array is encoded to, by any legal encoder.
    fn encoded_size(&self) -> Size;
    /// The codec, if elements stand in their bytes one after the other and mean nothing to each other.
    fn in_parts(&self) -> Option<&dyn PartialArrayDecode> {
        None
    }
}

/// A bound codec from an array to bytes. Shards stand out: parts of them can be read.
#[derive(Debug)]
pub(super) enum BoundBytes {
    Whole(Box<dyn ArrayToBytes>),
    Sharding(Box<Sharding>),
}

impl BoundBytes {
    pub(super) fn get(&self) -> &dyn ArrayToBytes {
        match self {
            Self::Whole(codec) => codec.as_ref(),
            Self::Sharding(codec) => codec.as_ref(),
        }
    }

    pub(super) fn sharding(&self) -> Option<&Sharding> {
        match self {
            Self::Whole(_) => None,
            Self::Sharding(codec) => Some(codec),
        }
    }
}

/// What a codec is bound to beside its configuration.
pub(super) struct BindContext<'a> {
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
pub(super) type Bind<T> = fn(&Config, &BindContext) -> Result<T, CodecError>;

/// How a codec of each kind is bound.
pub(super) enum CodecFactory {
    ArrayToArray(Bind<BoundArray>),
    ArrayToBytes(Bind<BoundBytes>),
    BytesToBytes(Bind<Box<dyn BytesToBytes>>),
}

/// The codec of a name. The aliases are names that documents in the wild have for the same bytes.
pub(super) fn lookup(name: &str) -> Option<CodecFactory> {
    Some(match name {
        "bitround" | "numcodecs.bitround" => CodecFactory::ArrayToArray(bitround::bind),
        "cast_value" => CodecFactory::ArrayToArray(cast_value::bind),
        "reshape" => CodecFactory::ArrayToArray(reshape::bind),
        "scale_offset" => CodecFactory::ArrayToArray(scale_offset::bind),
        "transpose" => CodecFactory::ArrayToArray(transpose::bind),
        "numcodecs.astype" => CodecFactory::ArrayToArray(astype::bind),
        "numcodecs.categorize" => CodecFactory::ArrayToArray(categorize::bind),
        "numcodecs.delta" => CodecFactory::ArrayToArray(delta::bind),
        "numcodecs.fixedscaleoffset" => CodecFactory::ArrayToArray(fixedscaleoffset::bind),
        "numcodecs.packbits" => CodecFactory::ArrayToArray(numcodecs_packbits::bind),
        "numcodecs.quantize" => CodecFactory::ArrayToArray(quantize::bind),
        "bytes" | "endian" => CodecFactory::ArrayToBytes(bytes::bind),
        "n5_default" => CodecFactory::ArrayToBytes(n5_default::bind),
        "packbits" => CodecFactory::ArrayToBytes(packbits::bind),
        "sharding_indexed" => CodecFactory::ArrayToBytes(sharding_indexed::bind),
        "vlen-bytes" | "numcodecs.vlen-bytes" => CodecFactory::ArrayToBytes(vlen::bind_bytes),
        "vlen-utf8" | "numcodecs.vlen-utf8" => CodecFactory::ArrayToBytes(vlen::bind_utf8),
        "numcodecs.json2" => CodecFactory::ArrayToBytes(json2::bind),
        "numcodecs.pcodec" => CodecFactory::ArrayToBytes(pcodec::bind),
        "numcodecs.vlen-array" => CodecFactory::ArrayToBytes(vlen::bind_array),
        "zfp" => CodecFactory::ArrayToBytes(zfp::bind),
        "numcodecs.zfpy" => CodecFactory::ArrayToBytes(zfp::bind_zfpy),
        "blosc" | "numcodecs.blosc" => CodecFactory::BytesToBytes(blosc::bind),
        "conditional" => CodecFactory::BytesToBytes(conditional::bind),
        "crc32c" | "numcodecs.crc32c" => CodecFactory::BytesToBytes(crc32c::bind),
        "gzip" | "numcodecs.gzip" => CodecFactory::BytesToBytes(gzip::bind),
        "zlib" | "numcodecs.zlib" => CodecFactory::BytesToBytes(zlib::bind),
        "zstd" | "numcodecs.zstd" => CodecFactory::BytesToBytes(zstd::bind),
        "numcodecs.adler32" => CodecFactory::BytesToBytes(adler32::bind),
        "numcodecs.base64" => CodecFactory::BytesToBytes(base64::bind),
        "numcodecs.bz2" => CodecFactory::BytesToBytes(bz2::bind),
        "numcodecs.crc32" => CodecFactory::BytesToBytes(crc32::bind),
        "numcodecs.fletcher32" => CodecFactory::BytesToBytes(fletcher32::bind),
        "numcodecs.jenkins_lookup3" => CodecFactory::BytesToBytes(jenkins_lookup3::bind),
        "numcodecs.lz4" => CodecFactory::BytesToBytes(lz4::bind),
        "numcodecs.lzma" => CodecFactory::BytesToBytes(lzma::bind),
        "numcodecs.shuffle" => CodecFactory::BytesToBytes(shuffle::bind),
        _ => return None,
    })
}
