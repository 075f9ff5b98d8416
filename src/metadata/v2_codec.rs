//! [`V2Codec`]: what the parsers of v1 and v2 documents must know of a codec to turn its entry into one of v3.
//!
//! These versions list codecs without their stages, give some data types only by a codec, and spell byte orders in data
//! types. The facts about each codec come from above, as a [`V2CodecLookup`]: this module knows no codec.

/// The stage of a codec in a chain (Zarr core 3.1, "Codecs").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodecStage {
    /// From an array to an array.
    ArrayToArray,
    /// From an array to bytes.
    ArrayToBytes,
    /// From bytes to bytes.
    BytesToBytes,
}

/// Returns the codec with an `id`, and its stage; `None` if it is unknown.
pub type V2CodecLookup = fn(&str) -> Option<(CodecStage, &'static V2Codec)>;

/// A codec in v1 and v2 documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V2Codec {
    /// Its `id` in v2 documents, which is its `compression` in v1 documents.
    pub id: &'static str,
    /// Its name in the model, which is the v3 name for the same bytes and configuration.
    pub name: &'static str,
    /// The member of the configuration that a v1 document means by `compression_opts` that are no object.
    pub v1_option: &'static str,
    /// The elements of an array of objects (`|O`), if this codec determines them.
    pub objects: Option<V2Objects>,
    /// The byte order of the elements that the codec encodes to, if it is a filter on elements.
    pub byte_order: V2ByteOrder,
}

impl V2Codec {
    /// A codec that says nothing about objects and keeps the byte order of elements.
    #[must_use]
    pub const fn new(id: &'static str, name: &'static str) -> Self {
        Self { id, name, v1_option: "level", objects: None, byte_order: V2ByteOrder::Kept }
    }
}

/// The elements of an array of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum V2Objects {
    /// Strings of any length.
    Strings,
    /// Byte strings of any length.
    Bytes,
    /// JSON values.
    Json,
    /// Arrays of any length, of the type that the configuration gives as `dtype`.
    Arrays,
}

/// How a filter on elements changes their byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum V2ByteOrder {
    /// It stays.
    Kept,
    /// It is that of a data type in the configuration.
    Named {
        /// The member with the type of the decoded elements, if they are numbers.
        decoded: Option<&'static str>,
        /// The member with the type of the encoded elements; the decoded type if it is absent.
        encoded: &'static str,
    },
    /// The encoded elements are single bytes.
    SingleBytes,
}
