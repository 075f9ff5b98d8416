//! [`ContentCoding`]: the content codings of HTTP responses (RFC 9110, section 8.4.1; zstd: RFC 8878).
//!
//! Complete texts are encoded; nothing is decoded. These are no codecs of arrays and are not in the registry.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::error::CodecError;

/// The level of gzip: most of the savings of higher levels, in half their time.
const GZIP_LEVEL: u32 = 5;
/// The level of zstd. Its window is within the 8 MiB that RFC 9659 allows.
const ZSTD_LEVEL: i32 = 3;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentCoding {
    /// Deflate in the container of RFC 1952.
    Gzip,
    /// Zstandard.
    Zstd,
}

impl ContentCoding {
    /// All content codings, in the server's order of preference.
    pub const ALL: [Self; 2] = [Self::Zstd, Self::Gzip];

    /// Its name in `Content-Encoding`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// A text in this coding: always the same bytes for the same text.
    ///
    /// # Errors
    /// [`CodecError`] if there is no memory for it.
    pub fn encode(self, text: &[u8]) -> Result<Vec<u8>, CodecError> {
        let encoded = match self {
            Self::Gzip => {
                let mut stream = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
                stream.write_all(text).and_then(|()| stream.finish())
            }
            Self::Zstd => zstd::bulk::compress(text, ZSTD_LEVEL),
        };
        encoded.map_err(|error| CodecError::encode(self.name(), error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn encoded_text_decodes_to_the_same_text() {
        for text in [&b""[..], b"a", &b"{\"zarr_format\":3}".repeat(10_000)] {
            let mut decoded = Vec::new();
            let gzip = ContentCoding::Gzip.encode(text).unwrap();
            flate2::read::GzDecoder::new(&gzip[..]).read_to_end(&mut decoded).unwrap();
            assert_eq!(decoded, text);
            let zstd = ContentCoding::Zstd.encode(text).unwrap();
            assert_eq!(zstd::bulk::decompress(&zstd, text.len()).unwrap(), text);
            assert_eq!(ContentCoding::Zstd.encode(text).unwrap(), zstd);
        }
    }
}
