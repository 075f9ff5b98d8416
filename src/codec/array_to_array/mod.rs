//! The array→array codecs: a file for each, named after the codec, and the table of them.

mod astype;
mod bitround;
pub(super) mod cast_value;
mod categorize;
mod delta;
mod fixedscaleoffset;
mod packbits;
mod quantize;
mod reshape;
mod scale_offset;
mod transpose;

use super::factory::Codec;

/// All array→array codecs.
pub(super) static CODECS: &[Codec] = &[
    astype::CODEC,
    bitround::CODEC,
    cast_value::CODEC,
    categorize::CODEC,
    delta::CODEC,
    fixedscaleoffset::CODEC,
    packbits::CODEC,
    quantize::CODEC,
    reshape::CODEC,
    scale_offset::CODEC,
    transpose::CODEC,
];
