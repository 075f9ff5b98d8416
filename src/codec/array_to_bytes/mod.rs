//! The array→bytes codecs: a file for each, named after the codec, and the table of them.

mod bytes;
mod json2;
mod n5_default;
mod packbits;
mod pcodec;
mod sharding_indexed;
mod vlen;
mod zfp;

use super::factory::Codec;

/// All array→bytes codecs.
pub(super) static CODECS: &[Codec] = &[
    bytes::CODEC,
    json2::CODEC,
    n5_default::CODEC,
    packbits::CODEC,
    pcodec::CODEC,
    sharding_indexed::CODEC,
    vlen::ARRAY,
    vlen::BYTES,
    vlen::UTF8,
    zfp::CODEC,
    zfp::ZFPY,
];
