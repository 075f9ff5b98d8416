//! The contract of bound codecs: one trait for each stage of a chain (Zarr core 3.1, "Codecs").
//!
//! A bound codec has checked its configuration against the data it is given. Only the bytes can still be wrong: decoders
//! treat them as hostile, stop at the size they were bound to, and allocate nothing because of a number read from them.

use std::fmt;

use ::bytes::Bytes;

use super::error::CodecError;
use super::support::representation::Size;
use crate::chunk::{Elements, Runs};

/// A bound codec from arrays to arrays.
pub(crate) trait ArrayToArray: fmt::Debug + Send + Sync {
    /// Decodes an array. Input and output are in canonical form and have exactly the elements that the codec was bound to.
    fn decode(&self, encoded: Elements) -> Result<Elements, CodecError>;
    /// Encodes an array: the inverse of [`ArrayToArray::decode`].
    fn encode(&self, decoded: Elements) -> Result<Elements, CodecError>;
    /// For a codec that only moves elements: for each dimension of the encoded array, the decoded dimension.
    fn order(&self) -> Option<&[usize]> {
        None
    }
}

/// A codec from arrays to arrays that works on the fixed-size items and keeps the heap of variable-length data.
pub(crate) trait ElementwiseCodec: fmt::Debug + Send + Sync {
    /// As [`ArrayToArray::decode`], for the items.
    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError>;
    /// As [`ArrayToArray::encode`], for the items.
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

/// A bound codec from an array to bytes.
pub(crate) trait ArrayToBytes: fmt::Debug + Send + Sync {
    /// Decodes the whole input.
    fn decode(&self, encoded: Bytes) -> Result<Elements, CodecError>;
    /// Encodes an array of exactly the elements that the codec was bound to.
    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError>;
    /// The size of the encoded array, from any legal encoder.
    fn encoded_size(&self) -> Size;
    /// The partial decoder of a codec that stores elements one after the other, independent of each other.
    fn partial(&self) -> Option<&dyn PartialArrayDecode> {
        None
    }
}

/// Decodes some elements of an array as [`ArrayToBytes::decode`] decodes all.
pub(crate) trait PartialArrayDecode {
    /// Decodes bytes that begin and end at an element's boundary.
    fn decode_partial(&self, encoded: Bytes) -> Result<Elements, CodecError>;
}

/// A bound codec from bytes to bytes.
pub(crate) trait BytesToBytes: fmt::Debug + Send + Sync {
    /// Decodes to bytes of the given size; any other size is an error.
    fn decode(&self, encoded: Bytes, size: Size) -> Result<Bytes, CodecError>;
    /// Encodes any bytes.
    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError>;
    /// The encoded size of bytes of the given size, from any legal encoder.
    fn encoded_size(&self, decoded: Size) -> Size;
    /// The partial decoder of a codec that decodes a part for less than the whole.
    fn partial(&self) -> Option<&dyn PartialBytesDecode> {
        None
    }
    /// Number of codecs inside this one, at any depth.
    fn inner_codecs(&self) -> usize {
        0
    }
    /// Largest number of bytes between two codecs inside this one, when it decodes to bytes of the given size.
    fn between_bytes(&self, _decoded: Size) -> u64 {
        0
    }
}

/// Decodes some of the bytes that [`BytesToBytes::decode`] returns.
pub(crate) trait PartialBytesDecode {
    /// Returns the bytes of these runs, one run after the other. `size` is that of the whole decoded value.
    fn decode_partial(&self, encoded: Bytes, size: Size, part: &Runs) -> Result<Bytes, CodecError>;
}
