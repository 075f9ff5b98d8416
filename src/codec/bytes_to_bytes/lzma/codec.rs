//! [`CODEC`]: the `lzma` codec. Its configuration follows Python's `lzma` module.
//!
//! `format` 1 is the xz file format (several streams are one value), 2 the `.lzma` file format, 3 a bare stream described by
//! `filters`. Filters have the numbers of Python's module. A header can declare a dictionary of any size, so a value that
//! needs more memory than [`MEMORY_BYTES`] to decode is unsupported.

use ::bytes::Bytes;
use liblzma::stream::{Action, CONCATENATED, Check, Error, Status, Stream};

use super::filters::Filters;
use crate::codec::CodecError;
use crate::codec::contract::BytesToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::bounded_writer::{BoundedWriter, StreamStep};
use crate::codec::support::buffer;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Size;
use crate::metadata::V2Codec;

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.lzma"],
    v2: &[V2Codec { v1_option: "format", ..V2Codec::new("lzma", "numcodecs.lzma") }],
    factory: CodecFactory::BytesToBytes(bind),
};

const NAME: &str = "numcodecs.lzma";
/// Most memory for decoding. The strongest preset of xz needs 65 MiB.
const MEMORY_BYTES: u64 = 128 << 20;
/// Typical decoded bytes for each encoded byte. LZMA can reach seven thousand times as many, and rarely does.
const RATIO: u64 = 64;

#[derive(Clone, Copy, Debug)]
enum Container {
    Xz(Check),
    Alone,
    Raw,
}

#[derive(Debug)]
struct Lzma {
    container: Container,
    filters: Filters,
}

fn bind(config: &CodecConfig, _context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    let container = match config.integer("format")?.unwrap_or(1) {
        1 => Container::Xz(check(config)?),
        2 => Container::Alone,
        3 => Container::Raw,
        _ => return Err(config.invalid("`format` must be 1, 2 or 3")),
    };
    let filters = match (Filters::from_config(config)?, container) {
        (Some(filters), Container::Xz(_)) if filters.end_in_lzma1() => {
            return Err(config.invalid("`format` 1 does not allow LZMA1"));
        }
        (Some(filters), Container::Alone) if !filters.are_lzma1_alone() => {
            return Err(config.invalid("`format` 2 allows only the filter LZMA1"));
        }
        (Some(filters), Container::Raw) if filters.dictionary_bytes() > MEMORY_BYTES / 2 => {
            return Err(config.unsupported("a dictionary of this size"));
        }
        (Some(filters), _) => filters,
        (None, Container::Xz(_)) => Filters::lzma2(config)?,
        (None, Container::Alone) => Filters::lzma1(config)?,
        (None, Container::Raw) => return Err(config.invalid("`format` 3 needs `filters`")),
    };
    Ok(Box::new(Lzma { container, filters }))
}

fn check(config: &CodecConfig) -> Result<Check, CodecError> {
    match config.integer("check")?.unwrap_or(-1) {
        0 => Ok(Check::None),
        1 => Ok(Check::Crc32),
        -1 | 4 => Ok(Check::Crc64),
        10 => Ok(Check::Sha256),
        _ => Err(config.invalid("`check` must be -1, 0, 1, 4 or 10")),
    }
}

impl BytesToBytes for Lzma {
    fn decode(&self, encoded: Bytes, size: Size) -> Result<Bytes, CodecError> {
        let mut output = BoundedWriter::new(NAME, encoded.len(), RATIO, size)?;
        let stream = match self.container {
            Container::Xz(_) => Stream::new_stream_decoder(MEMORY_BYTES, CONCATENATED),
            Container::Alone => Stream::new_lzma_decoder(MEMORY_BYTES),
            Container::Raw => self.filters.chain(None).and_then(|filters| Stream::new_raw_decoder(&filters)),
        };
        let mut stream = stream.map_err(decode_error)?;
        let rest = output.fill(&encoded, |input, output| {
            let before = (stream.total_in(), stream.total_out());
            let status = stream.process(input, output, Action::Finish).map_err(decode_error)?;
            let after = (stream.total_in(), stream.total_out());
            Ok(StreamStep::between(before, after, status == Status::StreamEnd))
        })?;
        if !rest.is_empty() {
            return Err(CodecError::trailing(NAME));
        }
        let decoded = output.finish();
        size.check(NAME, decoded.len())?;
        Ok(Bytes::from(decoded))
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut encoded = buffer::with_capacity(self.encoded_size(Size::Exact(decoded.len() as u64)).max())?;
        let bytes = Some(decoded.len());
        let stream = match self.container {
            Container::Xz(check) => {
                self.filters.chain(bytes).and_then(|filters| Stream::new_stream_encoder(&filters, check))
            }
            Container::Alone => {
                self.filters.lzma_options(bytes).and_then(|options| Stream::new_lzma_encoder(&options))
            }
            Container::Raw => self.filters.chain(bytes).and_then(|filters| Stream::new_raw_encoder(&filters)),
        };
        let status = stream.and_then(|mut stream| stream.process_vec(&decoded, &mut encoded, Action::Finish));
        match status {
            Ok(Status::StreamEnd) => Ok(Bytes::from(encoded)),
            Ok(_) => Err(CodecError::encode(NAME, "the encoded bytes exceed their bound")),
            Err(Error::Mem) => Err(CodecError::NoMemory { bytes: MEMORY_BYTES }),
            Err(error) => Err(CodecError::encode(NAME, error.to_string())),
        }
    }

    fn encoded_size(&self, decoded: Size) -> Size {
        decoded.compressed()
    }
}

/// The error for a failure of the library to decode.
fn decode_error(error: Error) -> CodecError {
    match error {
        Error::Mem => CodecError::NoMemory { bytes: MEMORY_BYTES },
        Error::MemLimit => {
            CodecError::unsupported(format!("{NAME} with a dictionary of more than {MEMORY_BYTES} bytes"))
        }
        Error::Data
        | Error::Options
        | Error::Format
        | Error::Program
        | Error::NoCheck
        | Error::UnsupportedCheck => CodecError::corrupt(NAME, error.to_string()),
    }
}
