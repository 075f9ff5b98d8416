//! Metadata documents (v1, v2, v3), and the common model of arrays and groups.
//!
//! Zarr core 3.1 "Metadata", Zarr v2 "Metadata". [`v1`], [`v2`] and [`v3`] parse untrusted documents into
//! [`ArrayMetadata`] or [`GroupMetadata`], which hide the differences between the versions. Parsers accept known
//! deviations of writers and are bounded by [`MetadataLimits`]; `to_document` writes strict v3. Codec configurations stay
//! JSON here; the module `codec` interprets them, and passes in what the parsers of v1 and v2 must know ([`V2CodecLookup`]).

mod attributes;
mod chunk_grid;
mod chunk_key_encoding;
mod codec_spelling;
mod compact;
mod consolidated;
mod data_type;
mod decimal;
pub mod dependents;
mod document;
pub mod draft;
mod error;
mod extension;
mod fill_value;
mod json;
mod key_template;
mod limits;
mod model;
mod parser;
mod raw_object;
mod separator;
mod text;
pub mod v1;
pub mod v2;
mod v2_codec;
pub mod v3;

pub use attributes::{Attributes, MAX_SHORT_BYTES};
pub use chunk_grid::{ChunkEdges, ChunkGridMetadata, EdgeRun};
pub use chunk_key_encoding::{ChunkKeyEncodingMetadata, ExtendedKeys, KeyCore};
pub use codec_spelling::spell_out_codecs;
pub use consolidated::{
    ConsolidatedChildren, DocumentCopy, change_copies, inline_children, to_inline, to_zmetadata,
    zmetadata_children,
};
pub(crate) use data_type::VARIABLE_ITEM_BYTES;
pub use data_type::{DataType, Endianness, Field, SmallFloat, StructType, SubarrayType, TimeStep, TimeUnit};
pub use decimal::{bfloat16_to_print, float16_to_print, small_float_to_print};
pub use error::MetadataError;
pub(crate) use error::shortened;
pub use fill_value::FillValue;
pub use json::{parse_attributes, parse_document, parse_value};
pub use key_template::{KeyPart, KeyTemplate};
pub use limits::MetadataLimits;
pub use model::{ArrayMetadata, CodecMetadata, GroupMetadata, NodeKind, ZarrFormat};
pub use raw_object::RawObject;
pub use separator::Separator;
pub use text::{canonical_json, utf32_text, without_padding};
pub use v2_codec::{CodecStage, V2ByteOrder, V2Codec, V2CodecLookup, V2Objects};

#[cfg(test)]
mod test_codecs;
#[cfg(test)]
mod tests;
