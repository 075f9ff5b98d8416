//! [`Format`]: what the file of a format says about it: its names, and how responses are written.
//!
//! Each format has a constant `FORMAT` in its file. What HTTP offers, negotiates and documents is derived from the table
//! of them, [`FORMATS`](super::FORMATS).

use std::fmt;

use super::{RenderError, ResultSchema, Writer};
use crate::metadata::{DataType, Endianness};

/// A format of decoded elements.
pub struct Format {
    /// The value of the query parameter `format`.
    pub name: &'static str,
    /// The media type, without parameters.
    pub media_type: &'static str,
    /// The extension of a file in this format, without a dot.
    pub extension: &'static str,
    /// What the API document says about the format, in Markdown.
    pub description: &'static str,
    /// For a format with an optional header line of names: the media types that say whether there is one.
    pub header_line: Option<HeaderLine>,
    /// How responses are written.
    pub(super) encoding: Encoding,
}

/// The media types of a format with an optional header line.
#[derive(Clone, Copy, Debug)]
pub struct HeaderLine {
    /// With a header line.
    pub present: &'static str,
    /// Without one.
    pub absent: &'static str,
}

/// How responses in a format are written.
pub(super) enum Encoding {
    /// Elements of a fixed size as they are in memory, in the requested byte order, after a preamble. Their length is known
    /// beforehand, so they are streamed.
    Items {
        /// The bytes before the elements.
        preamble: fn(&DataType, &[u64], Endianness) -> Vec<u8>,
        /// The writer of elements of variable length.
        variable: WriterFn,
    },
    /// By a writer.
    Written {
        /// An upper bound of the bytes of a response with elements of a fixed size, derived from type and shape.
        max_bytes: fn(&ResultSchema) -> u64,
        writer: WriterFn,
    },
    /// A file of several arrays, which is no response of the elements of one.
    File,
}

/// Returns a writer for these elements, of at most a number of bytes.
pub(super) type WriterFn = fn(FormatOptions, &ResultSchema, u64) -> Result<Box<dyn Writer>, RenderError>;

/// How a response in some format is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// In pieces as they are decoded. The length is known before the first element is read, so ranges can be served.
    Streamed,
    /// All at once. The length depends on the elements, so the response is written to memory first.
    Buffered,
}

impl Format {
    /// How elements of this type are sent.
    #[must_use]
    pub fn delivery(&self, data_type: &DataType) -> Delivery {
        match self.encoding {
            Encoding::Items { .. } if !data_type.is_variable() => Delivery::Streamed,
            Encoding::File => Delivery::Streamed,
            Encoding::Items { .. } | Encoding::Written { .. } => Delivery::Buffered,
        }
    }

    /// Whether a response is a file of several arrays.
    #[must_use]
    pub fn is_file(&self) -> bool {
        matches!(self.encoding, Encoding::File)
    }

    /// Whether a response is a long table, whatever else is requested.
    #[must_use]
    pub fn is_table(&self) -> bool {
        self.name == "parquet"
    }

    /// Whether the elements have a byte order, which the client chooses.
    #[must_use]
    pub fn has_byte_order(&self) -> bool {
        matches!(self.encoding, Encoding::Items { .. })
    }

    /// Whether elements are written as text.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self.name, "json" | "csv")
    }

    /// The bytes before streamed elements.
    #[must_use]
    pub fn preamble(&self, data_type: &DataType, shape: &[u64], endian: Endianness) -> Vec<u8> {
        match self.encoding {
            Encoding::Items { preamble, .. } => preamble(data_type, shape, endian),
            Encoding::Written { .. } | Encoding::File => Vec::new(),
        }
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A format and its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatOptions {
    /// The format.
    pub format: &'static Format,
    /// The byte order, for a format that has one.
    pub endian: Endianness,
    /// How text formats write values that JSON has no number for.
    pub nan: NanMode,
}

/// How text formats write a float that JSON has no number for, and a time that is `NaT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NanMode {
    /// `"NaN"`, `"Infinity"`, `"-Infinity"` and `"NaT"`.
    #[default]
    String,
    /// `null` for all of them.
    Null,
}

#[cfg(test)]
mod tests {
    use super::Format;
    use crate::render::FORMATS;

    #[test]
    fn no_two_formats_share_a_name_media_type_or_extension() {
        let properties: [fn(&Format) -> &'static str; 3] =
            [|format| format.name, |format| format.media_type, |format| format.extension];
        for property in properties {
            let mut values: Vec<_> = FORMATS.iter().copied().map(property).collect();
            values.sort_unstable();
            values.dedup();
            assert_eq!(values.len(), FORMATS.len(), "{values:?}");
        }
    }
}
