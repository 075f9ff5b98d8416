//! The bytes→bytes codecs: a file for each, named after the codec, and the table of them.

mod adler32;
mod base64;
mod blosc;
mod bz2;
mod checksum;
mod conditional;
pub(super) mod crc32;
pub(super) mod crc32c;
mod fletcher32;
mod gzip;
mod jenkins_lookup3;
mod lz4;
mod lzma;
mod shuffle;
mod zlib;
pub(super) mod zstd;

use super::factory::Codec;

/// All bytes→bytes codecs.
pub(super) static CODECS: &[Codec] = &[
    adler32::CODEC,
    base64::CODEC,
    blosc::CODEC,
    bz2::CODEC,
    conditional::CODEC,
    crc32::CODEC,
    crc32c::CODEC,
    fletcher32::CODEC,
    gzip::CODEC,
    jenkins_lookup3::CODEC,
    lz4::CODEC,
    lzma::CODEC,
    shuffle::CODEC,
    zlib::CODEC,
    zstd::CODEC,
];
